"""Where a lane's time goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare.lane_plans import OFF, SMALL, measured, plan
from compare.timed_engine import TimedEngine
from forespeak.compare.costs import token_costs


def test_costs_of_a_token(tmp_path: Path) -> None:
    results = measured(plan(OFF, SMALL), tmp_path)[0].results
    drafted = token_costs([run for run in results.runs if not run.task.way.is_plain])
    alone = token_costs([run for run in results.runs if run.task.way.is_plain])
    assert drafted is not None
    assert alone is not None
    # Nine tokens: eight after the first one, in four steps of two, 0.05 s a token and a quarter of it drafting.
    assert (drafted.whole, drafted.drafting, drafted.checking) == pytest.approx((0.05, 0.0125, 0.0375))
    # Each step tests two and accepts one: with both accepted it would have brought three tokens.
    assert drafted.wasted == pytest.approx(0.05 - 0.4 / 12)
    assert alone.whole == pytest.approx(0.1)
    assert (alone.drafting, alone.tested) == (0.0, 0)


def test_nothing_written_costs_nothing_known(tmp_path: Path) -> None:
    results = measured(plan(), tmp_path, TimedEngine(fails=lambda _: "No."))[0].results
    assert token_costs(results.runs) is None
    assert token_costs([]) is None
