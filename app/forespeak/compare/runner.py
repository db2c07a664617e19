"""Carries a comparison out over an engine, run by run, and tells what happens as it happens.

It blocks: windows call it on a thread of its own. Nothing here knows a terminal or a window.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from forespeak.compare.machine import Disturbance, MachineNotes, machine_notes
from forespeak.compare.plan import Comparison, Task, Visit, Way, generation_request, seed_of, visits, warm_up
from forespeak.engines.engine import Engine, Loaded, LoadRequest, Notice, Progress
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import FinishReason, GenerationStats, Step, text_of

_RECENT = 12
"""Runs of a kind whose mean tells how long the next one takes."""


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

    `others_cores`: processor cores that other programs used meanwhile, on average. `identical`: whether the tokens
    are those of plain in the same visit, else `differs_at` is the first one that is not, counted from 0; None where
    there is nothing to compare with. `began` counts seconds since the comparison's own beginning.
    """

    task: Task
    seed: int
    began: float
    seconds: float
    others_cores: float = 0.0
    failure: str | None = None
    finish: FinishReason | None = None
    text: str = ""
    token_ids: tuple[int, ...] = ()
    steps: tuple[StepFigures, ...] = ()
    stats: GenerationStats = field(default_factory=GenerationStats)
    notices: tuple[str, ...] = ()
    identical: bool | None = None
    differs_at: int | None = None

    @property
    def rate(self) -> float | None:
        """Decoded tokens per second; None if it failed or wrote one token only, which is the prompt's."""
        return self.stats.tokens_per_second or None


@dataclass(slots=True)
class Results:
    """What has been measured so far. `problems` are pairs that could not be loaded, and why."""

    comparison: Comparison
    machine: MachineNotes
    began_at: datetime
    loaded: dict[int, Loaded] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    complete: bool = False


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
class Ran:
    run: Run


@dataclass(frozen=True, slots=True)
class Visited:
    """A visit is over, whole or stopped: its runs, compared with plain."""

    runs: tuple[Run, ...]


Happening = Loading | PairReady | PairFailed | Running | Ran | Visited


class Runner:
    """Measures one comparison. `clock` gives seconds; `others` the cores that others used since it was last asked."""

    def __init__(
        self,
        comparison: Comparison,
        engine: Engine,
        listen: Callable[[Happening], None],
        cancelled: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.perf_counter,
        others: Callable[[], float] | None = None,
    ) -> None:
        self._comparison = comparison
        self._engine = engine
        self._listen = listen
        self._cancelled = cancelled
        self._clock = clock
        self._others = Disturbance().since_last_look if others is None else others
        self._began = clock()
        self._forecast = _Forecast(comparison)
        self.results = Results(comparison, machine_notes(), datetime.now(UTC))

    def run(self) -> Results:
        """Measure until all is done or `cancelled`: then what was finished is there and `complete` is False.

        A pair or a run that fails is recorded, and the rest goes on.
        """
        self.results.complete = all(self._measure_pair(pair) for pair in range(len(self._comparison.pairs)))
        return self.results

    def _measure_pair(self, pair: int) -> bool:
        """False: stopped."""
        comparison = self._comparison
        try:
            loaded = self._load(pair, comparison.load_request(comparison.pairs[pair]))
        except UserFacingError as error:
            self._give_up(pair, str(error))
            return True
        if loaded is None:
            return False
        self.results.loaded[pair] = loaded
        ways = [way for way in comparison.ways_of(comparison.pairs[pair]) if loaded.draft or not way.needs_model]
        if len(ways) == 1:
            self._give_up(pair, loaded.draft_problem or "It has no draft model, and all that is compared needs one.")
            return True
        self._listen(PairReady(pair, loaded))
        self._forecast.keep(pair, ways)
        if comparison.warm_up:
            for task in warm_up(comparison, pair, ways):
                if self._run(task) is None:
                    return False
        return all(self._visit(visit) for visit in visits(comparison, pair, ways))

    def _give_up(self, pair: int, problem: str) -> None:
        self.results.problems[pair] = problem
        self._forecast.drop(pair)
        self._listen(PairFailed(pair, problem))

    def _load(self, pair: int, request: LoadRequest) -> Loaded | None:
        return self._engine.load(request, lambda progress: self._listen(Loading(pair, progress)), self._cancelled)

    def _visit(self, visit: Visit) -> bool:
        """False: stopped. What was finished by then is kept."""
        runs: list[Run] = []
        for task in visit:
            run = self._run(task)
            if run is None:
                break
            self._forecast.add(run)
            runs.append(run)
            self._listen(Ran(run))
        compared = _compared(runs)
        self.results.runs += compared
        self._listen(Visited(compared))
        return len(runs) == len(visit)

    def _run(self, task: Task) -> Run | None:
        """One run from beginning to end; None if it was stopped in between."""
        if self._cancelled():
            return None
        self._listen(Running(task, self._forecast.done, self._forecast.total, self._forecast.seconds_left))
        steps: list[Step] = []
        notices: list[str] = []
        finished: Finished | None = None
        failure: str | None = None
        self._others()
        began = self._clock()
        events = self._engine.generate(generation_request(self._comparison, task), self._cancelled)
        try:
            for event in events:
                match event:
                    case Step():
                        steps.append(event)
                    case Notice(text):
                        notices.append(text)
                    case Finished():
                        finished = event
                    case _:
                        pass
        except UserFacingError as error:
            failure = str(error)
        finally:
            # Whatever went wrong here, the engine has to end the generation before it can do anything else.
            if isinstance(events, Generator):
                events.close()
        seconds, others = self._clock() - began, self._others()
        run = Run(task, seed_of(self._comparison, task), began - self._began, seconds, others, failure)
        if failure is not None:
            return run
        if finished is None:
            raise RuntimeError("a generation ended without saying how")
        if finished.reason is FinishReason.CANCELLED:
            return None
        return replace(
            run,
            finish=finished.reason,
            text=text_of(steps),
            token_ids=tuple(token.id for step in steps for token in step.emitted),
            steps=tuple(map(_figures, steps)),
            stats=finished.stats,
            notices=tuple(notices),
        )


def _figures(step: Step) -> StepFigures:
    return StepFigures(
        len(step.emitted), step.tested_count, step.accepted_count, step.draft_seconds, step.target_seconds
    )


def _compared(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs of a visit, each but plain compared with plain, token by token."""
    plain = next((run for run in runs if run.task.way.is_plain and run.failure is None), None)
    if plain is None:
        return tuple(runs)
    return tuple(
        run if run is plain or run.failure is not None else _compared_with(plain.token_ids, run) for run in runs
    )


def _compared_with(plain: Sequence[int], run: Run) -> Run:
    if run.token_ids == plain:
        return replace(run, identical=True)
    pairs = enumerate(zip(plain, run.token_ids, strict=False))
    shorter = min(len(plain), len(run.token_ids))
    return replace(run, identical=False, differs_at=next((i for i, (a, b) in pairs if a != b), shorter))


class _Forecast:
    """How many runs are left, and how long they take, judged by the finished ones of the same pair and way."""

    def __init__(self, comparison: Comparison) -> None:
        self._each = comparison.runs * len(comparison.prompts) * len(comparison.temperatures)
        self._left: Counter[tuple[int, Way]] = Counter()
        self._took: defaultdict[tuple[int, Way], list[float]] = defaultdict(list)
        self.done = 0
        for pair in range(len(comparison.pairs)):
            self.keep(pair, comparison.ways_of(comparison.pairs[pair]))

    @property
    def total(self) -> int:
        return self.done + self._left.total()

    @property
    def seconds_left(self) -> float | None:
        known = {kind: sum(took[-_RECENT:]) / len(took[-_RECENT:]) for kind, took in self._took.items()}
        if not known:
            return None
        usual = sum(known.values()) / len(known)
        return sum(count * known.get(kind, usual) for kind, count in self._left.items())

    def keep(self, pair: int, ways: Sequence[Way]) -> None:
        """These are the ways of the pair that will be measured."""
        self.drop(pair)
        self._left.update({(pair, way): self._each for way in ways})

    def drop(self, pair: int) -> None:
        for kind in [kind for kind in self._left if kind[0] == pair]:
            del self._left[kind]

    def add(self, run: Run) -> None:
        kind = (run.task.pair, run.task.way)
        self.done += 1
        self._left[kind] -= 1
        if run.failure is None:
            self._took[kind].append(run.seconds)
