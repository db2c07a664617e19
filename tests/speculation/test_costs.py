from __future__ import annotations

from collections.abc import Sequence

import pytest

from forespeak.speculation.costs import Costs, RunningCosts, measure_draft, measure_target
from forespeak.speculation.language_model import Logits
from forespeak.speculation.trace import DraftedToken, Origin, Step, Token
from scripted import ScriptedModel, letters, random_scores


class TimedModel(ScriptedModel):
    """Takes, on a clock of its own, a fixed time per evaluation and per token; the first of a size takes double."""

    def __init__(self, base: float, per_token: float) -> None:
        super().__init__(random_scores(8, 1), letters(8))
        self.now = 0.0
        self._base, self._per_token = base, per_token
        self._seen: set[int] = set()

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        seconds = self._base + self._per_token * len(tokens)
        self.now += seconds if len(tokens) in self._seen else 2 * seconds
        self._seen.add(len(tokens))
        return super().evaluate(tokens, outputs)


def test_a_curve_is_straight_between_what_was_measured_and_goes_on_behind_it() -> None:
    costs = Costs(((1, 0.020), (2, 0.030), (5, 0.036)))
    assert [costs.target_seconds(n) for n in (1, 2, 3, 5, 8)] == pytest.approx([0.020, 0.030, 0.032, 0.036, 0.048])
    level = Costs(((1, 0.020), (9, 0.060), (17, 0.060)))
    assert level.target_seconds(49) == pytest.approx(0.140), "no check is free"


def test_behind_a_single_measured_size_a_moderate_slope_is_taken() -> None:
    assert Costs(((1, 0.5),)).target_seconds(1) == 0.5
    assert Costs(((1, 0.5),)).target_seconds(11) == 1.0


def test_a_target_is_timed_without_what_only_the_first_time_takes() -> None:
    model = TimedModel(0.010, 0.001)
    measured = measure_target(model, clock=lambda: model.now)
    assert [size for size, _ in measured] == [1, 2, 3, 5, 9, 17, 33]
    assert [seconds for _, seconds in measured] == pytest.approx([0.010 + 0.001 * n for n in (1, 2, 3, 5, 9, 17, 33)])
    assert list(model.tokens) == []


def test_a_slow_target_is_timed_within_reason() -> None:
    model = TimedModel(1.0, 0.1)
    measured = measure_target(model, budget_seconds=1.2, clock=lambda: model.now)
    assert [size for size, _ in measured] == [1]
    assert model.now < 3.0


def test_a_draft_is_timed_for_one_token_and_for_one_more() -> None:
    model = TimedModel(0.004, 0.002)
    one, more = measure_draft(model, clock=lambda: model.now)
    assert one == pytest.approx(0.006)
    assert more == pytest.approx(0.002)


# Followed while it runs.

MEASURED = Costs(((1, 0.010), (5, 0.020)), 0.002, 0.001)


def ran(running: RunningCosts, tested: int, seconds: float, steps: int) -> None:
    for index in range(1, steps + 1):
        rejected = (DraftedToken(1, "x"),) * tested
        running.observe(Step(index, (Token(1, "x", Origin.TARGET),), rejected, target_seconds=seconds))


def test_a_slower_machine_slows_plain_steps_and_checks_alike() -> None:
    running = RunningCosts(MEASURED)
    ran(running, 0, 0.020, 80)
    assert running.target(1) == pytest.approx(0.020, rel=0.01)
    assert running.target(5) == pytest.approx(0.040, rel=0.01)


def test_checks_have_a_factor_of_their_own() -> None:
    running = RunningCosts(MEASURED)
    for _ in range(150):
        ran(running, 0, 0.010, 1)
        ran(running, 4, 0.030, 1)
    assert running.target(1) == pytest.approx(0.010, rel=0.05)
    assert running.target(5) == pytest.approx(0.030, rel=0.05)


def test_one_wild_step_says_little() -> None:
    running = RunningCosts(MEASURED)
    ran(running, 0, 10.0, 1)
    assert running.target(1) < 0.013
    assert running.plain_rate == 1.0 / running.target(1)
    running.observe(Step(0, (), target_seconds=99.0))
    assert running.target(1) < 0.013, "the prompt's evaluation is no step"


def test_drafts_are_followed_too() -> None:
    running = RunningCosts(MEASURED)
    for _ in range(80):
        running.observe_draft(0.018, 4, 1)
    assert running.draft_token == pytest.approx(0.004, rel=0.01)
    assert running.draft_catch_up == pytest.approx(0.002, rel=0.01)
    RunningCosts(Costs(((1, 0.01),))).observe_draft(1.0, 3, 0)
