"""The chi-square test of counts against exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

Cell = TypeVar("Cell", bound=Hashable)


def chi_square_p(counts: Mapping[Cell, int], probabilities: Mapping[Cell, float]) -> float:
    """How likely counts at least this far from `probabilities` are. 0 if something impossible was counted.

    Cells that expect fewer than five are taken together.
    """
    total = sum(counts.values())
    if any(probabilities.get(cell, 0.0) <= 0.0 for cell, count in counts.items() if count):
        return 0.0
    cells: list[tuple[float, int]] = []
    rare_expected, rare_count = 0.0, 0
    for cell, probability in probabilities.items():
        if probability * total >= 5.0:
            cells.append((probability * total, counts.get(cell, 0)))
        else:
            rare_expected += probability * total
            rare_count += counts.get(cell, 0)
    if rare_expected >= 5.0 or not cells:
        cells.append((rare_expected, rare_count))
    elif rare_expected > 0.0:
        expected, count = cells.pop()
        cells.append((expected + rare_expected, count + rare_count))
    statistic = sum((count - expected) ** 2 / expected for expected, count in cells)
    return upper_tail(statistic, len(cells) - 1)


def upper_tail(statistic: float, freedom: int) -> float:
    """P(chi-square with `freedom` degrees >= statistic), by the recurrence of the incomplete gamma function."""
    if freedom == 0:
        return 1.0
    x = statistic / 2.0
    if x <= 0.0:
        return 1.0
    a, tail = (1.0, math.exp(-x)) if freedom % 2 == 0 else (0.5, math.erfc(math.sqrt(x)))
    while a < freedom / 2.0 - 1e-9:
        tail += math.exp(a * math.log(x) - x - math.lgamma(a + 1.0))
        a += 1.0
    return min(tail, 1.0)
