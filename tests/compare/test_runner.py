"""Runs over an engine with made-up times: what is recorded, what fails, what is left when it is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare.timed_engine import AUTO, DRAFT, FOUR, PROMPT_SECONDS, TARGET, TimedEngine, comparison, measured, steady
from forespeak.compare.plan import PLAIN, Pair, Way
from forespeak.compare.runner import (
    Happening,
    Loading,
    PairFailed,
    PairReady,
    Ran,
    Runner,
    Running,
    StepFigures,
    Visited,
)
from forespeak.speculation.trace import FinishReason, Source


def test_every_run_is_recorded_with_its_figures() -> None:
    results = measured()
    assert results.complete
    assert len(results.runs) == 2 * 2 * 3
    plain, auto = (next(run for run in results.runs if run.task.way == way) for way in (PLAIN, AUTO))
    assert plain.rate == pytest.approx(10.0)
    assert auto.rate == pytest.approx(20.0)
    assert auto.seconds == pytest.approx(PROMPT_SECONDS + 8 * 0.05)
    assert auto.finish is FinishReason.LENGTH
    assert auto.text == "x " * 9
    assert len(auto.token_ids) == 9
    assert auto.steps[0] == StepFigures(1, 0, 0, 0.0, 0.05)
    assert (auto.steps[1].emitted, auto.steps[1].tested, auto.steps[1].accepted) == (2, 2, 1)
    assert auto.steps[1].seconds == pytest.approx(0.1)


def test_warm_ups_count_nowhere() -> None:
    engine = TimedEngine()
    results = measured(engine, warm_up=True, tokens=40)
    assert len(engine.requests) == len(results.runs) + 3
    assert [request.max_tokens for request in engine.requests[:4]] == [16, 16, 16, 40]
    assert all(run.task.repetition is not None for run in results.runs)


def test_words_are_compared_with_plain_wherever_it_stood() -> None:
    results = measured(TimedEngine(parts_at=5), runs=3)
    for run in results.runs:
        if run.task.way == PLAIN:
            assert (run.identical, run.differs_at) == (None, None)
        else:
            assert (run.identical, run.differs_at) == (False, 5)
    assert {run.task.place for run in results.runs if run.task.way == PLAIN} == {0, 2}
    assert all(run.identical for run in measured().runs if run.task.way != PLAIN)


def test_happenings_come_in_order_and_tell_the_time_left() -> None:
    heard: list[Happening] = []
    measured(heard=heard, runs=1, warm_up=True)
    assert [type(happening) for happening in heard[:5]] == [Loading, PairReady, Running, Running, Running]
    assert [type(happening) for happening in heard[5:12]] == [Running, Ran] * 3 + [Visited]
    begun = [happening for happening in heard if isinstance(happening, Running) and happening.task.repetition == 0]
    assert [(running.done, running.total) for running in begun] == [(done, 6) for done in range(6)]
    assert begun[0].seconds_left is None
    each = {PLAIN: 8 * 0.1 + 0.25, AUTO: 8 * 0.05 + 0.25, FOUR: 8 * 0.08 + 0.25}
    assert begun[3].seconds_left == pytest.approx(sum(each.values()))
    assert begun[5].seconds_left == pytest.approx(each[begun[5].task.way])


def test_a_stop_keeps_what_is_finished() -> None:
    engine = TimedEngine()
    # In the middle of the fifth run: one visit and one run are whole.
    results = measured(engine, stop=lambda: len(engine.requests) == 5)
    assert not results.complete
    assert len(results.runs) == 4
    assert [run.identical for run in results.runs if run.task.way != PLAIN][:2] == [True, True]


def test_a_stop_while_loading_measures_nothing() -> None:
    results = measured(stop=lambda: True)
    assert not results.complete
    assert results.runs == []


def test_a_run_that_fails_is_recorded_and_the_others_go_on() -> None:
    engine = TimedEngine(fails=lambda request: "Too long." if request.draft_length == 4 else None)
    results = measured(engine)
    assert results.complete
    failed = [run for run in results.runs if run.failure]
    assert len(failed) == 4
    assert {(run.task.way, run.failure, run.rate, run.finish) for run in failed} == {(FOUR, "Too long.", None, None)}
    assert all(run.identical for run in results.runs if run.task.way == AUTO)


def test_without_plain_there_is_nothing_to_compare_with() -> None:
    results = measured(TimedEngine(fails=lambda request: None if request.sources else "No."))
    assert {run.identical for run in results.runs} == {None}


def test_a_bug_ends_it_all() -> None:
    def broken(_: object) -> str | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measured(TimedEngine(fails=broken))


def test_a_pair_that_cannot_be_loaded_leaves_the_others() -> None:
    heard: list[Happening] = []
    engine = TimedEngine(refuses=frozenset({"broken"}))
    pairs = (Pair(Path("broken.gguf"), DRAFT), Pair(TARGET, DRAFT))
    results = measured(engine, heard=heard, pairs=pairs, runs=1)
    assert results.complete
    assert list(results.problems) == [0]
    assert "It is broken." in results.problems[0]
    assert {run.task.pair for run in results.runs} == {1}
    assert any(isinstance(happening, PairFailed) for happening in heard)
    assert next(happening.total for happening in heard if isinstance(happening, Running)) == 6


def test_a_refused_draft_leaves_the_ways_without_a_model() -> None:
    lookup = Way((Source.PROMPT_LOOKUP,), 4)
    engine = TimedEngine(draft_problem="Other words.")
    results = measured(engine, ways=(AUTO, lookup))
    assert results.problems == {}
    assert {run.task.way for run in results.runs} == {PLAIN, lookup}
    alone = measured(TimedEngine(draft_problem="Other words."))
    assert alone.problems == {0: "Other words."}
    assert alone.runs == []


def test_a_pair_without_a_draft_has_nothing_to_compare() -> None:
    assert "no draft model" in measured(pairs=(Pair(TARGET),)).problems[0]


def test_the_load_of_others_belongs_to_each_run() -> None:
    loads = iter([0.0, 0.5] * 12)
    results = measured(others=lambda: next(loads))
    assert {run.others_cores for run in results.runs} == {0.5}


def test_drafts_are_swapped_in_the_order_of_the_pairs() -> None:
    engine = TimedEngine(seconds=steady())
    pairs = (Pair(TARGET, DRAFT), Pair(TARGET, Path("other.gguf")))
    measured(engine, pairs=pairs, runs=1)
    assert [(load.target, load.draft) for load in engine.loads] == [(TARGET, DRAFT), (TARGET, Path("other.gguf"))]


def test_results_are_there_while_it_runs() -> None:
    engine = TimedEngine()
    seen: list[int] = []
    runner: Runner

    def listen(happening: Happening) -> None:
        if isinstance(happening, Visited):
            seen.append(len(runner.results.runs))

    runner = Runner(comparison(), engine, listen, lambda: False, clock=engine.clock, others=lambda: 0.0)
    runner.run()
    assert seen == [3, 6, 9, 12]
