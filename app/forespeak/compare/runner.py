"""Carries a comparison out over an engine, run by run, and tells what happens as it happens.

It blocks: windows call it on a thread of its own. Nothing here knows a terminal or a window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from forespeak.compare.control import Control
from forespeak.compare.forecast import Forecast
from forespeak.compare.machine import Disturbance, MachineNotes, machine_notes
from forespeak.compare.plan import Comparison, Task, Visit, Way, generation_request, seed_of, visits, warm_up
from forespeak.compare.recording import RecordedStep, recording_of
from forespeak.engines.collect import Reply, collect
from forespeak.engines.engine import Engine, Loaded, LoadRequest, Progress
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import FinishReason, GenerationStats, Step


@dataclass(frozen=True, slots=True)
class StepFigures:
    """What a step emitted and tested, in tokens, and took, in seconds."""

    emitted: int
    tested: int
    accepted: int
    draft_seconds: float
    target_seconds: float

    @property
    def seconds(self) -> float:
        return self.draft_seconds + self.target_seconds


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run, or one that failed: then `failure` says why, and there are no figures.

    `others_cores`: processor cores that other programs used meanwhile, on average; `chatted`: this program's own chat
    computed meanwhile. `identical`: whether the tokens are those of plain in the same visit, else `differs_at` is the
    first one that is not, counted from 0; None where there is nothing to compare with. `began` counts seconds since the
    comparison's own beginning. `recording` is empty unless the runner was asked to keep it.
    """

    task: Task
    seed: int
    began: float
    seconds: float
    others_cores: float = 0.0
    chatted: bool = False
    failure: str | None = None
    finish: FinishReason | None = None
    text: str = ""
    token_ids: tuple[int, ...] = ()
    steps: tuple[StepFigures, ...] = ()
    stats: GenerationStats = field(default_factory=GenerationStats)
    notices: tuple[str, ...] = ()
    identical: bool | None = None
    differs_at: int | None = None
    recording: tuple[RecordedStep, ...] = ()

    @property
    def rate(self) -> float | None:
        """Decoded tokens per second; None if it failed or wrote one token only, which is the prompt's."""
        return self.stats.tokens_per_second or None


@dataclass(slots=True)
class Results:
    """What has been measured so far. `problems` are pairs that could not be loaded, and why.

    `complete`: all was measured. `out_of_time`: it ended because its time was over.
    """

    comparison: Comparison
    machine: MachineNotes
    began_at: datetime
    loaded: dict[int, Loaded] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    complete: bool = False
    out_of_time: bool = False


@dataclass(frozen=True, slots=True)
class Loading:
    """A pair is being loaded."""

    pair: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class PairReady:
    pair: int
    loaded: Loaded


@dataclass(frozen=True, slots=True)
class PairFailed:
    """A pair cannot be measured; the others still are."""

    pair: int
    problem: str


@dataclass(frozen=True, slots=True)
class Running:
    """A run begins. `done` of `total` are finished; `seconds_left` None: nothing is known yet."""

    task: Task
    done: int
    total: int
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step of the run that goes on, told where recordings are kept."""

    task: Task
    step: Step


@dataclass(frozen=True, slots=True)
class Ran:
    """A run is over. It is not compared with plain before its visit is."""

    run: Run


@dataclass(frozen=True, slots=True)
class Paused:
    """Nothing runs until it goes on."""


@dataclass(frozen=True, slots=True)
class WentOn:
    pass


@dataclass(frozen=True, slots=True)
class Visited:
    """A visit is over, whole or stopped: its runs, compared with plain."""

    runs: tuple[Run, ...]


Happening = Loading | PairReady | PairFailed | Running | Stepped | Ran | Visited | Paused | WentOn


class Runner:
    """Measures one comparison. `clock` gives seconds; `others` the cores that others used since it was last asked.

    `keep_recordings`: each run keeps what a replay needs, and steps are told as they come. `former` is what an earlier
    runner of the same comparison left: it is kept, and what is missing is made. `budget_seconds`: no visit is begun
    that would probably end later; each pair has an equal share of what is left. A pause does not count.
    """

    def __init__(
        self,
        comparison: Comparison,
        engine: Engine,
        listen: Callable[[Happening], None],
        cancelled: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.perf_counter,
        others: Callable[[], float] | None = None,
        keep_recordings: bool = False,
        control: Control | None = None,
        former: Results | None = None,
        budget_seconds: float | None = None,
    ) -> None:
        self._comparison = comparison
        self._engine = engine
        self._listen = listen
        self._control = control or Control()
        self._asked_to_stop = cancelled
        self._clock = clock
        self._others = Disturbance().since_last_look if others is None else others
        self._keep_recordings = keep_recordings
        self._former = former
        self._done = {_apart_from_place(run.task): run for run in former.runs} if former else {}
        self._budget = budget_seconds
        self._started = clock()
        # The seconds of this runner's runs go on where the last one ended.
        self._began = self._started - max((run.began + run.seconds for run in self._done.values()), default=0.0)
        self._paused_seconds = 0.0
        self._deadline: float | None = None
        self._late = False
        self._forecast = Forecast(comparison)
        self.results = Results(comparison, machine_notes(), former.began_at if former else datetime.now(UTC))
        if former:
            self.results.loaded.update(former.loaded)
            self.results.problems.update(former.problems)

    def run(self) -> Results:
        """Measure until all is done or `cancelled`: then what was finished is there and `complete` is False.

        A pair or a run that fails is recorded, and the rest goes on.
        """
        pairs = range(len(self._comparison.pairs))
        whole = True
        for pair in pairs:
            self._share_time(len(pairs) - pair)
            if not self._measure_pair(pair):
                whole = False
                if self._cancelled():
                    break
        self.results.complete = whole
        self.results.out_of_time = not whole and self._late and not self._cancelled()
        self._keep_what_was_not_reached()
        return self.results

    def _cancelled(self) -> bool:
        return self._asked_to_stop() or self._control.stopped()

    def _share_time(self, pairs_left: int) -> None:
        if self._budget is not None:
            now = self._clock() - self._paused_seconds
            self._deadline = now + max(0.0, self._started + self._budget - now) / pairs_left

    def _measure_pair(self, pair: int) -> bool:
        """False: not all of it was measured."""
        comparison = self._comparison
        if self._keep_what_is_done(pair):
            return True
        try:
            loaded = self._load(pair, comparison.load_request(comparison.pairs[pair]))
        except UserFacingError as error:
            return self._give_up(pair, str(error))
        if loaded is None:
            return False
        if self._lost_its_draft(pair, loaded):
            return self._give_up(pair, loaded.draft_problem or "Its draft model is not there any more.")
        self.results.loaded[pair] = loaded
        ways = self._usable_ways(pair, loaded)
        if len(ways) == 1:
            why = loaded.draft_problem or "It has no draft model, and all that is compared needs one."
            return self._give_up(pair, why)
        self.results.problems.pop(pair, None)
        self._listen(PairReady(pair, loaded))
        self._forecast.keep(pair, ways)
        if comparison.warm_up:
            for task in warm_up(comparison, pair, ways):
                if self._run(task, first=True) is None:
                    return False
        return all(self._visit(visit) for visit in visits(comparison, pair, ways))

    def _keep_what_is_done(self, pair: int) -> bool:
        """Whether an earlier runner has done all of a pair, so that it need not be loaded."""
        loaded = self.results.loaded.get(pair)
        if loaded is None:
            return False
        ways = self._usable_ways(pair, loaded)
        everything = list(visits(self._comparison, pair, ways))
        if not everything or not all(self._is_done(task) for visit in everything for task in visit):
            return False
        self._forecast.keep(pair, ways)
        return all(self._visit(visit) for visit in everything)

    def _usable_ways(self, pair: int, loaded: Loaded) -> list[Way]:
        ways = self._comparison.ways_of(self._comparison.pairs[pair])
        return [way for way in ways if loaded.draft or not way.needs_model]

    def _lost_its_draft(self, pair: int, loaded: Loaded) -> bool:
        """Whether an earlier runner had a draft model that is refused now: without it, lanes would go unmeasured."""
        before = self._former.loaded.get(pair) if self._former else None
        return before is not None and before.draft is not None and loaded.draft is None

    def _give_up(self, pair: int, problem: str) -> bool:
        """Whether that ends it: one that is gone on with can be gone on with again, once the problem is mended."""
        self.results.problems[pair] = problem
        self._forecast.drop(pair)
        self._listen(PairFailed(pair, problem))
        return self._former is None

    def _is_done(self, task: Task) -> bool:
        return _apart_from_place(task) in self._done

    def _keep_what_was_not_reached(self) -> None:
        """What an earlier runner has measured stays, however early this one ends."""
        reached = {_apart_from_place(run.task) for run in self.results.runs}
        left = [run for task, run in self._done.items() if task not in reached]
        if left:
            self.results.runs[:] = compared_by_visit([*self.results.runs, *left])

    def _load(self, pair: int, request: LoadRequest) -> Loaded | None:
        return self._engine.load(request, lambda progress: self._listen(Loading(pair, progress)), self._cancelled)

    def _visit(self, visit: Visit) -> bool:
        """False: stopped, or out of time. What was finished by then is kept."""
        runs: list[Run] = []
        made = 0
        if self._too_late(visit):
            return False
        for task in visit:
            former = self._done.get(_apart_from_place(task))
            run = former or self._run(task, first=made == 0)
            if run is None:
                break
            self._forecast.add(run)
            runs.append(run)
            if former is None:
                made += 1
                self._listen(Ran(run))
        visited = compared(runs)
        self.results.runs += visited
        if made:
            self._listen(Visited(visited))
        return len(runs) == len(visit)

    def _too_late(self, visit: Visit) -> bool:
        """Whether a visit would end behind the time, as far as that is known. One is made in any case."""
        if self._deadline is None or all(self._is_done(task) for task in visit):
            return False
        now = self._clock() - self._paused_seconds
        if not any(run.task.pair == visit[0].pair for run in self.results.runs):
            late = now >= self._deadline
        else:
            expected = sum(self._forecast.seconds_of(task) for task in visit if not self._is_done(task))
            late = now + expected > self._deadline
        self._late |= late
        return late

    def _wait_if_paused(self) -> None:
        if self._control.is_paused:
            began = self._clock()
            self._listen(Paused())
            self._control.wait()
            self._paused_seconds += self._clock() - began
            self._listen(WentOn())

    def _run(self, task: Task, *, first: bool) -> Run | None:
        """One run from beginning to end; None if it was stopped in between."""
        self._wait_if_paused()
        if self._cancelled():
            return None
        self._listen(Running(task, self._forecast.done, self._forecast.total, self._forecast.seconds_left))
        reply: Reply | None = None
        failure: str | None = None
        self._others()
        self._control.chatted()
        began = self._clock()
        events = self._engine.generate(generation_request(self._comparison, task, first=first), self._cancelled)
        try:
            reply = collect(events, partial(self._stepped, task) if self._keep_recordings else None)
        except UserFacingError as error:
            failure = str(error)
        seconds, others = self._clock() - began, self._others()
        chatted = self._control.chatted()
        run = Run(task, seed_of(self._comparison, task), began - self._began, seconds, others, chatted, failure)
        if reply is None:
            return run
        if reply.reason is FinishReason.CANCELLED:
            return None
        return replace(
            run,
            finish=reply.reason,
            text=reply.text,
            token_ids=tuple(token.id for step in reply.steps for token in step.emitted),
            steps=tuple(map(figures_of, reply.steps)),
            stats=reply.stats,
            notices=reply.notices,
            recording=recording_of(reply.steps, reply.stats) if self._keep_recordings else (),
        )

    def _stepped(self, task: Task, step: Step) -> None:
        self._listen(Stepped(task, step))


def figures_of(step: Step) -> StepFigures:
    return StepFigures(
        len(step.emitted), step.tested_count, step.accepted_count, step.draft_seconds, step.target_seconds
    )


def visit_of(run: Run) -> tuple[int, float, str, str, int | None]:
    """What the runs of one visit have in common."""
    task = run.task
    return (task.pair, task.temperature, task.prompt.category, task.prompt.name, task.repetition)


def compared(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs of a visit, each but plain compared with plain, token by token."""
    plain = next((run for run in runs if run.task.way.is_plain and run.failure is None), None)
    if plain is None:
        return tuple(runs)
    return tuple(
        run if run is plain or run.failure is not None else _compared_with(plain.token_ids, run) for run in runs
    )


def compared_by_visit(runs: Iterable[Run]) -> list[Run]:
    """The same for runs of many visits."""
    visited: dict[object, list[Run]] = {}
    for run in runs:
        visited.setdefault(visit_of(run), []).append(run)
    return [run for visit in visited.values() for run in compared(visit)]


def _apart_from_place(task: Task) -> Task:
    """What is to be measured, whenever its turn comes: with other ways beside it, it has another place."""
    return replace(task, place=0)


def _compared_with(plain: Sequence[int], run: Run) -> Run:
    if run.token_ids == plain:
        return replace(run, identical=True)
    pairs = enumerate(zip(plain, run.token_ids, strict=False))
    shorter = min(len(plain), len(run.token_ids))
    return replace(run, identical=False, differs_at=next((i for i, (a, b) in pairs if a != b), shorter))
