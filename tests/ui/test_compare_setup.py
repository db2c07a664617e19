"""Setting a comparison up as a person does it: lanes, prompts, numbers, and what keeps it from starting."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.plan import Prompt
from forespeak.engines.engine import ChatMessage, Role
from forespeak.speculation.trace import Source
from forespeak.ui.compare_lanes_edit import LaneOption
from forespeak.ui.compare_setup import CompareSetup
from forespeak.ui.compare_values import Forecast, PromptKind, Setup
from forespeak.ui.theme import LIGHT
from ui.compare_doubles import DRAFT, TARGET, plan_double

OPTIONS = (
    LaneOption("Prompt lookup + Small", (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL), DRAFT, None, "chat"),
    LaneOption("My pair", (Source.DRAFT_MODEL,), DRAFT, 4, "pairs", "p1"),
    LaneOption("Prompt lookup", (Source.PROMPT_LOOKUP,), None, None, "sources"),
)
CHAT = (ChatMessage(Role.USER, "Hi"), ChatMessage(Role.ASSISTANT, "Hello"), ChatMessage(Role.USER, "Name a river"))


@pytest.fixture
def setup(qtbot: QtBot) -> CompareSetup:
    shown = CompareSetup((("coding", 6), ("math", 4), ("rewrite", 5), ("json", 3)))
    qtbot.addWidget(shown)
    shown.set_theme(LIGHT)
    shown.resize(900, 800)
    shown.set_target("Big · Q4")
    shown.set_options(OPTIONS)
    shown.show()
    qtbot.waitExposed(shown)
    return shown


def started(setup: CompareSetup, qtbot: QtBot) -> Setup:
    with qtbot.waitSignal(setup.startRequested) as signal:
        QTest.mouseClick(setup.start_button, Qt.MouseButton.LeftButton)
    assert signal.args is not None
    wanted: Setup = signal.args[0]
    return wanted


def test_off_and_one_other_to_begin_with(setup: CompareSetup, qtbot: QtBot) -> None:
    wanted = started(setup, qtbot)
    off, other = wanted.lanes
    assert off == Lane("Off")
    assert other == Lane("Prompt lookup + Small · Auto", OPTIONS[0].sources, DRAFT)
    assert (wanted.repeats, wanted.tokens, wanted.temperature, wanted.minutes) == (3, 128, 0.0, None)
    assert wanted.prompts.kind is PromptKind.SUITES
    assert wanted.prompts.suites == (("coding", 1), ("rewrite", 1))
    Plan(TARGET, wanted.lanes, (Prompt("a", "b", "c"),))


def test_more_lanes_with_lengths_of_their_own(setup: CompareSetup, qtbot: QtBot) -> None:
    QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    second, third = setup.lanes.rows[1:]
    assert second.what.currentText() == "My pair"
    assert second.length.currentText() == "4 tokens"
    for _ in range(2):
        QTest.keyClick(third.length, Qt.Key.Key_Down)
    lanes = started(setup, qtbot).lanes
    assert [lane.name for lane in lanes] == [
        "Off",
        "Prompt lookup + Small · Auto",
        "My pair · 4 tokens",
        "Prompt lookup · 2 tokens",
    ]
    assert lanes[2].pair_id == "p1"
    assert lanes[3].draft_length == 2
    Plan(TARGET, lanes, (Prompt("a", "b", "c"),))


def test_equal_lanes_have_names_of_their_own_and_off_has_no_length(setup: CompareSetup, qtbot: QtBot) -> None:
    QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    for row in setup.lanes.rows:
        row.what.setFocus()
        QTest.keyClick(row.what, Qt.Key.Key_End)
        assert row.what.currentText() == "Off"
        assert not row.length.isEnabled()
    lanes = started(setup, qtbot).lanes
    assert [lane.name for lane in lanes] == ["Off", "Off (2)", "Off (3)"]
    assert all(lane.is_off for lane in lanes)
    Plan(TARGET, lanes, (Prompt("a", "b", "c"),))


def test_a_lane_may_have_a_temperature_of_its_own(setup: CompareSetup, qtbot: QtBot) -> None:
    QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    first, second = setup.lanes.rows
    assert (first.temperature, first.heat.text()) == (None, "Temp. as set")
    for _ in range(4):
        QTest.keyClick(first.heat, Qt.Key.Key_Up)
    second.what.setFocus()
    QTest.keyClick(second.what, Qt.Key.Key_End)
    second.heat.setFocus()
    second.heat.selectAll()
    QTest.keyClicks(second.heat, "0.75")
    QTest.keyClick(second.heat, Qt.Key.Key_Return)
    lanes = started(setup, qtbot).lanes
    assert [(lane.name, lane.temperature) for lane in lanes] == [
        ("Off", None),
        ("Prompt lookup + Small · Auto · temperature 0.3", 0.3),
        ("Off · temperature 0.75", 0.75),
    ]
    plan = Plan(TARGET, lanes, (Prompt("coding", "b", "c"),))
    assert set(plan.bases) == {0.0, 0.3, 0.75}
    setup.take_plan(plan)
    assert started(setup, qtbot).lanes == lanes
    QTest.keyClick(setup.lanes.rows[0].heat, Qt.Key.Key_Down)
    for _ in range(9):
        QTest.keyClick(setup.lanes.rows[0].heat, Qt.Key.Key_Down)
    assert setup.lanes.lanes[1].temperature is None


@pytest.mark.parametrize(("length", "before"), [(7, "6 tokens"), (24, "16 tokens"), (9, "8 tokens")])
def test_a_length_that_is_not_offered_stays(setup: CompareSetup, qtbot: QtBot, length: int, before: str) -> None:
    lanes = (Lane("Off"), Lane(f"My pair · {length} tokens", (Source.DRAFT_MODEL,), DRAFT, length, None, "p1"))
    setup.take_plan(Plan(TARGET, lanes, (Prompt("coding", "b", "c"),)))
    assert started(setup, qtbot).lanes == lanes
    box = setup.lanes.rows[0].length
    assert box.currentText() == f"{length} tokens"
    assert box.itemText(box.currentIndex() - 1) == before
    # The same with a pair that is kept so.
    setup.set_options([*OPTIONS, LaneOption("Another", (Source.DRAFT_MODEL,), DRAFT, length, "pairs", "p2")])
    what = setup.lanes.rows[0].what
    what.setFocus()
    QTest.keyClick(what, Qt.Key.Key_Home)
    assert [lane.draft_length for lane in setup.lanes.lanes] == [None, None]
    what.setCurrentIndex(what.findText("Another"))
    what.activated.emit(what.currentIndex())
    assert [lane.draft_length for lane in setup.lanes.lanes] == [None, length]
    assert [box.itemData(place) for place in range(1, box.count())].count(length) == 1


def test_what_the_command_line_measured_is_set_up_again_whole(setup: CompareSetup, qtbot: QtBot) -> None:
    lanes = (
        Lane("Off"),
        *(Lane(f"Prompt lookup · {n} tokens", (Source.PROMPT_LOOKUP,), None, n) for n in range(2, 10)),
    )
    plan = Plan(TARGET, lanes, (Prompt("coding", "b", "c"),), repeats=80, tokens=5000, budget_seconds=60_000.0)
    setup.take_plan(plan)
    wanted = started(setup, qtbot)
    assert wanted.lanes == lanes
    assert (wanted.repeats, wanted.tokens, wanted.minutes) == (80, 5000, 1000)
    assert not setup.lanes.add_button.isEnabled()


def test_off_against_off_is_set_up_again(setup: CompareSetup) -> None:
    lanes = (Lane("Off"), Lane("Off (2)"))
    setup.take_plan(Plan(TARGET, lanes, (Prompt("a", "b", "c"),)))
    assert setup.lanes.lanes == lanes


def test_lanes_fold_where_their_names_have_little_room(setup: CompareSetup, qtbot: QtBot) -> None:
    row = setup.lanes.rows[0]
    inside = row.layout()
    assert inside is not None

    def is_folded() -> bool:
        return row.length.mapTo(row, row.length.rect().topLeft()).y() > row.what.height()

    setup.resize(1600, 800)
    qtbot.waitUntil(lambda: not is_folded())
    folded = []
    for width in range(1560, 400, -60):
        setup.resize(width, 800)
        # The cards get their room first, then their lanes, then what stands in a lane.
        qtbot.waitUntil(lambda: row.width() == setup.lanes.width() and inside.geometry() == row.rect())
        QApplication.processEvents()
        folded.append(is_folded())
        assert row.what.width() >= 260 or is_folded()
        assert row.heat.geometry().right() < row.remove.geometry().left()
        assert row.remove.mapTo(row, row.remove.rect().topRight()).x() < row.width()
        if is_folded():
            assert row.what.width() == row.width()
    assert not folded[0]
    assert folded[-1]


def test_tab_goes_from_top_to_bottom(setup: CompareSetup) -> None:
    QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    first, second = setup.lanes.rows
    first.what.setFocus()
    for expected in (
        *(first.length, first.heat, first.remove),
        *(second.what, second.length, second.heat, second.remove),
        *(setup.lanes.add_button, setup.lanes.file_button, setup.repeats),
    ):
        focused = QApplication.focusWidget()
        assert focused is not None
        QTest.keyClick(focused, Qt.Key.Key_Tab)
        assert expected.hasFocus()


def test_a_draft_from_a_file_becomes_a_lane(setup: CompareSetup, qtbot: QtBot) -> None:
    with qtbot.waitSignal(setup.lanes.fileRequested):
        QTest.mouseClick(setup.lanes.file_button, Qt.MouseButton.LeftButton)
    option = LaneOption("Elsewhere", (Source.DRAFT_MODEL,), TARGET.with_name("elsewhere.gguf"), None, "drafts")
    setup.lanes.add_option(option)
    assert setup.lanes.rows[-1].what.hasFocus()
    assert [lane.name for lane in setup.lanes.lanes][-1] == "Elsewhere · Auto"
    # It stays while more is found for the same target, and goes with another one.
    setup.set_options((*OPTIONS, LaneOption("More", (Source.NGRAM_MOD,))))
    assert setup.lanes.lanes[-1].draft == option.draft
    setup.lanes.forget_added()
    setup.set_options(OPTIONS)
    assert setup.lanes.lanes[-1].draft != option.draft


def test_a_lane_is_removed_but_never_the_last_one(setup: CompareSetup, qtbot: QtBot) -> None:
    assert not setup.lanes.rows[0].remove.isEnabled()
    QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(setup.lanes.rows[0].remove, Qt.MouseButton.LeftButton)
    assert [lane.name for lane in started(setup, qtbot).lanes] == ["Off", "My pair · 4 tokens"]
    assert not setup.lanes.rows[0].remove.isEnabled()


def test_there_is_an_end_to_lanes(setup: CompareSetup) -> None:
    for _ in range(9):
        QTest.mouseClick(setup.lanes.add_button, Qt.MouseButton.LeftButton)
    assert len(setup.lanes.lanes) == 6
    assert not setup.lanes.add_button.isEnabled()


def test_what_was_chosen_stays_when_there_is_more_to_choose(setup: CompareSetup) -> None:
    QTest.keyClick(setup.lanes.rows[0].what, Qt.Key.Key_End)
    setup.set_options((LaneOption("New", (Source.NGRAM_MOD,)), *OPTIONS))
    assert setup.lanes.rows[0].what.currentText() == "Off"


def test_kinds_of_work_and_how_many(setup: CompareSetup, qtbot: QtBot) -> None:
    coding, math, rewrite, json = setup.prompts.suites
    for suite in (rewrite, json):
        suite.box.click()
    json.count.setValue(3)
    assert not math.count.isEnabled()
    assert started(setup, qtbot).prompts.suites == (("coding", 1), ("json", 3))
    for suite in (coding, json):
        suite.box.click()
    assert not setup.start_button.isEnabled()
    assert "at least one" in setup.estimate.text()


def test_the_chats_last_message_with_what_stands_before_it(setup: CompareSetup, qtbot: QtBot) -> None:
    button = setup.prompts.choices[PromptKind.CHAT]
    assert not button.isEnabled()
    setup.set_chat(CHAT)
    button.click()
    choice = started(setup, qtbot).prompts
    assert (choice.kind, choice.text, choice.messages) == (PromptKind.CHAT, "Name a river", CHAT)
    assert setup.prompts.chat_words.words == "Name a river"
    setup.set_chat(())
    assert setup.prompts.kind is PromptKind.SUITES


def test_a_typed_text(setup: CompareSetup, qtbot: QtBot) -> None:
    setup.prompts.choices[PromptKind.TYPED].click()
    assert not setup.start_button.isEnabled()
    QTest.keyClicks(setup.prompts.text, "Why is snow quiet?")
    assert setup.start_button.isEnabled()
    choice = started(setup, qtbot).prompts
    assert (choice.kind, choice.text) == (PromptKind.TYPED, "Why is snow quiet?")


def test_a_file_of_prompts(setup: CompareSetup, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prompts.jsonl"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    setup.prompts.choices[PromptKind.FILE].click()
    assert not setup.start_button.isEnabled()
    QTest.mouseClick(setup.prompts.file_button, Qt.MouseButton.LeftButton)
    assert started(setup, qtbot).prompts.file == file
    assert setup.prompts.file_words.words == str(file)


def test_an_estimate_before_the_start(setup: CompareSetup, qtbot: QtBot) -> None:
    with qtbot.waitSignal(setup.changed):
        setup.repeats.setValue(5)
    setup.set_forecast(Forecast(30, 400.0, 400.0, "By 50.1 tokens/s, measured here."))
    assert setup.estimate.text() == "30 runs, about 7 min"
    assert "50.1" in setup.basis.text()
    setup.minutes.setValue(2)
    setup.set_forecast(Forecast(30, 100.0, 400.0))
    assert setup.estimate.text() == "30 runs, 2 to 7 min: ended after 2 min with what is done"
    setup.set_forecast(Forecast(30))
    assert "shows after the first ones" in setup.estimate.text()


def test_without_a_target_the_way_to_one_is_shown(setup: CompareSetup, qtbot: QtBot) -> None:
    assert not setup.models_button.isVisible()
    setup.set_target("")
    assert not setup.start_button.isEnabled()
    assert "Choose a model" in setup.estimate.text()
    with qtbot.waitSignal(setup.modelsRequested):
        QTest.mouseClick(setup.models_button, Qt.MouseButton.LeftButton)


def test_what_is_in_the_way_is_said_and_goes_again(setup: CompareSetup, qtbot: QtBot) -> None:
    with qtbot.waitSignal(setup.changed):
        setup.repeats.setValue(5)
    setup.set_obstacle("A reply is being written.")
    assert setup.estimate.text() == "A reply is being written."
    assert not setup.start_button.isEnabled()
    with qtbot.waitSignal(setup.changed):
        setup.set_obstacle("")
    assert setup.start_button.isEnabled()
    assert setup.estimate.text() == ""


def test_one_prompt_of_the_chat_with_one_click(setup: CompareSetup, qtbot: QtBot) -> None:
    setup.choose_chat_prompt(CHAT)
    assert setup.start_button.hasFocus()
    wanted = started(setup, qtbot)
    assert wanted.prompts.messages == CHAT
    assert wanted.repeats >= 6


def test_the_same_again(setup: CompareSetup, qtbot: QtBot) -> None:
    gone = Lane("Gone · Q4 · 2 tokens", (Source.DRAFT_MODEL,), Path("/models/gone.gguf"), 2)
    prompts = (Prompt("coding", "a", "x"), Prompt("coding", "b", "y"), Prompt("json", "c", "z"))
    plan = Plan(TARGET, (Lane("Off"), gone), prompts, repeats=4, tokens=64, budget_seconds=180.0)
    setup.take_plan(plan)
    wanted = started(setup, qtbot)
    assert wanted.lanes == (Lane("Off"), gone)
    assert wanted.prompts.suites == (("coding", 2), ("json", 1))
    assert (wanted.repeats, wanted.tokens, wanted.minutes) == (4, 64, 3)


def test_ones_own_text_again(setup: CompareSetup, qtbot: QtBot) -> None:
    setup.take_plan(plan_double(private=True))
    choice = started(setup, qtbot).prompts
    assert (choice.kind, choice.text) == (PromptKind.TYPED, "What does Pythagoras say?")


def test_it_fits_a_narrow_window(setup: CompareSetup) -> None:
    setup.resize(440, 700)
    assert setup.prompts.suites[1].x() == setup.prompts.suites[0].x()
    assert setup.minimumSizeHint().width() <= 440
