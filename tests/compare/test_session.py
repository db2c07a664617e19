"""A comparison from its plan to what is kept of it: stopped, paused, out of time, killed, and gone on with."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compare.lane_plans import FOUR, LOOKUP, OFF, OTHER, SMALL, measured, plan
from compare.timed_engine import TimedEngine, prompts
from forespeak.compare.control import Control
from forespeak.compare.journal import lines_of
from forespeak.compare.lane_report import report_csv
from forespeak.compare.lane_results import result_of
from forespeak.compare.lanes import Lane
from forespeak.compare.runner import Happening, Paused, Ran, Results, Run, Running, Stepped, WentOn
from forespeak.compare.session import measure
from forespeak.compare.store import ComparisonStore, State
from forespeak.engines.engine import Buffer, CacheType, GenerationRequest, Loaded, Placement
from forespeak.errors import UserFacingError

TESTS = Path(__file__).resolve().parent.parent


def timed(run: Run) -> tuple[object, ...]:
    return (run.task, run.seed, run.began, run.seconds, run.token_ids)


def go_on(folder: Path, comparison_id: str, engine: TimedEngine) -> Results:
    store = ComparisonStore(folder)
    wanted, former, journal = store.taken(comparison_id)
    return measure(
        wanted, engine, journal, lambda _: None, Control(), former=former, clock=engine.clock, others=lambda: 0.0
    ).results


def test_what_is_kept_is_what_was_measured(tmp_path: Path) -> None:
    wanted = plan(OFF, SMALL, FOUR, OTHER, LOOKUP, warm_up=True)
    result, known = measured(wanted, tmp_path, TimedEngine(parts_at=5))
    again, results = ComparisonStore(tmp_path).load(known)
    assert again == wanted
    assert results.complete
    assert results.machine == result.results.machine
    assert results.loaded == result.results.loaded
    assert [run.task for run in results.runs] == [run.task for run in result.results.runs]
    for kept, run in zip(results.runs, result.results.runs, strict=True):
        assert (kept.text, kept.token_ids, kept.seed) == (run.text, run.token_ids, run.seed)
        assert (kept.identical, kept.differs_at) == (run.identical, run.differs_at)
        assert kept.stats == run.stats
        assert [recorded.step.emitted for recorded in kept.recording] == [each.step.emitted for each in run.recording]
    kept_lanes = result_of(again, results).lanes
    assert [lane.overall.verdict for lane in kept_lanes] == [lane.overall.verdict for lane in result.lanes]


def test_the_runs_are_told_step_by_step(tmp_path: Path) -> None:
    heard: list[Happening] = []
    result, _ = measured(plan(), tmp_path, listen=heard.append)
    first = result.results.runs[0]
    begin = next(place for place, each in enumerate(heard) if isinstance(each, Running))
    steps = [each.step for each in heard[begin + 1 :] if isinstance(each, Stepped)][: len(first.recording)]
    assert steps == [recorded.step for recorded in first.recording]
    ran = next(each for each in heard if isinstance(each, Ran))
    assert ran.run.task == first.task


def test_a_stop_in_the_middle_of_a_run_keeps_the_finished_ones(tmp_path: Path) -> None:
    control, engine = Control(), TimedEngine()

    def listen(happening: Happening) -> None:
        if isinstance(happening, Stepped) and len(engine.requests) == 4 and happening.step.index == 2:
            control.stop()

    result, known = measured(plan(), tmp_path, engine, control=control, listen=listen)
    assert not result.results.complete
    assert len(result.results.runs) == 3
    store = ComparisonStore(tmp_path)
    stored = store.get(known)
    assert stored is not None
    assert (stored.state, stored.done, stored.planned) == (State.STOPPED, 3, 8)
    former = store.load(known)[1].runs
    # Of the two visits that were begun, the second one lacks a run.
    resumed = go_on(tmp_path, known, TimedEngine())
    assert resumed.complete
    assert len(resumed.runs) == 8
    assert [timed(run) for run in resumed.runs[:3]] == [timed(run) for run in former]
    assert all(run.identical for run in resumed.runs if not run.task.way.is_plain)
    again = ComparisonStore(tmp_path).get(known)
    assert again is not None
    assert again.state is State.COMPLETE
    assert len(ComparisonStore(tmp_path).load(known)[1].runs) == 8


def test_nothing_is_loaded_for_what_is_done(tmp_path: Path) -> None:
    engine = TimedEngine()
    _, known = measured(plan(SMALL, OTHER), tmp_path, engine, cancelled=lambda: len(engine.requests) == 12)
    rest = TimedEngine()
    assert go_on(tmp_path, known, rest).complete
    assert [load.draft for load in rest.loads] == [OTHER.draft]
    assert len(rest.requests) == 16 - 11


def test_a_pause_holds_between_runs_and_costs_no_time_of_the_budget(tmp_path: Path) -> None:
    control, engine, heard = Control(), TimedEngine(), list[Happening]()

    def listen(happening: Happening) -> None:
        heard.append(happening)
        if isinstance(happening, Ran) and len(engine.requests) == 2:
            control.pause()
        elif isinstance(happening, Paused):
            engine.now += 1e6
            threading.Timer(0.05, control.go_on).start()

    result, _ = measured(plan(budget_seconds=60.0), tmp_path, engine, control=control, listen=listen)
    assert result.results.complete
    kinds = [type(each) for each in heard if isinstance(each, Paused | WentOn)]
    assert kinds == [Paused, WentOn]
    place = next(index for index, each in enumerate(heard) if isinstance(each, Paused))
    assert len([each for each in heard[:place] if isinstance(each, Ran)]) == 2


def test_the_budget_is_kept_and_each_load_has_its_share(tmp_path: Path) -> None:
    engine = TimedEngine()
    wanted = plan(SMALL, OTHER, prompts=prompts("code", "prose", each=3), repeats=20, budget_seconds=30.0)
    began = engine.now
    result, known = measured(wanted, tmp_path, engine)
    results = result.results
    assert (results.complete, results.out_of_time) == (False, True)
    assert 26.0 <= engine.now - began <= 30.0
    counts = [sum(run.task.pair == pair for run in results.runs) for pair in (0, 1)]
    assert counts[0] == pytest.approx(counts[1], abs=4)
    assert "Its time was over" in result.notes[0]
    stored = ComparisonStore(tmp_path).get(known)
    assert stored is not None
    assert stored.state is State.OUT_OF_TIME


def test_even_the_shortest_budget_measures_something_of_each_load(tmp_path: Path) -> None:
    result, _ = measured(plan(SMALL, OTHER, budget_seconds=0.5), tmp_path)
    assert {run.task.pair for run in result.results.runs} <= {0, 1}
    assert len(result.results.runs) >= 2


def test_failures_are_kept(tmp_path: Path) -> None:
    engine = TimedEngine(fails=lambda request: "Too long." if request.draft_length == 4 else None)
    _, known = measured(plan(OFF, SMALL, FOUR), tmp_path, engine)
    results = ComparisonStore(tmp_path).load(known)[1]
    assert [run.failure for run in results.runs].count("Too long.") == 4
    broken = TimedEngine(refuses=frozenset({"big"}))
    result, known = measured(plan(), tmp_path, broken)
    assert "It is broken." in ComparisonStore(tmp_path).load(known)[1].problems[0]
    assert "It is broken." in (result.lanes[1].problem or "")


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is another thing there")
def test_what_a_killed_process_had_done_is_there_and_is_completed(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, str(TESTS / "comparing_child.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert child.stdout is not None
    with child.stdout:
        told = [child.stdout.readline().split() for _ in range(6)]
        with pytest.raises(UserFacingError, match="being measured now"):
            ComparisonStore(tmp_path).taken(told[0][0])
        # In the middle of the seventh run.
        time.sleep(0.02)
        child.kill()
        child.wait()
    known, done = told[0][0], [line[1] for line in told[1:]]
    path = next(tmp_path.glob("*.jsonl"))
    assert path.stem == known
    # The worst moment to be killed in: a line half written.
    path.write_bytes(path.read_bytes() + b'{"kind": "run", "lane": 1, "pa')
    store = ComparisonStore(tmp_path)
    stored = store.get(known)
    assert stored is not None
    assert stored.state is State.INTERRUPTED
    former = store.load(known)[1].runs
    assert len(former) >= len(done) == 5
    assert [run.text for run in former[:5]] == ["x " * 9] * 5
    resumed = go_on(tmp_path, known, TimedEngine())
    assert resumed.complete
    assert len(resumed.runs) == stored.planned
    assert len({run.task for run in resumed.runs}) == stored.planned
    # A run that stood alone in its visit is compared with plain once that is there.
    assert {timed(run) for run in former} <= {timed(run) for run in resumed.runs}
    assert len(store.load(known)[1].runs) == stored.planned
    # What was cut off cost no other line.
    assert [record["kind"] for record in lines_of(path)].count("run") == stored.planned


def test_a_full_disk_costs_no_figures(tmp_path: Path) -> None:
    engine = TimedEngine()
    store = ComparisonStore(tmp_path)
    from forespeak.compare.machine import machine_notes

    journal = store.begin(plan(), machine_notes())

    def block(_: GenerationRequest) -> str | None:
        # Nobody can append to a folder.
        if len(engine.requests) == 2:
            journal.path.rename(tmp_path / "kept")
            journal.path.mkdir()
        if len(engine.requests) == 6:
            journal.path.rmdir()
            (tmp_path / "kept").rename(journal.path)
        return None

    engine.fails = block
    result = measure(plan(), engine, journal, lambda _: None, Control(), clock=engine.clock, others=lambda: 0.0)
    assert result.results.complete
    assert journal.problem is None
    assert len(store.load(journal.id)[1].runs) == 8


def test_a_chat_meanwhile_stands_in_the_runs_that_it_met_and_in_the_report(tmp_path: Path) -> None:
    control, engine = Control(), TimedEngine()

    def listen(happening: Happening) -> None:
        # From the middle of the third run to the middle of the fifth.
        if isinstance(happening, Stepped) and happening.step.index == 1 and len(engine.requests) in {3, 5}:
            control.set_chatting(len(engine.requests) == 3)

    result, known = measured(plan(), tmp_path, engine, control=control, listen=listen, others=lambda: 0.5)
    assert [run.chatted for run in result.results.runs] == [False, False, True, True, True, False, False, False]
    kept = ComparisonStore(tmp_path).load(known)[1].runs
    assert [run.chatted for run in kept] == [run.chatted for run in result.results.runs]
    assert any("A chat was answered during 3 of 8 runs" in note for note in result.notes)
    # What the chat took is not put down to other programs.
    assert any("during 5 of 5 runs" in note for note in result.notes)
    rows = list(csv.DictReader(report_csv(result).splitlines()))
    assert [row["chatted"] for row in rows].count("True") == 3


def test_a_run_of_before_that_was_written_down_says_nothing_of_chats(tmp_path: Path) -> None:
    _, known = measured(plan(), tmp_path)
    path = tmp_path / f"{known}.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"chatted": false, ', ""), encoding="utf-8")
    assert [run.chatted for run in ComparisonStore(tmp_path).load(known)[1].runs] == [False] * 8


def test_where_the_models_were_is_kept(tmp_path: Path) -> None:
    placement = Placement(
        ("CUDA0", "CPU"), 20, 33, CacheType.Q8_0, flash_attention=True, threads=4, buffers=(Buffer("cache", "CPU", 5),)
    )

    class OnGpu(TimedEngine):
        def load(self, *arguments: Any) -> Loaded | None:
            loaded = super().load(*arguments)
            return loaded and replace(loaded, devices=("GPU (CUDA0)",), placement=placement)

    result, known = measured(plan(), tmp_path, OnGpu())
    kept = ComparisonStore(tmp_path).load(known)[1].loaded
    assert kept == result.results.loaded
    assert kept[0].placement == placement
    # What an earlier version noted knew nothing of placements.
    path = tmp_path / f"{known}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line.pop("placement", None)
        line.pop("draft_placement", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert ComparisonStore(tmp_path).load(known)[1].loaded[0].placement is None


@pytest.mark.parametrize(("lanes", "stopped_at"), [((OFF, SMALL), 4), ((SMALL, OTHER), 12), ((SMALL, OTHER), 3)])
def test_ended_while_it_loads_again_nothing_is_lost(tmp_path: Path, lanes: tuple[Lane, ...], stopped_at: int) -> None:
    engine = TimedEngine()
    first, known = measured(plan(*lanes), tmp_path, engine, cancelled=lambda: len(engine.requests) == stopped_at)
    store = ComparisonStore(tmp_path)
    before = store.get(known)
    assert before is not None
    wanted, former, journal = store.taken(known)
    again = measure(wanted, TimedEngine(), journal, lambda _: None, Control(), former=former, cancelled=lambda: True)
    assert [timed(run) for run in again.results.runs] == [timed(run) for run in former.runs]
    assert [run.identical for run in again.results.runs] == [run.identical for run in first.results.runs]
    assert (again.results.complete, again.results.out_of_time) == (False, False)
    after = store.get(known)
    assert after is not None
    assert (after.state, after.done, after.headline) == (State.STOPPED, before.done, before.headline)
    assert go_on(tmp_path, known, TimedEngine()).complete


@pytest.mark.parametrize(
    "in_its_way", [TimedEngine(refuses=frozenset({"big"})), TimedEngine(draft_problem="It is broken.")]
)
def test_what_cannot_be_gone_on_with_now_can_be_later(tmp_path: Path, in_its_way: TimedEngine) -> None:
    engine = TimedEngine()
    _, known = measured(plan(OFF, SMALL, LOOKUP), tmp_path, engine, cancelled=lambda: len(engine.requests) == 6)
    store = ComparisonStore(tmp_path)
    refused = go_on(tmp_path, known, in_its_way)
    assert in_its_way.requests == []
    assert (refused.complete, refused.out_of_time, len(refused.runs)) == (False, False, 5)
    stored = store.get(known)
    assert stored is not None
    assert stored.can_resume
    assert stored.headline != "Nothing could be compared."
    for results in (refused, store.load(known)[1]):
        note = result_of(stored.plan, results).notes[0]
        assert note.startswith("The rest could not be measured.")
        assert "It is broken." in note
    mended = go_on(tmp_path, known, TimedEngine())
    assert (mended.complete, mended.problems, len(mended.runs)) == (True, {}, stored.planned)
    assert not any("It is broken." in note for note in result_of(stored.plan, store.load(known)[1]).notes)


def test_a_draft_that_comes_back_costs_no_run_twice(tmp_path: Path) -> None:
    engine = TimedEngine(draft_problem="It is not there.")
    _, known = measured(plan(OFF, SMALL, LOOKUP), tmp_path, engine, cancelled=lambda: len(engine.requests) == 4)
    rest = TimedEngine()
    results = go_on(tmp_path, known, rest)
    stored = ComparisonStore(tmp_path).get(known)
    assert stored is not None
    # With the draft's lane between them, the others have other turns than before.
    assert (results.complete, len(results.runs), len(rest.requests)) == (True, stored.planned, stored.planned - 3)
    assert len({(run.task.where, run.task.prompt, run.task.repetition) for run in results.runs}) == stored.planned


def test_the_first_note_says_how_it_stands(tmp_path: Path) -> None:
    store = ComparisonStore(tmp_path)
    _, known = measured(plan(repeats=20, budget_seconds=10.0), tmp_path)

    def note() -> str:
        stored = store.get(known)
        assert stored is not None
        return result_of(*store.load(known), stored.state).notes[0]

    assert note().startswith("Its time was over")
    _, _, journal = store.taken(known)
    assert note().startswith("It is being measured now")
    journal.release()
    seen: list[str] = []

    def killed(_: GenerationRequest) -> str | None:
        seen.append(note())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_on(tmp_path, known, TimedEngine(fails=killed))
    assert seen[0].startswith("It is being measured now")
    assert note().startswith("Interrupted")
    assert not store.load(known)[1].out_of_time
