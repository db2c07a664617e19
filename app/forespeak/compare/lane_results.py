"""What a comparison found, lane by lane: figures, ratios to the target alone, verdicts, and where words differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forespeak.compare.costs import token_costs
from forespeak.compare.differences import WordDifference, differences_of
from forespeak.compare.intervals import ratio_of
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.machine import busy_words
from forespeak.compare.plan import Place
from forespeak.compare.runner import Results, Run, visit_of
from forespeak.compare.statistics import Estimate, Figures, Visited, figures, plain_runs, ratios_of
from forespeak.compare.store import State
from forespeak.compare.verdicts import Circumstances, Verdict, VerdictKind, verdict_of
from forespeak.engines.engine import Start


@dataclass(frozen=True, slots=True)
class LaneCell:
    """A lane in one category; `category` None: over all, in which categories weigh equally.

    `ratio` is of decoded tokens per second, to the target alone in the same visits; `first_token_ratio` and
    `whole_ratio` (of the whole reply, prompt included) are in `figures`.
    """

    category: str | None
    figures: Figures
    ratio: Estimate | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LaneResult:
    """`base` is the off lane it is compared with, None for that lane itself. `problem`: why nothing was measured."""

    lane: Lane
    base: Lane | None
    overall: LaneCell
    cells: tuple[LaneCell, ...]
    differences: tuple[WordDifference, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """`lanes` are `plan.all_lanes`, in their order; `headline` is the whole in one sentence; `notes` stand below."""

    plan: Plan
    results: Results
    categories: tuple[str, ...]
    lanes: tuple[LaneResult, ...]
    headline: str
    notes: tuple[str, ...]


def result_of(plan: Plan, results: Results, state: State | None = None) -> ComparisonResult:
    """All figures and words, of whatever has been measured so far. `state`: of a comparison that is kept, if it is."""
    bases = plain_runs(results)
    categories = tuple(dict.fromkeys(prompt.category for prompt in plan.prompts))
    off = plan.bases
    by_place: dict[Place, list[Run]] = {}
    for run in results.runs:
        by_place.setdefault(run.task.where, []).append(run)
    lanes = []
    for lane, places in plan.places.items():
        runs = [run for place in places for run in by_place.get(place, [])]
        base = off[plan.temperature_of(lane)]
        problems = [results.problems[place[0]] for place in places if place[0] in results.problems]
        moved = any(_moved_to_cpu(results, place[0]) for place in places)
        lanes.append(
            _lane_result(
                _Measured(plan, lane, None if lane == base else base, runs, bases, moved),
                categories,
                problems[0] if problems and not runs else None,
            )
        )
    order = {lane: index for index, lane in enumerate(plan.all_lanes)}
    lanes.sort(key=lambda result: order[result.lane])
    notes = tuple(notes_of(plan, results, state))
    return ComparisonResult(plan, results, categories, tuple(lanes), headline_of(lanes), notes)


@dataclass(frozen=True, slots=True)
class _Measured:
    plan: Plan
    lane: Lane
    base: Lane | None
    runs: Sequence[Run]
    bases: dict[Visited, Run]
    moved_to_cpu: bool

    def ratios(self, category: str) -> list[float]:
        """To the target alone in the same visits."""
        return ratios_of((run for run in self.runs if run.task.prompt.category == category), self.bases)


def _lane_result(measured: _Measured, categories: Sequence[str], problem: str | None) -> LaneResult:
    return LaneResult(
        measured.lane,
        measured.base,
        _cell(measured, None, categories),
        tuple(_cell(measured, category, (category,)) for category in categories),
        differences_of(measured.plan, measured.runs, measured.bases) if measured.base is not None else (),
        problem,
    )


def _cell(measured: _Measured, category: str | None, categories: Sequence[str]) -> LaneCell:
    runs = [run for run in measured.runs if run.task.prompt.category in categories]
    found = figures(runs, measured.bases)
    if measured.base is None:
        rate = f"{found.rate.value:.1f} tokens a second." if found.rate else "Nothing was measured."
        kind = VerdictKind.BASE if found.rate else VerdictKind.NOTHING
        return LaneCell(category, found, None, Verdict(kind, rate))
    ratio = ratio_of([measured.ratios(each) for each in categories])
    lane = measured.lane
    circumstances = Circumstances(
        token_costs(runs),
        token_costs([base for run in runs if (base := measured.bases.get(visit_of(run))) is not None]),
        found.acceptance_rate,
        lane.sources,
        lane.draft_length is None,
        measured.moved_to_cpu,
    )
    return LaneCell(category, found, ratio, verdict_of(ratio, circumstances))


def _moved_to_cpu(results: Results, pair: int) -> bool:
    """Whether a load computes on the CPU although another one of the same target did not."""
    loaded = results.loaded.get(pair)
    return (
        loaded is not None
        and loaded.computes_on_cpu
        and any(not other.computes_on_cpu for other in results.loaded.values())
    )


def headline_of(lanes: Sequence[LaneResult]) -> str:
    """The best lane in one sentence."""
    rated = [result for result in lanes if result.overall.ratio is not None]
    if not rated:
        return "Nothing could be compared."
    best = max(rated, key=lambda result: result.overall.ratio.value if result.overall.ratio else 0.0)
    assert best.overall.ratio is not None
    name, ratio = best.lane.name, best.overall.ratio
    words = {
        VerdictKind.FASTER: f"{name} is {ratio.value:.2f} times as fast as the target alone.",
        VerdictKind.SLOWER: f"{name} is slower than the target alone: {ratio.value:.2f}×.",
        VerdictKind.NO_DIFFERENCE: f"{name} makes no difference: {ratio.value:.2f}×.",
    }.get(best.overall.verdict.kind, f"{name} makes no clear difference: {ratio.value:.2f}×.")
    return words if len(rated) == 1 else f"Of {len(rated)} lanes the fastest: {words}"


def notes_of(plan: Plan, results: Results, state: State | None = None) -> Iterator[str]:
    """What a reader must know to judge the figures. `state` None: the comparison has ended as `results` say."""
    measured = {run.task.pair for run in results.runs}
    refused = [problem for pair, problem in results.problems.items() if pair in measured]
    if state is State.RUNNING:
        yield "It is being measured now: what was finished when this was read is shown."
    elif results.out_of_time:
        yield "Its time was over before everything was measured: what was finished by then is shown."
    elif refused and not results.complete:
        # It was gone on with, and there was no going on.
        yield from dict.fromkeys(f"The rest could not be measured. {problem}" for problem in refused)
    elif state is State.INTERRUPTED:
        yield "Interrupted before everything was measured: what was finished by then is shown."
    elif not results.complete:
        yield "Stopped early: what was finished by then is shown."
    loads = plan.loads
    if len(loads) > 1:
        yield (
            f"Each of the {len(loads)} draft models was loaded in turn, and the target alone was measured beside each: "
            "a lane is compared with that."
        )
    for pair, loaded in results.loaded.items():
        if loaded.draft_problem and pair not in results.problems:
            yield f"There was no draft in one of the loads. {loaded.draft_problem}"
    chatted = sum(run.chatted for run in results.runs)
    if chatted:
        yield (
            f"A chat was answered during {chatted} of {len(results.runs)} runs: these figures may be off. "
            "Measure again while nobody chats."
        )
    disturbed = busy_words([run.others_cores for run in results.runs if not run.chatted])
    if disturbed is not None:
        yield disturbed
    failures = [run.failure for run in results.runs if run.failure is not None]
    if failures:
        yield f"{'1 run' if len(failures) == 1 else f'{len(failures)} runs'} failed. {failures[0]}"
    if plan.start is Start.WARM:
        yield "The lanes shared each prompt's cache: only decoding is compared."
