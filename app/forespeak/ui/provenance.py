"""Which token every character of a reply belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from forespeak.speculation.trace import Step, Token
from forespeak.ui.rich_text import SourceRun
from forespeak.ui.text_look import MarkRun
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
        """The first character of each token."""
        self._steps: list[Step] = []
        self._firsts: list[int] = []
        """The number of each step's first token."""
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
        starts, length = self._starts, self._length
        for step in steps:
            if not step.emitted:
                continue
            self._steps.append(step)
            self._firsts.append(len(starts))
            for token in step.emitted:
                text = token.text
                starts.append(length)
                length += len(text)
                parts.append(text)
        self._length = length
        return "".join(parts)

    def ref(self, number: int) -> TokenRef:
        """The token with that number, from 0. Raises IndexError."""
        if not 0 <= number < len(self._starts):
            raise IndexError(number)
        place = bisect_right(self._firsts, number) - 1
        step, index = self._steps[place], number - self._firsts[place]
        start = self._starts[number]
        return TokenRef(step, index, number, start, start + len(step.emitted[index].text))

    def at(self, position: int) -> TokenRef | None:
        """The token that wrote the character at `position`."""
        number = bisect_right(self._starts, position) - 1
        return self.ref(number) if number >= 0 and position < self._length else None

    def marks(self, sources: Sequence[SourceRun]) -> list[MarkRun]:
        """The marks of a text whose characters came from `sources`, neighbours of one kind joined."""
        marks: list[MarkRun] = []
        for run in sources:
            shift = run.start - run.source
            for start, end, kind in self._kinds(run.source, min(run.source + run.length, self._length)):
                if marks and marks[-1].kind is kind and marks[-1].end == start + shift:
                    marks[-1] = MarkRun(marks[-1].start, end + shift, kind)
                else:
                    marks.append(MarkRun(start + shift, end + shift, kind))
        return marks

    def _kinds(self, start: int, end: int) -> Iterator[tuple[int, int, MarkKind]]:
        """The kinds of the characters from `start` to `end`, several tokens at a time where they are of one kind."""
        number = bisect_right(self._starts, start) - 1
        if number < 0 or start >= end:
            return
        place = bisect_right(self._firsts, number) - 1
        index = number - self._firsts[place]
        at, current = start, None
        while number < len(self._starts) and self._starts[number] < end:
            token = self._steps[place].emitted[index]
            kind = mark_kind(token.origin, token.source)
            if kind is not current:
                here = max(self._starts[number], start)
                if current is not None and at < here:
                    yield at, here, current
                at, current = here, kind
            number += 1
            index += 1
            if index == len(self._steps[place].emitted):
                place, index = place + 1, 0
        if current is not None and at < end:
            yield at, end, current
