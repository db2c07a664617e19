"""A reply's text in sections, each rendered and laid out only when it is about to be seen.

A section ends at a blank line where Markdown starts afresh. Finished sections are rendered; the open one at the end
shows its source, so that a new token costs a line or two of layout.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from forespeak.speculation.trace import Step
from forespeak.ui.block_boxes import Box, CodeBox, boxes_of, raw_boxes
from forespeak.ui.markdown_blocks import parse
from forespeak.ui.open_section import PARAGRAPH_GAP, OpenSection
from forespeak.ui.provenance import Provenance, TokenRef
from forespeak.ui.sections import SectionSplitter, reads_as_written
from forespeak.ui.text_flow import TextFlow
from forespeak.ui.text_look import Look
from forespeak.ui.theme import REPLY_LINE_HEIGHT, REPLY_PIXELS

_CLEAN = float("inf")
_BEHIND_ALL = 1_000_000
"""Stands for the last flow of a section, and for the last character of it."""
_LAST_LINES = 80.0
"""Pixels at the end of a section that its last tokens may change: two lines and a card's edge."""


@dataclass(slots=True, eq=False)
class _Section:
    start: int
    end: int
    top: float = 0.0
    height: float = 0.0
    boxes: list[Box] | None = None
    laid_out: bool = False
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the text between two characters: of which section, which flow in it, behind how many characters."""

    section: int
    flow: int
    character: int

    def __lt__(self, other: Place) -> bool:
        return (self.section, self.flow, self.character) < (other.section, other.flow, other.character)

    @property
    def is_edge(self) -> bool:
        """Before or behind all of its section, whatever that holds."""
        return self.flow == self.character == 0 or self.character == _BEHIND_ALL


class MessageDocument:
    """Text with provenance, drawn `width` pixels wide. Coordinates are from the document's corner."""

    def __init__(self, *, raw: bool = False) -> None:
        self.text = ""
        self.provenance = Provenance()
        self._raw = raw
        self._splitter = SectionSplitter()
        self._sections: list[_Section] = []
        self._tops: list[float] = []
        self._open: OpenSection | None = None
        """Grows as the last section, while a reply is being generated."""
        self._width = 0.0
        self._look: Look | None = None
        self._dirty = _CLEAN
        self._rendered_anew: int | None = None
        self._average_width = 7.6

    # Content

    @property
    def raw(self) -> bool:
        return self._raw

    def set_raw(self, raw: bool) -> None:
        """Show the source with every token, or the rendered text."""
        if raw != self._raw:
            self._raw = raw
            for section in self._sections:
                section.boxes, section.laid_out, section.estimated = None, False, False
            if self._open is not None:
                self._sections.pop()
                self._begin_section(self._open.start)
            self._place_all()

    def set_text(self, text: str, steps: Sequence[Step]) -> None:
        """A whole reply. Its tokens are known only where the steps really add up to the text."""
        self.text = text
        self.provenance = Provenance()
        if self.provenance.add(steps) != text:
            self.provenance = Provenance()
        self._splitter = SectionSplitter()
        self._sections = [_Section(start, end) for start, end in self._splitter.advance(text)]
        if self._splitter.start < len(text):
            self._sections.append(_Section(self._splitter.start, len(text)))
        self._open = None
        self._place_all()

    def begin(self, text: str, steps: Sequence[Step]) -> None:
        """A reply that is being generated, as far as it has come."""
        self.set_text(text, steps)
        self._go_on()

    def append(self, steps: Sequence[Step]) -> bool:
        """More tokens at the end. They stay without marks where those before are not known.

        Returns whether the open section has grown and everything above it is as it was.
        """
        self._go_on()
        last = self._sections[-1]
        before = last.boxes[-1] if last.boxes else None
        known = self.provenance.length == len(self.text)
        self.text += (self.provenance if known else Provenance()).add(steps)
        closed = tuple(self._splitter.advance(self.text))
        if closed:
            # What is rendered anew is noted then.
            self._dirty = min(self._dirty, last.top + max(last.height - _LAST_LINES, 0.0))
        for start, end in closed:
            section = _Section(start, end)
            if self._open is not None:
                self._sections.pop()
                if not self._raw and reads_as_written(self.text[start:end]):
                    section.boxes = self._open.as_paragraph(self.text, end)
                if section.boxes is None:
                    self._rendered_anew = len(self._sections)
                self._open = None
            self._sections.append(section)
        if self._open is None:
            self._begin_section(self._splitter.start)
            self._place_all()
            return False
        self._grow()
        self._dirty = min(self._dirty, last.top + self._unchanged_height(last, before))
        return True

    @staticmethod
    def _unchanged_height(section: _Section, last: Box | None) -> float:
        """How much of the section is as it was, when `last` was the last of its boxes."""
        if last is None:
            return 0.0
        if not section.boxes or last not in section.boxes:
            return last.top
        placed = last.flows()[-1]
        flow = placed.flow
        # What is higher than its line reaches into the next one.
        lines = flow.fresh_from - (0 if flow.text.isascii() else 1)
        return last.top + placed.at.y() + max(lines, 0) * flow.line_height

    def finish(self) -> None:
        """No more tokens come: what was the open section is rendered too."""
        if self._open is not None:
            last = self._sections[-1]
            if self._raw or not reads_as_written(self.text[last.start :]):
                # Its height is the best estimate there is.
                last.boxes, last.laid_out, last.estimated = None, False, True
                self._rendered_anew = len(self._sections) - 1
            self._open = None
            self._place_all()

    def _go_on(self) -> None:
        """The last section is open again."""
        if self._open is None:
            if self._sections and self._sections[-1].start == self._splitter.start:
                self._sections.pop()
            self._begin_section(self._splitter.start)

    def _begin_section(self, start: int) -> None:
        self._open = OpenSection(start, self.provenance.marks, raw=self._raw)
        self._sections.append(_Section(start, len(self.text), boxes=self._open.boxes))
        self._grow()

    def _grow(self) -> None:
        if self._open is not None:
            self._open.grow(self.text, in_fence=self._splitter.in_fence)
            last = self._sections[-1]
            last.end, last.laid_out = len(self.text), False
            if self._look is not None and self._width > 0:
                self._lay_out(last, first=len(self._sections) == 1)

    # Layout

    def set_look(self, look: Look) -> None:
        """Colours change the text's formats, so another theme means another layout."""
        if self._look is None or look.theme is not self._look.theme:
            for section in self._sections:
                section.laid_out = False
        self._look = look

    @property
    def height(self) -> float:
        return self._sections[-1].top + self._sections[-1].height if self._sections else 0.0

    def set_width(self, width: float) -> None:
        """What is not laid out yet gets an estimated height."""
        if width != self._width:
            self._width = width
            for section in self._sections:
                section.laid_out = section.estimated = False
            self._place_all()

    def _place_all(self) -> None:
        top = 0.0
        line_height = REPLY_PIXELS * REPLY_LINE_HEIGHT
        for section in self._sections:
            section.top = top
            if not section.laid_out and section.boxes is None and not section.estimated:
                text = self.text[section.start : section.end]
                wide = len(text) * self._average_width / max(self._width, 60.0)
                # Whole pixels, as the laid-out heights are: places above the view then shift exactly.
                section.height = float(round((wide + text.count("\n") * 0.7) * line_height + PARAGRAPH_GAP))
                section.estimated = True
            top += section.height
        self._tops = [section.top for section in self._sections]

    def ensure(self, top: float, bottom: float, ahead: float = 0.0) -> float:
        """Render and lay out what lies between, and `ahead` pixels above it.

        Returns by how much what stands above `top` has grown.
        """
        if self._look is None or self._width <= 0:
            return 0.0
        grown = 0.0
        at = max(bisect_right(self._tops, top - ahead) - 1, 0)
        first_changed: int | None = None
        y = self._sections[at].top if at < len(self._sections) else 0.0
        while at < len(self._sections) and y < bottom:
            section = self._sections[at]
            if not section.laid_out:
                before = section.height
                self._changed_from(at)
                self._lay_out(section, first=at == 0)
                if section.height != before:
                    first_changed = at if first_changed is None else first_changed
                    if y + before <= top or (
                        y < top and not (self._open is not None and at == len(self._sections) - 1)
                    ):
                        grown += section.height - before
            y += section.height
            at += 1
        if first_changed is not None:
            y = self._sections[first_changed].top
            for number in range(first_changed, len(self._sections)):
                self._sections[number].top = self._tops[number] = y
                y += self._sections[number].height
        return grown

    def _lay_out(self, section: _Section, *, first: bool) -> None:
        assert self._look is not None
        if section.boxes is None:
            source = self.text[section.start : section.end]
            marks_of = self.provenance.marks
            blocks = (
                raw_boxes(source, section.start, marks_of)
                if self._raw
                else boxes_of(parse(source, section.start), marks_of)
            )
            section.boxes = list(blocks)
        y = 0.0
        for number, box in enumerate(section.boxes):
            if not (first and number == 0):
                y += box.gap
            box.layout(self._width, self._look.theme)
            box.top = y
            y += box.height
        section.height, section.laid_out = y, True

    def _changed_from(self, section: int) -> None:
        if section < len(self._sections):
            self._dirty = min(self._dirty, self._sections[section].top)

    def take_dirty(self) -> float | None:
        """The height from which on something looks different since the last call; None if nothing does."""
        dirty, self._dirty = self._dirty, _CLEAN
        return None if dirty == _CLEAN else dirty

    def take_rendered_anew(self) -> int | None:
        """The section from which on places mean other characters since the last call; None if all are as they were."""
        section, self._rendered_anew = self._rendered_anew, None
        return section

    # Painting and finding

    def paint(self, painter: QPainter, clip: QRectF, look: Look, selection: tuple[Place, Place] | None = None) -> None:
        at = max(bisect_right(self._tops, clip.top()) - 1, 0)
        while at < len(self._sections) and self._sections[at].top <= clip.bottom():
            section = self._sections[at]
            chosen = self._selection_in(at, section, selection)
            for box in section.boxes or ():
                top = section.top + box.top
                if top <= clip.bottom() and top + box.height >= clip.top():
                    painter.save()
                    painter.translate(0, top)
                    box.paint(painter, clip.translated(0, -top), look, chosen.get)
                    painter.restore()
            at += 1

    def _selection_in(
        self, number: int, section: _Section, selection: tuple[Place, Place] | None
    ) -> dict[TextFlow, tuple[int, int]]:
        if selection is None or not selection[0].section <= number <= selection[1].section:
            return {}
        first, last = selection
        chosen = {}
        for index, (flow, _) in enumerate(self._flows(section)):
            start, end = 0, len(flow.text)
            if (number, index) < (first.section, first.flow) or (number, index) > (last.section, last.flow):
                continue
            if (number, index) == (first.section, first.flow):
                start = first.character
            if (number, index) == (last.section, last.flow):
                end = last.character
            chosen[flow] = (start, end)
        return chosen

    @staticmethod
    def _flows(section: _Section) -> Iterator[tuple[TextFlow, QPointF]]:
        """Every text of a section and its corner in the document."""
        for box in section.boxes or ():
            for placed in box.flows():
                yield placed.flow, placed.at + QPointF(0, section.top + box.top)

    def code_boxes(self, top: float, bottom: float) -> Iterator[tuple[CodeBox, QPointF]]:
        """The code cards between, with the corners of their buttons."""
        for section in self._sections:
            if section.top + section.height >= top and section.top <= bottom:
                for box in section.boxes or ():
                    if isinstance(box, CodeBox):
                        yield box, box.button_corner + QPointF(0, section.top + box.top)

    def _section_at(self, y: float) -> int:
        return max(bisect_right(self._tops, y) - 1, 0)

    def hit(self, point: QPointF) -> tuple[TextFlow, int] | None:
        """The flow and character under a point."""
        if not self._sections:
            return None
        for flow, corner in self._flows(self._sections[self._section_at(point.y())]):
            character = flow.character_at(point - corner)
            if character is not None:
                return flow, character
        return None

    def token_at(self, point: QPointF) -> TokenRef | None:
        found = self.hit(point)
        source = found[0].source_at(found[1]) if found else None
        return None if source is None else self.provenance.at(source)

    def link_at(self, point: QPointF) -> str | None:
        found = self.hit(point)
        return found[0].link_at(found[1]) if found else None

    def place_at(self, point: QPointF) -> Place | None:
        """The nearest place for a text cursor."""
        if not self._sections:
            return None
        number = self._section_at(point.y())
        best: tuple[float, Place] | None = None
        for index, (flow, corner) in enumerate(self._flows(self._sections[number])):
            local = point - corner
            distance = max(-local.y(), local.y() - flow.height, 0.0) * 10 + max(
                -local.x(), local.x() - flow.natural_width, 0.0
            )
            if best is None or distance < best[0]:
                character = flow.character_at(local, between=True)
                best = (distance, Place(number, index, character or 0))
        return best[1] if best else None

    def word_around(self, place: Place) -> tuple[Place, Place]:
        flow = list(self._flows(self._sections[place.section]))[place.flow][0]
        start, end = flow.word_at(place.character)
        return Place(place.section, place.flow, start), Place(place.section, place.flow, end)

    def everything(self) -> tuple[Place, Place] | None:
        """The first and the last place."""
        if not self._sections:
            return None
        return Place(0, 0, 0), Place(len(self._sections) - 1, _BEHIND_ALL, _BEHIND_ALL)

    def selected_text(self, selection: tuple[Place, Place]) -> str:
        """What is between two places, as it reads: paragraphs apart by blank lines."""
        parts = []
        for number in range(selection[0].section, min(selection[1].section + 1, len(self._sections))):
            section = self._sections[number]
            if section.boxes is None:
                # Laid out for itself: one that gets its height here would stand where an estimate put it.
                section = _Section(section.start, section.end)
                self._lay_out(section, first=number == 0)
            chosen = self._selection_in(number, section, selection)
            for flow, (start, end) in chosen.items():
                if text := flow.text[start:end].replace("\u2028", "\n").replace("↵", ""):
                    parts.append(text)
        return ("\n" if self._raw else "\n\n").join(parts)

    def token_rects(self, ref: TokenRef) -> list[QRectF]:
        """Where a token stands; empty if nothing of it is shown. Lays out its section."""
        if not self._sections or ref.start >= ref.end:
            return []
        number = bisect_right([section.start for section in self._sections], ref.start) - 1
        section = self._sections[max(number, 0)]
        if not section.laid_out:
            self.ensure(section.top, section.top + 1)
        rects = []
        for flow, corner in self._flows(section):
            found = flow.range_of_source(ref.start, ref.end)
            if found is not None:
                rects += [rect.translated(corner) for rect in flow.rects(*found)]
        return rects

    def token_near(self, y: float) -> TokenRef | None:
        """The first token shown at or below a height, to begin choosing with the keyboard."""
        for number in range(self._section_at(y), len(self._sections)):
            section = self._sections[number]
            for flow, corner in self._flows(section):
                if corner.y() + flow.height > y and flow.sources:
                    character = flow.character_at(QPointF(1, max(y - corner.y(), 1.0)), between=True) or 0
                    source = flow.source_at(character)
                    found = self.provenance.at(flow.sources[0].source if source is None else source)
                    if found is not None:
                        return found
        return None
