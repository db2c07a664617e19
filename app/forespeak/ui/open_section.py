"""The end of a reply while it is being written: its source, line by line, at the cost of a line a token."""

from __future__ import annotations

from forespeak.ui.block_boxes import Box, CodeBox, MarksOf, TextBox
from forespeak.ui.markdown_blocks import CodeBlock, TextBlock
from forespeak.ui.rich_text import RichText, SourceRun
from forespeak.ui.sections import FENCE
from forespeak.ui.text_flow import TextFlow

PARAGRAPH_GAP = 12.0


class OpenSection:
    """Boxes for the text from `start` on. A fence outside of lists makes a card at once, unless `raw`."""

    def __init__(self, start: int, marks_of: MarksOf, *, raw: bool) -> None:
        self.start = start
        self.boxes: list[Box] = []
        self._marks_of = marks_of
        self._raw = raw
        self._at = start
        """What comes before this character of the reply is in the boxes."""
        self._flow: TextFlow | None = None
        """Where the line that is being written goes on."""

    def grow(self, text: str, *, in_fence: bool) -> None:
        """Take in what is new in `text`, the whole reply so far. `in_fence`: its end is inside a block of code."""
        while self._at < len(text):
            if in_fence and not self._raw and self._grow_code(text):
                return
            if not self.boxes and not self._raw and text[self._at] == " " and self._at - self.start < 3:
                # Markdown drops the spaces that a paragraph begins with.
                self._at += 1
                continue
            end = text.find("\n", self._at)
            stop = end if end >= 0 else len(text)
            if stop > self._at:
                if self._flow is None:
                    gap = 0.0 if self.boxes else PARAGRAPH_GAP
                    box = TextBox(TextBlock(RichText("")), self._marks_of, gap=gap)
                    self.boxes.append(box)
                    self._flow = box.flow
                self._extend(self._flow, text, stop)
            if end >= 0:
                self._at, self._flow = end + 1, None

    def as_paragraph(self, text: str, end: int) -> list[Box] | None:
        """The boxes of a section that ends at `end` and reads as it is written; None if they are not one paragraph."""
        if len(self.boxes) != 1 or not isinstance(self.boxes[0], TextBox):
            return None
        self._extend(self.boxes[0].flow, text, len(text[:end].rstrip()))
        return self.boxes

    def _grow_code(self, text: str) -> bool:
        """Put the rest of the text on a card, once the line that opens it is reached; False before."""
        if not (self.boxes and isinstance(self.boxes[-1], CodeBox)):
            line = text.rfind("\n", 0, self._at) + 1
            end = text.find("\n", line)
            opening = FENCE.match(text[line:end].rstrip("\r")) if end >= 0 else None
            if opening is None:
                return False
            if self._flow is not None:
                # The beginning of the line looked like text.
                self.boxes.pop()
            words = opening.group(2).split()
            card = CodeBox(CodeBlock(RichText(""), words[0] if words else ""), self._marks_of, coloured=False)
            self.boxes.append(card)
            self._flow, self._at = card.flow, end + 1
        stop = len(text)
        last = max(text.rfind("\n") + 1, self._at)
        if set(text[last:].strip()) in ({"`"}, {"~"}):
            # Perhaps the closing fence, still on its way.
            stop = last
        if self._flow is not None:
            self._extend(self._flow, text, stop)
        return True

    def _extend(self, flow: TextFlow, text: str, end: int) -> None:
        if end > self._at:
            source = SourceRun(len(flow.text), self._at, end - self._at)
            flow.append(text[self._at : end], [source], self._marks_of([source]))
            self._at = end
