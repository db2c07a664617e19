"""Ratios of paired runs, and how sure they are.

Intervals are bootstrap percentiles of the geometric mean, widened for few values (Hesterberg, "What Teachers Should
Know about the Bootstrap", 2015, section 5.3, "expanded percentile interval"): plain percentiles of six values would
hold the truth in nine of ten cases, not in nineteen of twenty. Groups (categories) weigh equally; what is drawn are
deviations from their group's mean, so that categories which differ do not widen what is known of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from forespeak.compare.statistics import COVERAGE, Estimate, Interval

LEAST_FREEDOM = 5
"""Degrees of freedom from which on a 95 % interval is given; below, the values' range with what it covers."""
_RESAMPLES = 10_000
_SEED = 20260711


def ratio_of(groups: Sequence[Sequence[float]]) -> Estimate | None:
    """The geometric mean over groups of the geometric means of their ratios; None without any.

    `count` is the number of all ratios. With few of them the interval is their range, whose coverage is that of the
    median's order statistics, 1 - 2 / 2^n; with one there is none.
    """
    logs = [np.log(np.asarray(group, dtype=np.float64)) for group in groups if len(group)]
    if not logs:
        return None
    means = np.array([group.mean() for group in logs])
    count = sum(len(group) for group in logs)
    value = float(np.exp(means.mean()))
    freedom = count - len(logs)
    if freedom < LEAST_FREEDOM:
        # Each group says too little of its own spread: then they are taken as values themselves.
        values = np.concatenate(logs) if len(logs) == 1 else means
        if len(values) <= LEAST_FREEDOM:
            return Estimate(value, count, _range(np.concatenate(logs)))
        logs, freedom = [values], len(values) - 1
    return Estimate(value, count, _bootstrap(logs, freedom))


def student_quantile(freedom: int) -> float:
    """Student's t at (1 + COVERAGE) / 2, from LEAST_FREEDOM degrees of freedom on, to 0.003.

    The Cornish-Fisher expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
    """
    z = NormalDist().inv_cdf((1 + COVERAGE) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _range(logs: np.ndarray) -> Interval | None:
    if len(logs) < 2:
        return None
    return Interval(math.exp(logs.min()), math.exp(logs.max()), 1.0 - 2.0 * 0.5 ** len(logs))


def _bootstrap(logs: Sequence[np.ndarray], freedom: int) -> Interval:
    count = sum(len(group) for group in logs)
    centre = float(np.mean([group.mean() for group in logs]))
    # Deviations from a mean that was itself made of them are a little too small.
    deviations = np.concatenate([group - group.mean() for group in logs]) * math.sqrt(count / freedom)
    # Normal ones are drawn as percentiles of a normal distribution; the tails are those of Student's.
    outside = NormalDist().cdf(-student_quantile(freedom))
    generator = np.random.default_rng(_SEED)
    sums = np.zeros(_RESAMPLES)
    for group in logs:
        sums += generator.choice(deviations, size=(_RESAMPLES, len(group))).mean(axis=1)
    low, high = np.quantile(sums / len(logs), [outside, 1.0 - outside])
    return Interval(math.exp(centre + float(low)), math.exp(centre + float(high)), COVERAGE)
