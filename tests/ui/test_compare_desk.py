"""The desk over a scripted engine: measured, kept, read again, gone on with, reported. And how it is put into words."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.compare.control import Control
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.plan import Prompt
from forespeak.compare.runner import Happening, Loading, Ran, Stepped
from forespeak.engines.engine import EngineEvent, Failed, Loaded
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Source
from forespeak.ui.compare_desk import ComparisonDesk
from forespeak.ui.compare_reading import kind_words
from forespeak.ui.compare_values import Tone
from ui.scripted_engine import Script, ScriptedEngine, scripted_steps, summary

TEXT = "The square of the longest side equals the sum of the squares of the other two sides."
PLAIN, DRAFTED = scripted_steps(TEXT, None), scripted_steps(TEXT, Source.PROMPT_LOOKUP)
SECRET = "the words of my diary"


class Lanes(ScriptedEngine):
    """Writes with a draft where one is asked for: three times as fast."""

    def _generate(self, number: int, request: object) -> None:
        sources = getattr(request, "sources", ())
        self.scripts = [Script(DRAFTED, 3000.0) if sources else Script(PLAIN, 1000.0)]
        super()._generate(number, request)  # type: ignore[arg-type]


class Desk:
    def __init__(self, folder: Path, prepare: Callable[[ScriptedEngine], None] = lambda engine: None) -> None:
        self.engines: list[ScriptedEngine] = []
        self._prepare = prepare
        self.desk = ComparisonDesk(folder, self.connect, self.hash_of)
        self.heard: list[Happening] = []

    def connect(self, listener: Callable[[EngineEvent], None]) -> ScriptedEngine:
        engine = Lanes(listener, [Script(PLAIN)])
        self._prepare(engine)
        self.engines.append(engine)
        return engine

    def hash_of(self, path: Path, stopped: Callable[[], bool]) -> str | None:
        return None if stopped() else "ab" * 32

    def measure(self, plan: Plan, control: Control | None = None) -> str:
        return self.desk.measure(plan, "", self.heard.append, control or Control())


def plan_for(folder: Path, *, prompts: Sequence[Prompt] = (), repeats: int = 2, lanes: Sequence[Lane] = ()) -> Plan:
    target = folder / "target.gguf"
    target.write_bytes(b"GGUF")
    return Plan(
        target,
        tuple(lanes) or (Lane("Off"), Lane("Prompt lookup · Auto", (Source.PROMPT_LOOKUP,))),
        tuple(prompts) or (Prompt("coding", "one", "Write"), Prompt("own", "typed", SECRET, private=True)),
        repeats=repeats,
        tokens=64,
    )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "comparisons")


def test_what_was_measured_is_read_again_for_the_page(desk: Desk, tmp_path: Path) -> None:
    kept = desk.measure(plan_for(tmp_path))
    assert sum(isinstance(heard, Ran) for heard in desk.heard) == 8
    assert any(isinstance(heard, Stepped) for heard in desk.heard)
    shown = desk.desk.open(kept).values
    assert shown.ratio is not None
    assert shown.ratio > 1.3
    assert shown.id == kept
    assert shown.subtitle.startswith("target · 2 prompts of 2 kinds · 64 tokens · temperature 0")
    assert not shown.resumable
    assert shown.sameness == "The words were the same in all 4 runs that were compared."
    (group,) = shown.speed_ups
    assert [row.label for row in group.rows] == ["coding", "your own", "all together"]
    off, drafted = shown.lanes
    assert (off.is_plain, drafted.is_plain) == (True, False)
    assert off.draft_share is None
    assert drafted.by_position
    assert [rate.category for rate in drafted.rates] == ["coding", "your own"]
    head = shown.table[0]
    assert head == ("", "Off", "Prompt lookup · Auto")
    rows = {row[0]: row[1:] for row in shown.table[1:]}
    assert rows["Runs"] == ("4", "4")
    assert rows["Same words as the target alone"] == ("–", "4 / 4")
    assert rows["Drafts accepted"][0] == "–"
    assert "×" in rows["Speed-up"][1]


def test_each_prompt_can_be_replayed_with_its_own_times(desk: Desk, tmp_path: Path) -> None:
    shown = desk.desk.open(desk.measure(plan_for(tmp_path))).values
    assert [one.label for one in shown.recorded] == ["coding: one", "your own: typed"]
    off, drafted = shown.recorded[0].lanes
    assert (off.name, drafted.name) == ("Off", "Prompt lookup · Auto")
    for lane, steps in ((off, PLAIN), (drafted, DRAFTED)):
        assert [step.emitted for step in lane.steps] != []
        assert "".join(token.text for step in lane.steps for token in step.emitted) == TEXT
        assert len(lane.steps) == len(steps)
        assert list(lane.ends) == sorted(lane.ends)
        assert lane.rate is not None
        # The decoding took as long as was measured.
        tokens = sum(len(step.emitted) for step in lane.steps) - 1
        assert lane.seconds - lane.ends[0] == pytest.approx(tokens / lane.rate, rel=0.02)


def test_the_engine_ends_with_its_comparison(desk: Desk, tmp_path: Path) -> None:
    desk.measure(plan_for(tmp_path))
    (engine,) = desk.engines
    assert not engine._thread.is_alive()
    assert [load.draft for load in engine.loads] == [None]


def test_a_list_with_the_newest_first_and_a_search(desk: Desk, tmp_path: Path) -> None:
    first = desk.measure(plan_for(tmp_path, repeats=1))
    second = desk.measure(plan_for(tmp_path, repeats=1))
    desk.desk.rename(first, "Rivers")
    rows = desk.desk.rows("")
    assert {row.id for row in rows} == {first, second}
    (row,) = desk.desk.rows("river")
    assert row.name == "Rivers"
    assert row.when.startswith("today ")
    assert row.summary
    removed = desk.desk.remove((first,))
    assert [row.id for row in desk.desk.rows("")] == [second]
    removed.undo()
    assert len(desk.desk.rows("")) == 2


def test_ended_early_and_gone_on_with(desk: Desk, tmp_path: Path) -> None:
    control = Control()

    def listen(happening: Happening) -> None:
        if isinstance(happening, Ran):
            control.stop()

    plan = plan_for(tmp_path)
    kept = desk.desk.measure(plan, "", listen, control)
    opened = desk.desk.open(kept)
    assert opened.values.resumable
    assert "ended after 1 of 8 runs" in desk.desk.rows("")[0].summary
    assert desk.desk.go_on(kept, lambda _: None, Control()) == kept
    assert not desk.desk.open(kept).values.resumable
    assert len(desk.desk.rows("")) == 1


def test_one_that_is_opened_while_it_is_measured_says_so(desk: Desk, tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    def listen(happening: Happening) -> None:
        if isinstance(happening, Ran) and not seen:
            (row,) = desk.desk.rows("")
            seen.append(desk.desk.open(row.id).values.notes)

    desk.desk.measure(plan_for(tmp_path), "", listen, Control())
    assert any("being measured now" in note for note in seen[0])
    assert not any("Stopped early" in note for note in seen[0])


def stopped_after_one_run(desk: Desk, folder: Path) -> str:
    control = Control()

    def listen(happening: Happening) -> None:
        if isinstance(happening, Ran):
            control.stop()

    return desk.desk.measure(plan_for(folder), "", listen, control)


def test_ended_while_it_loads_again_it_stays(desk: Desk, tmp_path: Path) -> None:
    kept = stopped_after_one_run(desk, tmp_path)
    before = desk.desk.rows("")
    control = Control()

    def hold(engine: ScriptedEngine) -> None:
        engine.load_gate = threading.Event()

    def listen(happening: Happening) -> None:
        if isinstance(happening, Loading):
            control.stop()

    desk._prepare = hold
    assert desk.desk.go_on(kept, listen, control) == kept
    assert desk.desk.rows("") == before
    assert desk.desk.open(kept).values.resumable


def test_one_that_cannot_be_gone_on_with_is_told_and_stays(desk: Desk, tmp_path: Path) -> None:
    kept = stopped_after_one_run(desk, tmp_path)
    before = desk.desk.rows("")

    def refuse(engine: ScriptedEngine) -> None:
        engine.load_answer = lambda request: Failed("The model could not be loaded.", "Its file is gone.", "")

    desk._prepare = refuse
    with pytest.raises(UserFacingError, match="Its file is gone"):
        desk.desk.go_on(kept, lambda _: None, Control())
    assert desk.desk.rows("") == before
    shown = desk.desk.open(kept).values
    assert shown.resumable
    assert any("Its file is gone." in note for note in shown.notes)
    desk._prepare = lambda engine: None
    assert desk.desk.go_on(kept, lambda _: None, Control()) == kept
    assert not desk.desk.open(kept).values.resumable


def test_stopped_before_the_first_run_nothing_is_kept(desk: Desk, tmp_path: Path) -> None:
    control = Control()
    control.stop()
    assert desk.measure(plan_for(tmp_path), control) == ""
    assert desk.desk.rows("") == ()


def test_a_model_that_cannot_be_loaded_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    def prepare(engine: ScriptedEngine) -> None:
        engine.load_answer = lambda request: Failed("The model could not be loaded.", "Its file is damaged.", "")

    desk = Desk(tmp_path / "comparisons", prepare)
    with pytest.raises(UserFacingError, match="damaged"):
        desk.measure(plan_for(tmp_path))
    assert desk.desk.rows("") == ()


def test_a_lane_whose_draft_does_not_load_is_named(tmp_path: Path) -> None:
    draft = tmp_path / "draft.gguf"
    draft.write_bytes(b"GGUF")

    def prepare(engine: ScriptedEngine) -> None:
        engine.load_answer = lambda request: Loaded(summary(request.target), None, "The vocabularies differ.")

    desk = Desk(tmp_path / "comparisons", prepare)
    lanes = (Lane("Off"), Lane("Lookup", (Source.PROMPT_LOOKUP,)), Lane("Small", (Source.DRAFT_MODEL,), draft))
    shown = desk.desk.open(desk.measure(plan_for(tmp_path, lanes=lanes))).values
    assert shown.ratio is not None
    assert [group.against for group in shown.speed_ups] == ["Lookup against Off"]
    assert any(note.startswith("Small was not measured: ") for note in shown.notes)
    assert "Small" not in shown.table[0]


def test_equal_lanes_are_no_win(desk: Desk, tmp_path: Path) -> None:
    lanes = (Lane("Off"), Lane("Off (2)"))
    shown = desk.desk.open(desk.measure(plan_for(tmp_path, lanes=lanes, repeats=3))).values
    assert shown.ratio == pytest.approx(1.0, abs=0.3)
    assert shown.tone is not Tone.BAD
    assert len(shown.recorded[0].lanes) == 2


@pytest.mark.parametrize(("kind", "holds"), [("md", "# "), ("html", "<svg"), ("json", '"lanes"'), ("csv", "lane")])
def test_reports_without_ones_own_words(desk: Desk, tmp_path: Path, kind: str, holds: str) -> None:
    kept = desk.measure(plan_for(tmp_path, repeats=1))
    path = tmp_path / f"out.{kind}"
    desk.desk.export(kept, kind, path, False)
    # Spreadsheets on Windows know UTF-8 by its mark alone.
    assert path.read_bytes().startswith(b"\xef\xbb\xbf") is (kind == "csv")
    text = path.read_text("utf-8")
    assert holds in text
    assert SECRET not in text
    if kind == "json":
        assert json.loads(text)["id"] == kept
    if kind != "csv":
        desk.desk.export(kept, kind, path, True)
        assert SECRET in path.read_text("utf-8")


def test_a_report_that_is_stopped_while_models_are_read_is_not_written(desk: Desk, tmp_path: Path) -> None:
    kept = desk.measure(plan_for(tmp_path, repeats=1))
    path = tmp_path / "out.md"
    desk.desk.export(kept, "md", path, False, lambda: True)
    assert not path.exists()


def test_what_is_gone_is_told(desk: Desk) -> None:
    for act in (desk.desk.open, lambda kept: desk.desk.export(kept, "md", Path("x.md"), False)):
        with pytest.raises(UserFacingError):
            act("nowhere")


def test_kinds_of_work_in_words() -> None:
    assert kind_words("own") == "your own"
    assert kind_words("coding") == "coding"


def test_pausing_from_another_thread(desk: Desk, tmp_path: Path) -> None:
    control = Control()
    control.pause()
    done: list[str] = []
    thread = threading.Thread(target=lambda: done.append(desk.measure(plan_for(tmp_path, repeats=1), control)))
    thread.start()
    thread.join(0.3)
    assert not done
    control.go_on()
    thread.join(5.0)
    assert done
    assert replace(desk.desk.open(done[0]).values).ratio is not None


def test_lanes_of_several_temperatures_are_replayed_beside_their_own_off(desk: Desk, tmp_path: Path) -> None:
    lookup = Lane("Lookup", (Source.PROMPT_LOOKUP,))
    lanes = (Lane("Off"), lookup, replace(lookup, name="Lookup, warm", temperature=0.8))
    shown = desk.desk.open(desk.measure(plan_for(tmp_path, repeats=1, lanes=lanes))).values
    assert " · temperature 0 and 0.8 · " in shown.subtitle
    found = {lane.name: lane.base for lane in shown.recorded[0].lanes}
    warm = "Off, temperature 0.8"
    assert found == {warm: "", "Off": "", "Lookup": "Off", "Lookup, warm": warm}


def test_several_are_removed_together_or_none(desk: Desk, tmp_path: Path) -> None:
    kept = [desk.measure(plan_for(tmp_path, repeats=1)) for _ in range(2)]
    journal = desk.desk.store.taken(kept[1])[2]
    with pytest.raises(UserFacingError, match="being measured now"):
        desk.desk.remove(tuple(kept))
    assert {row.id for row in desk.desk.rows("")} == set(kept)
    (row,) = (row for row in desk.desk.rows("") if row.id == kept[1])
    assert not row.summary.startswith("interrupted")
    journal.release()
    desk.desk.remove(tuple(kept))
    assert desk.desk.rows("") == ()
