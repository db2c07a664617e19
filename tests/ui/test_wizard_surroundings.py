"""The chat as the wizard's tests see it: what it is at, and when it is free."""

from __future__ import annotations

import threading

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.engines.parity_result import ParityCase, ParityResult
from forespeak.speculation.trace import Source
from forespeak.ui.parity_controller import ParityState
from forespeak.ui.wizard_surroundings import ChatSurroundings
from forespeak.ui.wizard_tester import ChatWork
from ui.conftest import AppMaker
from ui.scripted_engine import Script, scripted_steps

CASE = ParityCase("Recipe", 0.0, 48, 60, 41)
CHECKED = ParityResult((CASE,), 1, (Source.DRAFT_MODEL,), 0.0, 3.0, "2026-11-30T10:00:00+00:00", "e", "1")


def test_each_thing_that_the_chat_does_has_its_name(make_app: AppMaker, qtbot: QtBot) -> None:
    hold, checked, loaded = threading.Event(), threading.Event(), threading.Event()
    app = make_app(scripts=[Script(scripted_steps("Hello there"), hold=hold)])
    around, session = ChatSurroundings(app.session), app.session

    def work() -> ChatWork | None:
        return around.chat_work

    assert work() is None
    app.window.composer.set_text("Hi")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: work() is ChatWork.REPLY)
    hold.set()
    qtbot.waitUntil(lambda: work() is None)
    qtbot.waitUntil(lambda: session.parity.status.state is ParityState.IDLE)
    app.engine.check_answer, app.engine.check_gate = CHECKED, checked
    session.parity.start()
    assert work() is ChatWork.CHECK
    checked.set()
    qtbot.waitUntil(lambda: work() is None)
    app.engine.load_gate = loaded
    session.pair.reload()
    assert work() is ChatWork.LOADING
    loaded.set()
    qtbot.waitUntil(lambda: work() is None)
