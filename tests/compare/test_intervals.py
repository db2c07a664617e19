"""Ratios over categories, against values worked out by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forespeak.compare.intervals import ratio_of, student_quantile
from forespeak.compare.statistics import median_of


@pytest.mark.parametrize(("freedom", "value"), [(5, 2.5706), (6, 2.4469), (10, 2.228), (30, 2.042), (1000, 1.962)])
def test_students_quantiles(freedom: int, value: float) -> None:
    # Tables of Student's distribution, two-sided 95 %.
    assert student_quantile(freedom) == pytest.approx(value, abs=0.003)


def test_one_category_has_the_exact_interval_of_its_median() -> None:
    values = [1.1, 1.3, 1.2, 1.25, 1.15, 1.22]
    assert ratio_of([values]) == median_of(values)
    assert ratio_of([[], values]) == median_of(values)
    assert ratio_of([[], []]) is None


def test_categories_weigh_equally_whatever_their_number_of_runs() -> None:
    found = ratio_of([[2.0] * 9, [0.5] * 3])
    assert found is not None
    assert found.interval is not None
    assert found.count == 12
    assert (found.interval.low, found.value, found.interval.high) == pytest.approx((1.0, 1.0, 1.0))


def test_categories_that_differ_do_not_widen_the_interval() -> None:
    generator = np.random.default_rng(1)
    alike = [np.exp(generator.normal(0, 0.01, 6)).tolist() for _ in range(4)]
    apart = [[value * factor for value in group] for group, factor in zip(alike, (0.5, 1.0, 2.0, 4.0), strict=True)]
    one, other = ratio_of(alike), ratio_of(apart)
    assert one is not None
    assert one.interval is not None
    assert other is not None
    assert other.interval is not None
    assert other.value / one.value == pytest.approx(math.sqrt(2))
    assert math.log(other.interval.high / other.interval.low) == pytest.approx(
        math.log(one.interval.high / one.interval.low), rel=1e-6
    )


def test_few_ratios_say_how_little_they_cover() -> None:
    found = ratio_of([[1.0], [1.2]])
    assert found is not None
    assert found.interval is not None
    assert (found.interval.low, found.interval.high, found.interval.coverage) == pytest.approx((1.0, 1.2, 0.5))
    single = ratio_of([[1.1]])
    assert single is not None
    assert single.interval is None


@pytest.mark.parametrize("shape", [(2, 4), (4, 3), (8, 1), (6, 2)])
def test_intervals_hold_the_truth_as_often_as_they_say(shape: tuple[int, int]) -> None:
    groups, each = shape
    generator = np.random.default_rng(7)
    times, held = 300, 0
    for _ in range(times):
        drawn = np.exp(generator.normal(0.2, 0.02, (groups, each)))
        found = ratio_of(drawn.tolist())
        assert found is not None
        assert found.interval is not None
        held += found.interval.low <= math.exp(0.2) <= found.interval.high
    # Nineteen of twenty, less three standard deviations of the count.
    assert held / times >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / times)
