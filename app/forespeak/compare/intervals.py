"""Ratios of paired runs over several categories, and how sure they are.

In one category it is the runs' median with its exact interval, whatever disturbs some of them. Over several ones it is
the geometric mean of their medians, with a bootstrap interval: what is drawn are the runs' deviations from their own
category's median, so that categories which differ do not widen what is known of each. Percentiles are widened for few
values (Hesterberg, "What Teachers Should Know about the Bootstrap", 2015, section 5.3, "expanded percentile
interval"): plain ones of six values would hold the truth in nine of ten cases, not in nineteen of twenty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forespeak.compare.statistics import COVERAGE, Estimate, Interval, median_of

LEAST_FREEDOM = 5
"""Degrees of freedom from which on a 95 % interval is given; below, the values' range with what it covers."""
_RESAMPLES = 10_000
_SEED = 20260711

Floats = NDArray[np.float64]


def ratio_of(groups: Sequence[Sequence[float]]) -> Estimate | None:
    """The geometric mean of the medians of groups of ratios, which weigh equally; None without any.

    `count` is the number of all ratios. Where they are too few for a bootstrap, the interval is their range, whose
    coverage is that of the median's order statistics; with one ratio there is none.
    """
    filled = [group for group in groups if len(group)]
    if len(filled) <= 1:
        return median_of(filled[0]) if filled else None
    logs = [np.log(np.asarray(group, dtype=np.float64)) for group in filled]
    medians = np.array([np.median(group) for group in logs])
    count = sum(len(group) for group in logs)
    value = math.exp(float(medians.mean()))
    if count - len(logs) < LEAST_FREEDOM:
        # The groups say too little of their own spread: then they are taken as the values of one.
        if len(medians) <= LEAST_FREEDOM:
            every = np.concatenate(logs)
            coverage = 1.0 - 2.0 * 0.5 ** len(every)
            return Estimate(value, count, Interval(math.exp(every.min()), math.exp(every.max()), coverage))
        return Estimate(value, count, _interval([medians], float(medians.mean()), typical=np.mean))
    return Estimate(value, count, _interval(logs, float(medians.mean()), typical=np.median))


def student_quantile(freedom: int) -> float:
    """Student's t at (1 + COVERAGE) / 2, from LEAST_FREEDOM degrees of freedom on, to 0.003.

    The Cornish-Fisher expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
    """
    z = NormalDist().inv_cdf((1 + COVERAGE) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _interval(groups: Sequence[Floats], centre: float, typical: Callable[..., Any]) -> Interval:
    count = sum(len(group) for group in groups)
    freedom = count - len(groups)
    # Deviations from a value that was itself made of them are a little too small.
    deviations = np.concatenate([group - typical(group) for group in groups]) * math.sqrt(count / freedom)
    # Normal ones are drawn as percentiles of a normal distribution; the tails are those of Student's.
    outside = NormalDist().cdf(-student_quantile(freedom))
    generator = np.random.default_rng(_SEED)
    drawn = np.zeros(_RESAMPLES)
    for group in groups:
        drawn += typical(generator.choice(deviations, size=(_RESAMPLES, len(group))), axis=1)
    low, high = np.quantile(drawn / len(groups), [outside, 1.0 - outside])
    return Interval(math.exp(centre + float(low)), math.exp(centre + float(high)), COVERAGE)
