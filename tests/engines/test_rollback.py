from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from forespeak.engines.rollback import RollbackGuard
from forespeak.speculation.draft import Draft, Evaluation
from forespeak.speculation.language_model import Logits
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source

SAMPLER = Sampler(SamplingSettings())
ROW: Logits = np.zeros((1, 4), dtype=np.float32)


class Recording:
    """A source that drafts as much as it may and notes what it is told."""

    blocked: str | None = None

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self.calls.append("begin")

    def observe(self, evaluation: Evaluation) -> None:
        self.calls.append("observe")

    def propose(self, limit: int) -> Draft:
        self.calls.append(f"propose {limit}")
        return Draft((1,) * limit, Source.PROMPT_LOOKUP)

    def accept(self, tokens: Sequence[int]) -> None:
        self.calls.append("accept")


@pytest.fixture
def source() -> Recording:
    return Recording()


def test_a_batch_never_takes_more_than_can_be_taken_back(source: Recording) -> None:
    room = 6
    guard = RollbackGuard(source, lambda: room, "the end")
    guard.begin([1, 2], SAMPLER)
    assert len(guard.propose(9).tokens) == 5, "the last token of the text is in the batch too"
    assert len(guard.propose(2).tokens) == 2
    room = 2
    assert len(guard.propose(9).tokens) == 1
    assert guard.blocked is None
    guard.accept([1])
    guard.observe(Evaluation((1,), ROW))
    room = 1
    assert guard.propose(9).tokens == ()
    assert guard.blocked == "the end"


def test_once_closed_it_stays_closed_and_asks_no_more(source: Recording) -> None:
    room = 1
    guard = RollbackGuard(source, lambda: room, "the end")
    guard.begin([1, 2], SAMPLER)
    room = 50
    assert guard.propose(3).tokens == ()
    guard.accept([1])
    guard.observe(Evaluation((1,), ROW))
    assert source.calls == []
    assert guard.blocked == "the end"


def test_a_source_says_itself_why_it_is_blocked(source: Recording) -> None:
    source.blocked = "its own reason"
    assert RollbackGuard(source, lambda: 9, "the end").blocked == "its own reason"
