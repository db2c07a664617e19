"""How many tokens to draft next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from forespeak.speculation.costs import RunningCosts
from forespeak.speculation.trace import SpeculationState, Step

DEFAULT_DRAFT_LENGTH = 4


class DraftController(Protocol):
    """Asked before every step and told about every step."""

    @property
    def state(self) -> SpeculationState: ...

    def next_length(self) -> int:
        """How many tokens the next draft should have at most; 0 for a plain step."""
        ...

    def observe(self, step: Step) -> None: ...


class DraftGate(Protocol):
    """Asked by a draft model while it drafts, with its confidence in each of its tokens so far, from 0 to 1."""

    def may_read(self, unread: int) -> int:
        """How many of the `unread` tokens that it has not read, the newest apart, it may read before it drafts."""
        ...

    def worth_another(self, confidences: Sequence[float]) -> bool:
        """Whether to draft one more token behind these, at least one: the first is drafted unasked."""
        ...

    def worth_testing(self, confidences: Sequence[float]) -> int:
        """How many leading tokens of the finished draft to have tested. The step that follows is about this draft."""
        ...


class FixedDraftLength:
    """The same length for every draft."""

    def __init__(self, length: int = DEFAULT_DRAFT_LENGTH, costs: RunningCosts | None = None) -> None:
        if length < 0:
            raise ValueError(f"a draft cannot have {length} tokens")
        self._length = length
        self._costs = costs

    @property
    def state(self) -> SpeculationState:
        if self._length == 0:
            return SpeculationState(False, "The draft length is set to zero.")
        tokens = "1 token" if self._length == 1 else f"{self._length} tokens"
        return SpeculationState(True, f"Drafting {tokens} at a time, a fixed length.", self._length)

    def next_length(self) -> int:
        return self._length

    def observe(self, step: Step) -> None:
        """A fixed length learns nothing, but what steps cost now is of use to those that adapt."""
        if self._costs is not None:
            self._costs.observe(step)
