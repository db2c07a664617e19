"""A comparison from its first load to its last line in the journal: what the window and the command line call."""

from __future__ import annotations

import time
from collections.abc import Callable

from forespeak.compare.control import Control
from forespeak.compare.journal import Journal
from forespeak.compare.lane_results import ComparisonResult, result_of
from forespeak.compare.lanes import Plan
from forespeak.compare.runner import Happening, PairFailed, PairReady, Ran, Results, Runner
from forespeak.compare.store import State
from forespeak.engines.engine import Engine


def measure(
    plan: Plan,
    engine: Engine,
    journal: Journal,
    listen: Callable[[Happening], None],
    control: Control,
    *,
    former: Results | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
    others: Callable[[], float] | None = None,
) -> ComparisonResult:
    """Measure a plan and note every run at once. Blocks: windows call it on a thread of their own.

    `former`: what was read from the same journal, to be gone on with. What was finished is kept however it ends; a
    disk that refuses costs nothing that is in memory, and `journal.problem` then says so. The journal is taken
    meanwhile, and released at the end. Raises UserFacingError if somebody else has it.
    """

    def hear(happening: Happening) -> None:
        match happening:
            case PairReady(pair, loaded):
                journal.loaded(pair, loaded)
            case PairFailed(pair, problem):
                journal.failed(pair, problem)
            case Ran(run):
                journal.ran(plan, run)
            case _:
                pass
        listen(happening)

    runner = Runner(
        plan.comparison(),
        engine,
        hear,
        cancelled,
        clock=clock,
        others=others,
        keep_recordings=True,
        control=control,
        former=former,
        budget_seconds=plan.budget_seconds,
    )
    journal.take()
    try:
        result = result_of(plan, runner.run())
        journal.ended(state_of(result.results).value, result.headline)
    finally:
        journal.release()
    return result


def state_of(results: Results) -> State:
    """Of a comparison that has ended."""
    if results.complete:
        return State.COMPLETE
    return State.OUT_OF_TIME if results.out_of_time else State.STOPPED
