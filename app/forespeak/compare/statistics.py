"""What the runs of a comparison say: medians, ratios to plain paired within a repetition, and how sure they are.

Intervals of a median are exact order-statistic intervals (David and Nagaraja, "Order Statistics", section 7.1): the
k-th smallest and the k-th largest value hold the median with a probability that depends on their number alone, if runs
are independent. They speak of the prompts that were measured, not of all that there could be. Few runs allow no 95 %
interval: then it is the range of all of them, with the coverage that it has. Intervals of a geometric mean are
bootstrap percentiles over what it is the mean of.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forespeak.compare.plan import PLAIN, Way
from forespeak.compare.runner import Results, Run, visit_of

COVERAGE = 0.95
_RESAMPLES = 4000
_SEED = 20240711


@dataclass(frozen=True, slots=True)
class Interval:
    """`coverage` is the probability with which such intervals hold the true value; COVERAGE at least, if possible."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, made of `count` values. `interval` None: too few to say anything."""

    value: float
    count: int
    interval: Interval | None = None


def median_of(values: Sequence[float]) -> Estimate | None:
    """Their median with an exact interval; None if there are none."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    value = statistics.median(ordered)
    if count == 1:
        return Estimate(value, 1)
    # P(the median lies outside on one side) when `cut` values are left out there.
    cut, outside = 0, 0.5**count
    while cut + 1 < count / 2:
        wider = outside + math.comb(count, cut + 1) * 0.5**count
        if 1.0 - 2.0 * wider < COVERAGE:
            break
        cut, outside = cut + 1, wider
    return Estimate(value, count, Interval(ordered[cut], ordered[count - 1 - cut], 1.0 - 2.0 * outside))


def geometric_mean_of(values: Sequence[float]) -> Estimate | None:
    """The geometric mean of positive values, with a percentile bootstrap interval from three values on."""
    if not values:
        return None
    logs = np.log(np.asarray(values, dtype=np.float64))
    mean = float(np.exp(logs.mean()))
    if len(values) < 3:
        return Estimate(mean, len(values))
    picks = np.random.default_rng(_SEED).integers(0, len(values), size=(_RESAMPLES, len(values)))
    low, high = np.quantile(np.exp(logs[picks].mean(axis=1)), [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Estimate(mean, len(values), Interval(float(low), float(high), COVERAGE))


@dataclass(frozen=True, slots=True)
class Figures:
    """What some runs of one way say together. Seconds, tokens and tokens per second; None where nothing tells.

    `rate` (of decoding) and `first_token` are medians; `ratio`, `whole_ratio` (of tokens per second of the whole reply,
    the prompt's reading included) and `first_token_ratio` are medians of the runs' ratios to plain in the same visit.
    Rates of acceptance are of all drafts together. `gaps` are the 50th, 95th and 99th percentile of a
    token's time: its step's seconds, shared by the tokens that the step emitted. `identical` of `compared` runs have
    plain's tokens; `first_difference` is the earliest token, counted from 0, at which one does not.
    """

    runs: int
    failures: tuple[str, ...]
    tokens: float | None
    rate: Estimate | None
    ratio: Estimate | None
    whole_ratio: float | None
    first_token: float | None
    first_token_ratio: float | None
    prompt_rate: float | None
    acceptance_rate: float | None
    mean_acceptance_length: float | None
    acceptance_by_position: tuple[float, ...]
    draft_time_share: float | None
    gaps: tuple[float, float, float] | None
    peak_memory_bytes: int | None
    identical: int
    compared: int
    first_difference: int | None


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one way in one category, of one pair at one temperature."""

    pair: int
    temperature: float
    category: str
    way: Way
    figures: Figures


@dataclass(frozen=True, slots=True)
class Total:
    """One way over all categories, of one pair at one temperature. `ratio` is the geometric mean of the cells'."""

    pair: int
    temperature: float
    way: Way
    ratio: Estimate | None
    worst: Cell | None
    figures: Figures


@dataclass(frozen=True, slots=True)
class AutoAgainstFixed:
    """Auto's rate over that of the fixed length which was best in each cell, plain (0) included: the geometric mean.

    The best of several measured medians is a little better than any of them truly is, so this is on the strict side.
    """

    auto: Way
    ratio: Estimate
    worst: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole comparison. `overall` is each way's geometric mean over the cells of all pairs and temperatures."""

    cells: tuple[Cell, ...]
    totals: tuple[Total, ...]
    overall: tuple[tuple[Way, Estimate], ...]
    against_fixed: tuple[AutoAgainstFixed, ...]


Visited = tuple[int, float, str, str, int | None]


def plain_runs(results: Results) -> dict[Visited, Run]:
    """The plain run of each visit, where it succeeded."""
    return {visit_of(run): run for run in results.runs if run.task.way.is_plain and run.failure is None}


def ratios_of(runs: Iterable[Run], plain: Mapping[Visited, Run]) -> list[float]:
    """Of decoded tokens per second, run by run, to plain in the same visit."""
    paired = [(run, base) for run in runs if run.failure is None and (base := plain.get(visit_of(run))) is not None]
    return [run.rate / base.rate for run, base in paired if run.rate and base.rate]


def summarise(results: Results) -> Summary:
    plain = plain_runs(results)
    groups: defaultdict[tuple[int, float, Way, str], list[Run]] = defaultdict(list)
    for run in results.runs:
        groups[run.task.pair, run.task.temperature, run.task.way, run.task.prompt.category].append(run)
    categories = list(dict.fromkeys(prompt.category for prompt in results.comparison.prompts))
    ways = (PLAIN, *results.comparison.ways)
    cells: list[Cell] = []
    totals: list[Total] = []
    for pair in range(len(results.comparison.pairs)):
        for temperature in results.comparison.temperatures:
            for way in ways:
                mine = [
                    Cell(pair, temperature, category, way, figures(groups[pair, temperature, way, category], plain))
                    for category in categories
                    if (pair, temperature, way, category) in groups
                ]
                if mine:
                    runs = [run for cell in mine for run in groups[pair, temperature, way, cell.category]]
                    cells += mine
                    totals.append(_total(mine, figures(runs, plain)))
    overall = [(way, _mean_ratio([cell for cell in cells if cell.way == way])) for way in results.comparison.ways]
    return Summary(
        tuple(cells),
        tuple(totals),
        tuple((way, estimate) for way, estimate in overall if estimate is not None),
        tuple(_against_fixed(cells, results.comparison.ways)),
    )


def _total(cells: Sequence[Cell], figures: Figures) -> Total:
    first = cells[0]
    rated = [cell for cell in cells if cell.figures.ratio is not None]
    worst = min(rated, key=lambda cell: _ratio(cell) or 0.0, default=None)
    ratio = _mean_ratio(cells) if len(rated) != 1 else rated[0].figures.ratio
    return Total(first.pair, first.temperature, first.way, ratio, worst, figures)


def _ratio(cell: Cell) -> float | None:
    return cell.figures.ratio.value if cell.figures.ratio is not None else None


def _mean_ratio(cells: Sequence[Cell]) -> Estimate | None:
    return geometric_mean_of([ratio for cell in cells if (ratio := _ratio(cell)) is not None])


def _against_fixed(cells: Sequence[Cell], ways: Sequence[Way]) -> Iterable[AutoAgainstFixed]:
    places: defaultdict[tuple[int, float, str], dict[Way, float]] = defaultdict(dict)
    for cell in cells:
        if (ratio := _ratio(cell)) is not None:
            places[cell.pair, cell.temperature, cell.category][cell.way] = ratio
    for auto in (way for way in ways if way.draft_length is None):
        fixed = [way for way in ways if way.sources == auto.sources and way.draft_length is not None]
        against = [
            ratios[auto] / max([1.0, *(ratios[way] for way in fixed if way in ratios)])
            for ratios in places.values()
            if auto in ratios
        ]
        mean = geometric_mean_of(against)
        if fixed and mean is not None:
            yield AutoAgainstFixed(auto, mean, min(against))


def figures(runs: Sequence[Run], plain: Mapping[Visited, Run]) -> Figures:
    """The figures of runs of one way; `plain` are the `plain_runs`."""
    good = [run for run in runs if run.failure is None]
    paired = [(run, plain[visit]) for run in good if (visit := visit_of(run)) in plain]
    # The first step is the prompt's evaluation: its time belongs to the time to first token.
    steps = [step for run in good for step in run.steps[1:]]
    tested = [step for run in good for step in run.steps if step.tested]
    drafting, target = sum(step.draft_seconds for step in steps), sum(step.target_seconds for step in steps)
    gaps = [step.seconds / step.emitted for step in steps for _ in range(step.emitted)]
    compared = [run for run in good if run.identical is not None]
    return Figures(
        runs=len(good),
        failures=tuple(run.failure for run in runs if run.failure is not None),
        tokens=_median([run.stats.generated_tokens for run in good]),
        rate=median_of([run.rate for run in good if run.rate is not None]),
        ratio=None if not runs or runs[0].task.way.is_plain else median_of(ratios_of(good, plain)),
        whole_ratio=_median(
            [
                whole / whole_base
                for run, base in paired
                if (whole := _whole_rate(run)) and (whole_base := _whole_rate(base))
            ]
        ),
        first_token=_median([run.stats.time_to_first_token_seconds for run in good]),
        first_token_ratio=_median(
            [
                run.stats.time_to_first_token_seconds / base.stats.time_to_first_token_seconds
                for run, base in paired
                if base.stats.time_to_first_token_seconds > 0
            ]
        ),
        prompt_rate=_median([run.stats.prompt_tokens_per_second for run in good]),
        acceptance_rate=_share(sum(step.accepted for step in tested), sum(step.tested for step in tested)),
        mean_acceptance_length=_share(sum(step.emitted for step in tested), len(tested)),
        acceptance_by_position=_by_position([(step.tested, step.accepted) for step in tested]),
        draft_time_share=_share(drafting, drafting + target),
        gaps=_percentiles(gaps),
        peak_memory_bytes=max((run.stats.peak_memory_bytes or 0 for run in good), default=0) or None,
        identical=sum(run.identical is True for run in compared),
        compared=len(compared),
        first_difference=min((run.differs_at for run in compared if run.differs_at is not None), default=None),
    )


def _whole_rate(run: Run) -> float | None:
    stats = run.stats
    return _share(stats.generated_tokens, stats.time_to_first_token_seconds + stats.decode_seconds)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _percentiles(gaps: Sequence[float]) -> tuple[float, float, float] | None:
    if not gaps:
        return None
    middle, late, last = np.quantile(np.asarray(gaps), [0.5, 0.95, 0.99])
    return float(middle), float(late), float(last)


def _by_position(steps: Sequence[tuple[int, int]]) -> tuple[float, ...]:
    """Of the steps that tested an i-th token, those that accepted it: the definition of `trace.StepCounter`."""
    longest = max((tested for tested, _ in steps), default=0)
    return tuple(
        sum(accepted > place for _, accepted in steps) / sum(tested > place for tested, _ in steps)
        for place in range(longest)
    )
