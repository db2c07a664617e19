"""The Compare page in the window, as a person goes through it: from the chat to a result, and back to it later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from forespeak.compare.plan import Prompt
from forespeak.engines.engine import LoadSettings, Role
from forespeak.errors import UserFacingError
from forespeak.models.memory import Fit, MemoryPlan
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source
from forespeak.ui.compare_controller import CompareState
from forespeak.ui.compare_entry import COMPARE_PAGE
from forespeak.ui.compare_export import PrivateDialog
from forespeak.ui.compare_memory import MemoryDialog
from forespeak.ui.compare_page import COMPARE_TAB, HISTORY_TAB, RESULT_TAB, ComparePage
from forespeak.ui.compare_values import PromptKind
from forespeak.ui.compare_view import CompareView
from forespeak.ui.dialogs import ErrorDialog
from forespeak.ui.navigation import CHAT_PAGE, Page
from forespeak.ui.pair_controller import PairState
from forespeak.ui.theme import LIGHT
from ui.compare_doubles import DeskDouble, OpenedDouble, plan_double, values
from ui.conftest import App, AppMaker
from ui.scripted_engine import Script, scripted_steps


class Opened:
    """A window with the page, and a desk that measures nothing."""

    def __init__(self, app: App, desk: DeskDouble, view: CompareView) -> None:
        self.app, self.desk, self.view = app, desk, view

    @property
    def page(self) -> ComparePage:
        assert self.view.page is not None
        return self.view.page

    def start(self) -> None:
        QTest.mouseClick(self.page.setup.start_button, Qt.MouseButton.LeftButton)


Opener = Callable[..., Opened]


@pytest.fixture
def opened(make_app: AppMaker, qtbot: QtBot) -> Opener:
    def make(desk: DeskDouble | None = None, **keywords: object) -> Opened:
        app = make_app(**keywords)
        desk = desk or DeskDouble()
        view = CompareView(app.session, desk, app.folder, app.models)
        app.session.closers.append(view.close)
        app.window.set_theme(LIGHT)
        app.window.add_page(Page(COMPARE_PAGE, "Compare", "compare", view.make_page))
        app.window.show_page(COMPARE_PAGE)
        found = Opened(app, desk, view)
        if keywords.get("ready", True):
            qtbot.waitUntil(lambda: len(found.page.setup.lanes.rows) == 1)
        return found

    return make


def say(app: App, text: str, qtbot: QtBot) -> None:
    app.window.composer.set_text(text)
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: app.session.chats.last_reply() is not None and not app.session.chats.busy)


def type_where_the_keyboard_is(words: str) -> None:
    widget = QApplication.focusWidget()
    assert widget is not None
    QTest.keyClicks(widget, words)


def kept(*names: str) -> DeskDouble:
    shown = {
        f"k{number}": (name, OpenedDouble(plan_double(), values(f"k{number}", name)))
        for number, name in enumerate(names)
    }
    return DeskDouble(shown)


def test_from_start_to_result(opened: Opener, qtbot: QtBot) -> None:
    found = opened()
    page = found.page
    assert page.setup.target.text() == "Target: Small · F32"
    found.start()
    qtbot.waitUntil(lambda: page.tabs.currentIndex() == RESULT_TAB)
    (plan,) = found.desk.measured
    preferences = found.app.session.preferences
    assert plan.target == preferences.target
    assert [lane.is_off for lane in plan.lanes] == [True, False]
    assert plan.lanes[1].sources == preferences.drafting
    assert plan.lanes[1].draft == preferences.draft
    assert [prompt.category for prompt in plan.prompts] == ["coding", "writing", "rewrite"] or len(plan.prompts) == 3
    assert page.result.values is not None
    assert page.result.title.words == "Comparison 1"
    assert not page.is_running
    assert page.history.list.count() == 1
    assert found.app.window.navigation.button(COMPARE_PAGE).text() == "Compare"


def test_both_lanes_write_while_it_runs(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    found.start()
    page = found.page
    qtbot.waitUntil(lambda: page.is_running and found.view.controller.status.total > 0)
    assert "0 of " in page.running.left.text()
    assert "left" in page.running.left.text()
    assert page.running.pause_button.hasFocus()
    assert "disturbs" in page.running.note.text()
    gate = found.desk.gate
    assert gate is not None
    gate.set()
    qtbot.waitUntil(lambda: not found.view.controller.busy)
    assert [lane.words for lane in page.running.lanes] == [found.desk.text] * 2
    assert all("tokens/s" in lane.rate.text() for lane in page.running.lanes)


def test_what_does_not_fit_is_asked_about_first(opened: Opener, qtbot: QtBot) -> None:
    found = opened()
    weighed: list[object] = []

    def check(request: object, _: object) -> MemoryPlan:
        weighed.append(request)
        return MemoryPlan(Fit.TOO_LARGE, (), (), "The pair needs 12 GB; 8 GB are free.")

    found.app.session.pair.check_memory = check
    for answer in ("cancel_button", "anyway_button"):
        found.start()
        # A second click while that is looked at asks nothing more.
        found.start()
        qtbot.waitUntil(lambda: bool(found.page.findChildren(MemoryDialog)))
        (dialog,) = found.page.findChildren(MemoryDialog)
        assert not found.view.controller.busy
        assert found.desk.measured == []
        QTest.mouseClick(getattr(dialog, answer), Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: not found.page.findChildren(MemoryDialog))
    qtbot.waitUntil(lambda: len(found.desk.measured) == 1 and not found.view.controller.busy)
    assert len(weighed) == 2


def test_one_that_is_gone_on_with_is_weighed_too(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble({"k0": ("Half", OpenedDouble(plan_double(), values("k0", "Half", resumable=True)))}))
    found.app.session.pair.check_memory = lambda *_: MemoryPlan(Fit.TOO_LARGE, (), (), "Too much.")
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    QTest.mouseClick(found.page.result.resume_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(found.page.findChildren(MemoryDialog)))
    found.page.findChildren(MemoryDialog)[0].reject()
    assert found.desk.resumed == []
    assert found.page.tabs.currentIndex() == RESULT_TAB


def test_another_target_than_before_is_told(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Rivers"))
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.result.values is not None)
    found.page.result.again_button.click()
    assert found.page.setup.target.text() == "Target: Small · F32. The earlier comparison was of llama-3.1-8b."


def test_each_lane_runs_beside_the_one_that_it_is_compared_with(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble())
    page = found.page
    page.setup.lanes.rows[0].set_temperature(0.8)
    page.setup.repeats.setValue(1)
    shown: set[tuple[str, str]] = set()
    found.view.controller.runEnded.connect(
        lambda *_: shown.add((page.running.lanes[0].name.words, page.running.lanes[1].name.words))
    )
    page.setup.prompts.choose(PromptKind.TYPED)
    page.setup.prompts.text.setPlainText("Why is snow quiet?")
    page.setup.lanes.add_button.click()
    found.start()
    qtbot.waitUntil(lambda: page.tabs.currentIndex() == RESULT_TAB)
    lanes = [lane.name for lane in found.desk.measured[0].lanes]
    assert ("Off, temperature 0.8", lanes[1]) in shown
    assert ("Off", lanes[2]) in shown
    assert {left for left, _ in shown} == {"Off", "Off, temperature 0.8"}


def test_off_beside_off_is_not_coloured_as_if_it_drafted(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    what = found.page.setup.lanes.rows[0].what
    what.setFocus()
    QTest.keyClick(what, Qt.Key.Key_End)
    found.start()
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    lanes = found.page.running.lanes
    assert [lane.name.words for lane in lanes] == ["Off", "Off (2)"]
    assert all(LIGHT.muted in lane.rate.styleSheet() for lane in lanes)


def test_paused_gone_on_and_ended_by_buttons(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    found.start()
    running, controller, gate = found.page.running, found.view.controller, found.desk.gate
    assert gate is not None
    qtbot.waitUntil(lambda: controller.status.total > 0)
    QTest.mouseClick(running.pause_button, Qt.MouseButton.LeftButton)
    assert running.doing.text() == "Pausing after this run"
    gate.set()
    qtbot.waitUntil(lambda: controller.status.state is CompareState.PAUSED)
    assert running.doing.text() == "Paused"
    assert running.pause_button.text() == "Go on"
    # What is done by now, though no other run has begun.
    total = controller.status.total
    assert running.left.text() == f"1 of {total} runs"
    assert found.page.tabs.tabText(COMPARE_TAB) == f"Paused {100 // total} %"
    gate.clear()
    QTest.mouseClick(running.pause_button, Qt.MouseButton.LeftButton)
    assert running.pause_button.text() == "Pause"
    QTest.mouseClick(running.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    assert found.page.result.resume_button.isVisible()
    gate.set()
    QTest.mouseClick(found.page.result.resume_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: found.desk.resumed == ["c1"] and not controller.busy)
    qtbot.waitUntil(lambda: not found.page.result.resume_button.isVisible())


def test_what_the_command_line_kept_meanwhile_is_listed(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Mine"))
    qtbot.waitUntil(lambda: found.page.history.list.count() == 1)
    found.desk.kept["k9"] = ("From elsewhere", OpenedDouble(plan_double(), values("k9", "From elsewhere")))
    tabs = found.page.tabs
    QTest.mouseClick(tabs.tabBar(), Qt.MouseButton.LeftButton, pos=tabs.tabBar().tabRect(HISTORY_TAB).center())
    qtbot.waitUntil(lambda: found.page.history.list.count() == 2)


def test_ended_before_anything_was_measured(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    found.start()
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    QTest.mouseClick(found.page.running.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not found.view.controller.busy)
    assert not found.page.is_running
    assert "before anything was measured" in found.page.setup.basis.text()
    assert found.page.history.list.count() == 0


def test_it_goes_on_while_another_page_is_shown(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    found.start()
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    found.app.window.show_page(CHAT_PAGE)
    button = found.app.window.navigation.button(COMPARE_PAGE)
    gate = found.desk.gate
    assert gate is not None
    qtbot.waitUntil(lambda: button.text() == "Compare (0 %)")
    gate.set()
    qtbot.waitUntil(lambda: not found.view.controller.busy)
    assert button.text() == "Compare"
    found.app.window.show_page(COMPARE_PAGE)
    qtbot.waitUntil(lambda: found.page.result.values is not None)


def test_an_end_leaves_the_keyboard_where_somebody_writes(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    found.start()
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    window, gate = found.app.window, found.desk.gate
    assert gate is not None
    window.show_page(CHAT_PAGE)
    type_where_the_keyboard_is("While I wri")
    gate.set()
    qtbot.waitUntil(lambda: found.page.result.values is not None)
    type_where_the_keyboard_is("te this")
    assert window.composer.edit.toPlainText() == "While I write this"
    window.show_page(COMPARE_PAGE)
    assert found.page.result.replay.play_button.hasFocus()


def test_a_start_that_is_weighed_leaves_the_keyboard_too(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    weigh = threading.Event()

    def check(*_: object) -> None:
        weigh.wait(5)

    found.app.session.pair.check_memory = check
    found.start()
    found.app.window.show_page(CHAT_PAGE)
    weigh.set()
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    assert found.app.window.composer.edit.hasFocus()


def test_a_message_meanwhile_is_answered_and_said_to_disturb(opened: Opener, qtbot: QtBot) -> None:
    hold = threading.Event()
    desk = DeskDouble(gate=threading.Event(), failing_pair="The draft was refused.")
    found = opened(desk, scripts=[Script(scripted_steps("Hello there"), hold=hold)])
    found.start()
    problem = found.page.running.problem
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    found.app.window.show_page(CHAT_PAGE)
    found.app.window.composer.set_text("Hello")
    QTest.keyClick(found.app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(found.app.session.replies.busy_chats))
    found.app.window.show_page(COMPARE_PAGE)
    assert problem.isVisible()
    assert problem.text().startswith("The draft was refused.")
    assert "disturbs" in problem.text()
    hold.set()
    qtbot.waitUntil(lambda: not found.app.session.replies.busy_chats)
    # It is over: what was refused is still told.
    qtbot.waitUntil(lambda: problem.text() == "The draft was refused.")
    # The runs that it met say so; the next ones do not.
    assert found.desk.chatted() is True
    assert found.desk.chatted() is False


def test_while_a_reply_is_written_nothing_starts(opened: Opener, qtbot: QtBot) -> None:
    hold = threading.Event()
    found = opened(scripts=[Script(scripted_steps("Hello there"), hold=hold)])
    found.app.window.show_page(CHAT_PAGE)
    found.app.window.composer.set_text("Hi")
    QTest.keyClick(found.app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(found.app.session.replies.busy_chats))
    found.app.window.show_page(COMPARE_PAGE)
    assert not found.page.setup.start_button.isEnabled()
    assert "A reply is being written" in found.page.setup.estimate.text()
    hold.set()
    qtbot.waitUntil(found.page.setup.start_button.isEnabled)


def test_while_the_chats_model_is_loaded_nothing_is_gone_on_with(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble({"k0": ("Half", OpenedDouble(plan_double(), values("k0", "Half", resumable=True)))}))
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    pair, gate = found.app.session.pair, threading.Event()
    found.app.engine.load_gate = gate
    pair.reload()
    QTest.mouseClick(found.page.result.resume_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(found.app.window.findChildren(ErrorDialog)))
    (dialog,) = found.app.window.findChildren(ErrorDialog)
    assert any("model is being loaded" in label.text() for label in dialog.findChildren(QLabel))
    dialog.accept()
    assert (found.desk.resumed, found.page.is_running) == ([], False)
    gate.set()
    qtbot.waitUntil(lambda: pair.status.state is PairState.READY)
    QTest.mouseClick(found.page.result.resume_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: found.desk.resumed == ["k0"] and not found.view.controller.busy)


def test_without_a_model_the_page_says_what_to_do(opened: Opener) -> None:
    found = opened(ready=False)
    assert not found.page.setup.start_button.isEnabled()
    assert found.page.setup.models_button.isVisible()
    assert "Choose a model" in found.page.setup.estimate.text()


def test_the_worlds_errors_are_shown_in_words(opened: Opener, qtbot: QtBot) -> None:
    error = UserFacingError("The draft could not be loaded.", "Its file is gone.", "Choose another lane.")
    found = opened(DeskDouble(error=error))
    found.start()
    qtbot.waitUntil(lambda: bool(found.app.window.findChildren(ErrorDialog)))
    for dialog in found.app.window.findChildren(ErrorDialog):
        dialog.accept()
    assert not found.page.is_running


def test_a_reply_is_compared_on_its_prompt_with_one_click(opened: Opener, qtbot: QtBot) -> None:
    found = opened()
    window = found.app.window
    window.conversation.compareRequested.connect(lambda _: window.show_page(COMPARE_PAGE))
    window.conversation.compareRequested.connect(found.view.compare_reply)
    window.show_page(CHAT_PAGE)
    say(found.app, "What does Pythagoras say?", qtbot)
    first = found.app.session.chats.last_reply()
    say(found.app, "And who was he?", qtbot)
    assert first is not None
    view = window.conversation._by_id[first].view
    assert view is not None
    view._footer.compare.click()  # type: ignore[attr-defined]
    assert window.page == COMPARE_PAGE
    setup = found.page.setup
    assert setup.prompts.kind is PromptKind.CHAT
    assert setup.start_button.hasFocus()
    choice = setup.setup.prompts
    assert choice.text == "What does Pythagoras say?"
    assert [message.role for message in choice.messages] == [Role.USER]
    QTest.keyClick(setup.start_button, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: bool(found.desk.measured))
    (prompt,) = found.desk.measured[0].prompts
    assert prompt.private
    assert prompt.text == "What does Pythagoras say?"
    qtbot.waitUntil(lambda: not found.view.controller.busy)


def test_the_open_chats_last_message_stands_ready(opened: Opener, qtbot: QtBot) -> None:
    found = opened()
    found.app.window.show_page(CHAT_PAGE)
    say(found.app, "Name a river", qtbot)
    say(found.app, "Another one", qtbot)
    found.app.window.show_page(COMPARE_PAGE)
    found.page.setup.prompts.choices[PromptKind.CHAT].click()
    choice = found.page.setup.setup.prompts
    assert choice.text == "Another one"
    assert [message.role for message in choice.messages] == [Role.USER, Role.ASSISTANT, Role.USER]


def test_an_estimate_stands_before_the_start(opened: Opener, qtbot: QtBot) -> None:
    found = opened()
    qtbot.waitUntil(lambda: "runs" in found.page.setup.estimate.text())
    assert "18 runs" in found.page.setup.estimate.text()
    found.app.session.set_preferences(replace(found.app.session.preferences, speculate=False))
    found.app.window.show_page(CHAT_PAGE)
    say(found.app, "Plain", qtbot)
    found.app.session.set_preferences(replace(found.app.session.preferences, speculate=True))
    say(found.app, "Drafted", qtbot)
    found.app.window.show_page(COMPARE_PAGE)
    found.page.setup.repeats.setValue(2)
    qtbot.waitUntil(lambda: "measured here" in found.page.setup.basis.text())
    assert found.page.setup.estimate.text().startswith("12 runs, ")


def test_history_is_searched_renamed_deleted_and_taken_back(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Rivers", "Poems"))
    page = found.page
    page.tabs.setCurrentIndex(HISTORY_TAB)
    qtbot.waitUntil(lambda: page.history.list.count() == 2)
    found.app.window.focus_search()
    QTest.keyClicks(page.history.search, "poem")
    # Slow typing searches on the way.
    qtbot.waitUntil(lambda: not page.history._search_later.isActive() and found.view._worker.idle)
    assert [page.history.list.item(row).text() for row in range(page.history.list.count())] == ["Poems"]
    page.history.list.setFocus()
    page.history.list.selectAll()
    QTest.keyClick(page.history.list, Qt.Key.Key_Delete)
    qtbot.waitUntil(page.history.empty.isVisible)
    assert page.history.empty.text() == "Nothing found for “poem”."
    assert list(found.desk.kept) == ["k0"]
    assert found.app.window.can_undo
    assert page.toast.label.text() == "Comparison deleted"
    found.app.commands["undo"].trigger()
    qtbot.waitUntil(lambda: set(found.desk.kept) == {"k0", "k1"} and page.history.list.count() == 1)
    page.history.renameRequested.emit("k1", "Verses")
    qtbot.waitUntil(lambda: found.desk.kept["k1"][0] == "Verses")


def test_an_old_one_is_opened_and_its_deletion_closes_it(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Rivers"))
    page = found.page
    qtbot.waitUntil(lambda: page.history.list.count() == 1)
    page.tabs.setCurrentIndex(HISTORY_TAB)
    page.history.list.setFocus()
    QTest.keyClick(page.history.list, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.tabs.currentIndex() == RESULT_TAB)
    assert page.result.title.words == "Rivers"
    assert page.result.replay.play_button.hasFocus()
    page.history.deleteRequested.emit(("k0",))
    qtbot.waitUntil(lambda: page.tabs.currentIndex() == HISTORY_TAB)
    assert not page.tabs.isTabVisible(RESULT_TAB)


def test_two_old_ones_beside_each_other(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Before", "After"))
    page = found.page
    qtbot.waitUntil(lambda: page.history.list.count() == 2)
    page.tabs.setCurrentIndex(HISTORY_TAB)
    page.history.list.selectAll()
    QTest.mouseClick(page.history.two_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(page.two.isVisible)
    assert page.two.table.horizontalHeaderItem(1).text() == "Before"  # type: ignore[union-attr]
    page.two.back_button.click()
    assert page.history.isVisible()


def test_the_same_again_from_a_result(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Rivers"))
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.result.values is not None)
    found.page.result.again_button.click()
    assert found.page.tabs.currentIndex() == COMPARE_TAB
    lanes = found.page.setup.setup.lanes
    assert lanes[1].draft == plan_double().lanes[1].draft


def test_the_same_again_is_measured_as_it_was_unless_one_objects(opened: Opener, qtbot: QtBot) -> None:
    then = replace(
        plan_double((Prompt("coding", "one", "Write"),)),
        load_settings=LoadSettings(context_length=4096, threads=3),
        rule=Rule.REJECTION,
        sampling=SamplingSettings(temperature=0.7, top_k=12),
        warm_up=False,
    )
    found = opened(DeskDouble({"k0": ("Rivers", OpenedDouble(then, values("k0", "Rivers")))}))
    session, setup, measured = found.app.session, found.page.setup, found.desk.measured
    assert not setup.conditions.isVisible()
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    QTest.mouseClick(found.page.result.again_button, Qt.MouseButton.LeftButton)
    assert setup.conditions.isVisible()
    assert ": a context of 4096 tokens, threads 3, rule rejection, sampling, no warm-up." in setup.conditions.text()
    found.start()
    qtbot.waitUntil(lambda: len(measured) == 1 and not found.view.controller.busy)
    assert (measured[0].load_settings, measured[0].rule, measured[0].warm_up) == (then.load_settings, then.rule, False)
    assert measured[0].sampling == then.sampling
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    found.page.show_tab(COMPARE_TAB)
    # What is set the same by now needs no words.
    before = session.preferences
    session.set_preferences(replace(before, load_settings=then.load_settings, rule=then.rule))
    assert ": sampling, no warm-up." in setup.conditions.text()
    session.set_preferences(before)
    QTest.mouseClick(setup.today_button, Qt.MouseButton.LeftButton)
    assert not setup.conditions.isVisible()
    assert not setup.today_button.isVisible()
    found.start()
    qtbot.waitUntil(lambda: len(measured) == 2 and not found.view.controller.busy)
    assert (measured[1].load_settings, measured[1].rule) == (before.load_settings, before.rule)
    assert measured[1].warm_up


def test_another_target_is_measured_as_the_chat_is_set(opened: Opener, qtbot: QtBot) -> None:
    then = replace(plan_double(), load_settings=LoadSettings(context_length=4096))
    found = opened(DeskDouble({"k0": ("Rivers", OpenedDouble(then, values("k0", "Rivers")))}))
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    found.page.result.again_button.click()
    assert "a context of 4096 tokens" in found.page.setup.conditions.text()
    session = found.app.session
    session.set_preferences(replace(session.preferences, target=found.app.folder / "other.gguf"))
    assert not found.page.setup.conditions.isVisible()


def open_kept(found: Opened, private: bool, qtbot: QtBot) -> None:
    found.desk.kept["k0"] = ("My work", OpenedDouble(plan_double(private=private), values("k0", "My work")))
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)


def choose_export(found: Opened, kind: str) -> None:
    menu = found.page.result.export_button.menu()
    assert menu is not None
    next(action for action in menu.actions() if action.data() == kind).trigger()


@pytest.mark.parametrize("kind", ["html", "md", "json", "csv"])
def test_reports_are_saved_where_one_says(
    opened: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    found = opened()
    open_kept(found, private=False, qtbot=qtbot)
    asked: list[str] = []

    def ask(_: object, title: str, suggested: str, kinds: str) -> tuple[str, str]:
        asked.append(suggested)
        return str(tmp_path / "Qwen2.5 out"), kinds

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    choose_export(found, kind)
    qtbot.waitUntil(lambda: bool(found.desk.exported))
    assert asked == [f"My work.{kind}"]
    assert found.desk.exported == [("k0", kind, tmp_path / f"Qwen2.5 out.{kind}", True)]
    qtbot.waitUntil(found.page.result.saved.isVisible)


def test_the_page_goes_on_while_a_report_is_saved(
    opened: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    found = opened(DeskDouble(export_gate=gate))
    open_kept(found, private=False, qtbot=qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "out.html"), ""))
    choose_export(found, "html")
    saved = found.page.result.saved
    assert saved.isVisible()
    assert saved.text().startswith("Saving…")
    found.page.history.renameRequested.emit("k0", "Renamed")
    qtbot.waitUntil(lambda: found.page.result.title.words == "Renamed")
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.view._worker.idle)
    assert saved.text().startswith("Saving…")
    gate.set()
    qtbot.waitUntil(lambda: saved.text() == f"Saved as {tmp_path / 'out.html'}")


def test_a_window_that_closes_ends_a_report_that_is_being_saved(
    opened: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = opened(DeskDouble(export_gate=threading.Event()))
    open_kept(found, private=False, qtbot=qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "out.html"), ""))
    choose_export(found, "html")
    found.app.window.close()
    # A thread that is left fails this test.
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("ticked", [False, True])
def test_private_words_are_left_out_unless_ticked(
    opened: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ticked: bool
) -> None:
    found = opened()
    open_kept(found, private=True, qtbot=qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "out.html"), ""))
    choose_export(found, "html")
    dialog = found.page.findChild(PrivateDialog)
    assert dialog is not None
    assert not dialog.box.isChecked()
    dialog.box.setChecked(ticked)
    QTest.mouseClick(dialog.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(found.desk.exported))
    assert found.desk.exported[0][3] is ticked


def test_no_file_is_written_when_one_thinks_better_of_it(
    opened: Opener, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = opened()
    open_kept(found, private=True, qtbot=qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    choose_export(found, "html")
    dialog = found.page.findChild(QDialog)
    assert dialog is not None
    dialog.accept()
    assert not found.desk.exported


def test_a_picture_of_all_of_it_without_private_words(
    opened: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = opened()
    open_kept(found, private=False, qtbot=qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "out.png"), ""))
    choose_export(found, "png")
    image = QImage(str(tmp_path / "out.png"))
    content = found.page.result.content
    assert image.width() == 2 * (content.width() + 48)
    assert image.height() > 2 * content.height()
    without = found.page.picture(with_replies=False)
    assert without.height() < image.height()
    assert found.page.result.replay.isVisible()
    assert found.page.result.buttons.isVisible()


def test_a_picture_that_cannot_be_saved_is_told(
    opened: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = opened()
    open_kept(found, private=False, qtbot=qtbot)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "no" / "out.png"), ""))
    choose_export(found, "png")
    dialogs = found.app.window.findChildren(ErrorDialog)
    assert dialogs
    dialogs[0].accept()


def test_a_replay_rests_when_another_page_is_shown(opened: Opener, qtbot: QtBot) -> None:
    found = opened(kept("Rivers"))
    found.page.history.openRequested.emit("k0")
    qtbot.waitUntil(lambda: found.page.tabs.currentIndex() == RESULT_TAB)
    player = found.page.result.replay.player
    QTest.keyClick(found.page.result.replay, Qt.Key.Key_Space)
    assert player.playing
    found.app.window.show_page(CHAT_PAGE)
    assert not player.playing


def test_the_lanes_are_what_this_window_knows(opened: Opener) -> None:
    found = opened(sources=(Source.DRAFT_MODEL,), draft_length=3)
    row = found.page.setup.lanes.rows[0]
    assert row.length.currentText() == "3 tokens"
    labels = [row.what.itemText(number) for number in range(row.what.count())]
    assert labels[-1] == "Off"
    assert "Prompt lookup" in labels
    assert "n-gram cache" in labels


def test_the_window_closes_while_it_runs(opened: Opener, qtbot: QtBot) -> None:
    found = opened(DeskDouble(gate=threading.Event()))
    found.start()
    qtbot.waitUntil(lambda: found.view.controller.status.total > 0)
    found.app.window.close()
    assert not found.desk.kept
