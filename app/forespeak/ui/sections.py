"""Where a reply's text can be cut so that each part can be rendered by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LIMIT = 5000
"""Characters after which a section without blank lines ends at the next line."""
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_MARKUP = re.compile(r"[*_`\[\]<>&\\~|\n\r\t]|^ {4}|^ {0,3}(#|[-+=]|\d+[.)])|  $")


def reads_as_written(section: str) -> bool:
    """Whether a section is one plain paragraph, which looks the same rendered."""
    bare = section.rstrip("\n")
    return bool(bare) and bare == bare.rstrip() and _MARKUP.search(bare) is None


class SectionSplitter:
    """Finds, line by line, where sections end."""

    def __init__(self) -> None:
        self.start = 0
        """Where the open section begins."""
        self._scanned = 0
        self._blank = False
        self._fence: str | None = None
        self._fence_outside = False

    @property
    def in_fence(self) -> bool:
        """Inside a code block that stands in no list."""
        return self._fence is not None and self._fence_outside

    def advance(self, text: str) -> Iterator[tuple[int, int]]:
        """The sections (start, end) that are complete now. `text` is the whole reply so far."""
        while (end := text.find("\n", self._scanned)) >= 0:
            line = text[self._scanned : end].rstrip("\r")
            if self._fence is not None:
                if _closes(line, self._fence):
                    self._fence = None
                    if self._fence_outside:
                        # Behind a card that stands in no list, Markdown starts afresh at once.
                        yield self.start, end + 1
                        self.start = end + 1
                        self._blank = False
            elif not line.strip():
                self._blank = True
            else:
                full = self._scanned - self.start > _LIMIT
                if self._scanned > self.start and ((self._blank and not line[0].isspace()) or full):
                    yield self.start, self._scanned
                    self.start = self._scanned
                self._blank = False
                opening = FENCE.match(line)
                # An indented fence belongs to a list, which ends where its text is no longer indented.
                if opening is not None:
                    self._fence, self._fence_outside = opening.group(1), not line[0].isspace()
            self._scanned = end + 1
        if self._fence is None and self._blank and text[self._scanned : self._scanned + 1].strip():
            # The beginning of a line is enough to know.
            yield self.start, self._scanned
            self.start = self._scanned
            self._blank = False


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and set(bare) == {fence[0]}
