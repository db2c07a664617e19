"""Which token every character of a reply belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from forespeak.speculation.trace import Step, Token
from forespeak.ui.rich_text import SourceRun
from forespeak.ui.text_flow import MarkRun
from forespeak.ui.theme import MarkKind, mark_kind


@dataclass(frozen=True, slots=True)
class TokenRef:
    """A token of a reply: the `index`-th one emitted by `step`. `start` and `end` are its characters in the reply."""

    step: Step
    index: int
    number: int
    """Counted through the whole reply, from 0."""
    start: int
    end: int

    @property
    def token(self) -> Token:
        return self.step.emitted[self.index]


class Provenance:
    """Grows with the reply's steps. Offsets are characters of the reply's text."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._kinds: list[MarkKind | None] = []
        self._places: list[tuple[Step, int]] = []
        self._length = 0

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self._starts)

    @property
    def length(self) -> int:
        """The number of characters."""
        return self._length

    def add(self, steps: Iterable[Step]) -> str:
        """Take in steps; returns the text they add."""
        parts = []
        for step in steps:
            for index, token in enumerate(step.emitted):
                self._starts.append(self._length)
                self._kinds.append(mark_kind(token.origin, token.source))
                self._places.append((step, index))
                self._length += len(token.text)
                parts.append(token.text)
        return "".join(parts)

    def ref(self, number: int) -> TokenRef:
        """The token with that number. Raises IndexError."""
        step, index = self._places[number]
        start = self._starts[number]
        return TokenRef(step, index, number, start, start + len(step.emitted[index].text))

    def at(self, position: int) -> TokenRef | None:
        """The token that wrote the character at `position`."""
        number = bisect_right(self._starts, position) - 1
        if number < 0 or position >= self._length:
            return None
        return self.ref(number)

    def marks(self, sources: Sequence[SourceRun]) -> list[MarkRun]:
        """The marks of a text whose characters came from `sources`, neighbours of one kind joined."""
        starts, kinds, total = self._starts, self._kinds, len(self._starts)
        marks: list[MarkRun] = []
        for run in sources:
            end = min(run.source + run.length, self._length)
            number = bisect_right(starts, run.source) - 1
            if number < 0:
                continue
            shift = run.start - run.source
            while number < total and starts[number] < end:
                kind = kinds[number]
                first = max(starts[number], run.source)
                # Tokens of one kind in a row need no look at each one's end.
                number += 1
                while number < total and kinds[number] is kind and starts[number] < end:
                    number += 1
                last = min(starts[number] if number < total else self._length, end)
                if kind is None or first >= last:
                    continue
                if marks and marks[-1].kind is kind and marks[-1].end == first + shift:
                    marks[-1] = MarkRun(marks[-1].start, last + shift, kind)
                else:
                    marks.append(MarkRun(first + shift, last + shift, kind))
        return marks
