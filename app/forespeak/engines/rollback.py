"""Drafting for a target whose cache can take tokens back up to some length only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forespeak.speculation.draft import EMPTY_DRAFT, Draft, DraftSource, Evaluation
from forespeak.speculation.sampling import Sampler

LEAST_ROOM = 2
"""A draft of one token is tested in a batch of two."""


class RollbackGuard:
    """Lets a source draft while the target can take the whole batch back, and no further.

    `room` tells how many tokens may be evaluated next so that each can still be taken back. It shrinks as a text grows,
    so once it is used up nothing is drafted until the reply's end, for the `reason`.
    """

    def __init__(self, source: DraftSource, room: Callable[[], int], reason: str) -> None:
        self._source = source
        self._room = room
        self._reason = reason
        self._passed = False

    @property
    def blocked(self) -> str | None:
        return self._source.blocked if self._is_open() else self._reason

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        # The prompt is evaluated: what it leaves is what the reply has.
        if self._is_open():
            self._source.begin(tokens, sampler)

    def observe(self, evaluation: Evaluation) -> None:
        if not self._passed:
            self._source.observe(evaluation)

    def propose(self, limit: int) -> Draft:
        if not self._is_open():
            return EMPTY_DRAFT
        return self._source.propose(min(limit, self._room() - 1))

    def accept(self, tokens: Sequence[int]) -> None:
        if not self._passed:
            self._source.accept(tokens)

    def _is_open(self) -> bool:
        self._passed = self._passed or self._room() < LEAST_ROOM
        return not self._passed
