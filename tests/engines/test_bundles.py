"""Steps on their way through the pipe."""

from __future__ import annotations

import os
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

from forespeak.engines.bundles import bundle_seconds, register_compact_pickles
from forespeak.engines.engine import EngineEvent
from forespeak.speculation.trace import Alternative, DraftedToken, Origin, Source, Step, Token


def test_steps_arrive_as_they_were_sent() -> None:
    register_compact_pickles()
    accepted = Token(4, " a", Origin.ACCEPTED, Source.DRAFT_MODEL, 0.5, 0.25, (Alternative(4, " a", 0.5),))
    corrected = Token(5, "京", Origin.CORRECTED, None, 0.75)
    refused = DraftedToken(6, " b", 0.1, 0.6)
    step = Step(3, (accepted, corrected), (refused,), (DraftedToken(7, "c"),), Source.DRAFT_MODEL, 0.1, 0.2, 40)
    events = [EngineEvent(9, step)]
    assert pickle.loads(ForkingPickler.dumps(events)) == events


@pytest.mark.parametrize(("cores", "least", "most"), [(1, 0.1, 0.2), (2, 0.1, 0.2), (64, 0.0, 0.02)])
def test_the_window_is_told_less_often_where_it_shares_few_cores(
    cores: int, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert least <= bundle_seconds(computes_on_cpu=True) <= most
    assert bundle_seconds(computes_on_cpu=False) <= 1 / 60
