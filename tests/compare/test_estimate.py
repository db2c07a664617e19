"""How long a plan will take, against how long it then takes on the same made-up clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compare.lane_plans import OFF, OTHER, SMALL, measured, plan
from compare.timed_engine import PROMPT_SECONDS, TimedEngine
from forespeak.compare.estimate import PlanCosts, calibrate, costs_of, plan_time


def test_calibration_asks_the_target_alone(tmp_path: Path) -> None:
    engine = TimedEngine()
    costs = calibrate(plan(SMALL, OTHER), engine, lambda _: None, lambda: False, engine.clock)
    assert costs == PlanCosts(pytest.approx(10.0), pytest.approx(40.0), 0.0)  # type: ignore[arg-type]
    assert [(load.draft, len(engine.requests)) for load in engine.loads] == [(SMALL.draft, 1)]
    assert engine.requests[0].sources == ()


def test_stopped_while_it_calibrates() -> None:
    assert calibrate(plan(), TimedEngine(), lambda _: None, lambda: True) is None


def test_an_earlier_comparison_tells_as_much(tmp_path: Path) -> None:
    results = measured(plan(), tmp_path)[0].results
    costs = costs_of(results)
    assert costs is not None
    assert (costs.decode_rate, costs.prompt_rate) == pytest.approx((10.0, 40.0))
    failed = measured(plan(), tmp_path, TimedEngine(fails=lambda _: "No."))[0].results
    assert costs_of(failed) is None


def test_the_time_it_takes_lies_within(tmp_path: Path) -> None:
    wanted = plan(OFF, SMALL, OTHER, repeats=4, tokens=60, warm_up=True)
    engine = TimedEngine()
    began = engine.now
    measured(wanted, tmp_path, engine)
    # Ten tokens stand for each prompt, which the made-up engine reads in PROMPT_SECONDS.
    costs = PlanCosts(10.0, 4.0 / PROMPT_SECONDS, 0.0)
    time = plan_time(wanted, costs)
    assert time.least < engine.now - began < time.most


def test_loads_prompts_and_short_answers_count() -> None:
    usual = plan_time(plan(OFF, SMALL), PlanCosts(10.0, None, 0.0))
    slow = plan_time(plan(OFF, SMALL, OTHER), PlanCosts(10.0, None, 100.0))
    assert slow.most >= 2 * usual.most - 10.0 + 200.0 - usual.most
    wanted = plan(OFF, SMALL)
    short = replace(wanted, prompts=tuple(replace(prompt, answer="short") for prompt in wanted.prompts))
    assert plan_time(short, PlanCosts(10.0)).least < plan_time(wanted, PlanCosts(10.0)).least
    chinese = replace(wanted, prompts=(replace(wanted.prompts[0], text="茶" * 400),))
    latin = replace(wanted, prompts=(replace(wanted.prompts[0], text="t" * 400),))
    assert plan_time(chinese, PlanCosts(10.0)).most > plan_time(latin, PlanCosts(10.0)).most
