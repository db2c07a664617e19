"""Medians, intervals and ratios against values worked out by hand or by simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from compare.timed_engine import AUTO, DRAFT, FOUR, TARGET, TimedEngine, measured, prompts, steady
from forespeak.compare.plan import PLAIN, Pair
from forespeak.compare.runner import Results
from forespeak.compare.statistics import (
    COVERAGE,
    Cell,
    geometric_mean_of,
    median_of,
    summarise,
)
from forespeak.engines.engine import GenerationRequest


class TestMedian:
    @pytest.mark.parametrize(
        ("count", "cut", "coverage"),
        # From the binomial distribution with p = 1/2: 1 - 2 P(X <= cut).
        [(2, 0, 0.5), (3, 0, 0.75), (5, 0, 0.9375), (6, 0, 0.96875), (9, 1, 0.9609375), (12, 2, 0.961425781)],
    )
    def test_exact_intervals(self, count: int, cut: int, coverage: float) -> None:
        estimate = median_of([float(value) for value in reversed(range(count))])
        assert estimate is not None
        assert estimate.interval is not None
        assert estimate.value == (count - 1) / 2
        assert estimate.count == count
        assert (estimate.interval.low, estimate.interval.high) == (cut, count - 1 - cut)
        assert estimate.interval.coverage == pytest.approx(coverage)

    def test_they_hold_the_median_as_often_as_they_say(self) -> None:
        generator = np.random.default_rng(1)
        for count in (3, 8, 15):
            held, coverage = 0, 0.0
            for _ in range(2000):
                estimate = median_of(generator.exponential(size=count).tolist())
                assert estimate is not None
                assert estimate.interval is not None
                held += estimate.interval.low <= math.log(2) <= estimate.interval.high
                coverage = estimate.interval.coverage
            assert held / 2000 == pytest.approx(coverage, abs=0.03)
            assert coverage >= (COVERAGE if count >= 6 else 0.75)

    def test_one_value_has_no_interval_and_none_no_median(self) -> None:
        one = median_of([1.5])
        assert one is not None
        assert (one.value, one.count, one.interval) == (1.5, 1, None)
        assert median_of([]) is None


class TestGeometricMean:
    def test_of_ratios(self) -> None:
        mean = geometric_mean_of([2.0, 0.5, 1.0, 8.0])
        assert mean is not None
        assert mean.interval is not None
        assert mean.value == pytest.approx(8.0 ** (1 / 4))
        assert 0.5 <= mean.interval.low < mean.value < mean.interval.high <= 8.0
        assert mean.interval.coverage == COVERAGE

    def test_equal_values_leave_no_doubt(self) -> None:
        mean = geometric_mean_of([1.25] * 6)
        assert mean is not None
        assert mean.interval is not None
        assert (mean.interval.low, mean.value, mean.interval.high) == pytest.approx((1.25, 1.25, 1.25))

    def test_the_same_values_give_the_same_interval(self) -> None:
        assert geometric_mean_of([1.0, 2.0, 3.0]) == geometric_mean_of([1.0, 2.0, 3.0])

    def test_two_values_are_too_few(self) -> None:
        mean = geometric_mean_of([1.0, 4.0])
        assert mean is not None
        assert mean.value == pytest.approx(2.0)
        assert mean.interval is None
        assert geometric_mean_of([]) is None


def cell_of(results: Results, way: object, category: str = "code") -> Cell:
    return next(cell for cell in summarise(results).cells if cell.way == way and cell.category == category)


def test_ratios_are_paired_within_a_repetition() -> None:
    """A machine that slows down from visit to visit by a half does not show in any ratio."""
    engine = TimedEngine()
    usual = steady()

    def slowing(request: GenerationRequest) -> float:
        return usual(request) * 1.5 ** ((len(engine.requests) - 1) // 3)

    engine.seconds = slowing
    results = measured(engine, runs=4)
    auto, four = (cell_of(results, way).figures for way in (AUTO, FOUR))
    assert auto.ratio is not None
    assert four.ratio is not None
    assert auto.rate is not None
    assert auto.ratio.value == pytest.approx(2.0)
    assert auto.ratio.count == 4
    assert four.ratio.value == pytest.approx(1.25)
    assert auto.rate.interval is not None
    assert auto.rate.interval.high > 5 * auto.rate.interval.low
    assert cell_of(results, PLAIN).figures.ratio is None


def test_figures_of_a_way() -> None:
    figures = cell_of(measured(), AUTO).figures
    assert figures.runs == 2
    assert figures.acceptance_rate == pytest.approx(0.5)
    assert figures.mean_acceptance_length == pytest.approx(2.0)
    assert figures.acceptance_by_position == (1.0, 0.0)
    assert figures.draft_time_share == pytest.approx(0.25)
    assert figures.gaps == pytest.approx((0.05, 0.05, 0.05))
    assert figures.first_token == pytest.approx(0.25)
    assert figures.first_token_ratio == pytest.approx(1.0)
    assert figures.prompt_rate == pytest.approx(40.0)
    assert (figures.identical, figures.compared, figures.first_difference) == (2, 2, None)
    assert figures.tokens == 9
    parted = cell_of(measured(TimedEngine(parts_at=3)), AUTO).figures
    assert (parted.identical, parted.compared, parted.first_difference) == (0, 2, 3)


def test_totals_are_geometric_means_and_name_the_worst_category() -> None:
    def seconds(request: GenerationRequest) -> float:
        if not request.sources:
            return 0.1
        return 0.1 / (0.8 if "prose" in request.messages[0].content else 1.8)

    summary = summarise(measured(TimedEngine(seconds=seconds), ways=(AUTO,)))
    total = next(total for total in summary.totals if total.way == AUTO)
    assert total.ratio is not None
    assert total.worst is not None
    assert total.worst.figures.ratio is not None
    assert total.ratio.value == pytest.approx(math.sqrt(0.8 * 1.8))
    assert total.worst.category == "prose"
    assert total.worst.figures.ratio.value == pytest.approx(0.8)
    assert total.figures.runs == 4


def test_everything_together_counts_cells_of_all_pairs() -> None:
    pairs = (Pair(TARGET, DRAFT), Pair(TARGET.with_stem("huge"), DRAFT))
    results = measured(pairs=pairs, temperatures=(0.0, 0.8), runs=1)
    ((way, estimate), _) = summarise(results).overall
    assert (way, estimate.count) == (AUTO, 2 * 2 * 2)
    assert estimate.value == pytest.approx(2.0)


def test_auto_is_held_against_the_best_fixed_length_of_each_cell() -> None:
    def seconds(request: GenerationRequest) -> float:
        code = "code" in request.messages[0].content
        if not request.sources:
            return 0.1
        if request.draft_length is None:
            return 0.1 / 1.2 if code else 0.1 / 0.9
        return 0.1 / 1.5 if code else 0.1 / 0.5

    (against,) = summarise(measured(TimedEngine(seconds=seconds))).against_fixed
    # In code the fixed length is best, in prose none at all: plain.
    assert against.auto == AUTO
    assert against.ratio.value == pytest.approx(math.sqrt(1.2 / 1.5 * 0.9))
    assert against.worst == pytest.approx(0.8)
    assert summarise(measured(ways=(AUTO,))).against_fixed == ()


def test_failed_runs_and_short_replies_count_in_no_rate() -> None:
    failing = TimedEngine(fails=lambda request: "No." if request.sampling.seed == 0 and request.sources else None)
    figures = cell_of(measured(failing, runs=3), AUTO).figures
    assert (figures.runs, figures.failures) == (2, ("No.",))
    assert figures.ratio is not None
    assert figures.ratio.count == 2
    results = measured()
    results.runs = [
        replace(run, stats=replace(run.stats, tokens_per_second=0.0)) if run.task.way == AUTO else run
        for run in results.runs
    ]
    short = cell_of(results, AUTO).figures
    assert (short.rate, short.ratio) == (None, None)


def test_a_category_of_several_prompts_is_one_cell() -> None:
    cell = cell_of(measured(prompts=prompts("code", each=3)), AUTO)
    assert cell.figures.ratio is not None
    assert cell.figures.ratio.count == 6
    assert len([c for c in summarise(measured(prompts=prompts("code", each=3))).cells if c.way == AUTO]) == 1
