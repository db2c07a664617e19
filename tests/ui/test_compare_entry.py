"""The page in the list of pages: nothing of it is made before it is wanted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import EngineEvent
from forespeak.models.file_hashes import FileHashes
from forespeak.models.folders import Folders
from forespeak.ui.compare_desk import ComparisonDesk
from forespeak.ui.compare_entry import COMPARE_PAGE, CompareEntry
from forespeak.ui.compare_page import RESULT_TAB
from forespeak.ui.theme import LIGHT
from ui.conftest import App, AppMaker
from ui.scripted_engine import Script, ScriptedEngine, scripted_steps

TEXT = "One river, two rivers, three rivers, four rivers."


@pytest.fixture
def app(make_app: AppMaker) -> App:
    return make_app()


def connect(listener: Callable[[EngineEvent], None]) -> ScriptedEngine:
    return ScriptedEngine(listener, [Script(scripted_steps(TEXT, None), 2000.0)])


def folders_of(app: App) -> Folders:
    return Folders(app.folder, app.folder, app.folder, app.folder, app.folder)


def test_made_when_it_is_first_shown(app: App) -> None:
    entry = CompareEntry(app.window, app.session, folders_of(app), app.models, connect)
    app.window.set_theme(LIGHT)
    assert app.window.navigation.button(COMPARE_PAGE).text() == "Compare"
    assert entry._view is None
    app.window.show_page(COMPARE_PAGE)
    assert entry.view().page is not None
    assert entry.view() is entry.view()


def test_a_reply_leads_to_the_page_and_from_there_to_a_result(app: App, qtbot: QtBot) -> None:
    entry = CompareEntry(app.window, app.session, folders_of(app), app.models, connect)
    app.window.set_theme(LIGHT)
    app.window.composer.set_text("Name rivers")
    QTest.keyClick(app.window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: app.session.chats.last_reply() is not None and not app.session.chats.busy)
    app.window.conversation.compareRequested.emit(app.session.chats.last_reply())
    assert app.window.page == COMPARE_PAGE
    page = entry.view().page
    assert page is not None
    qtbot.waitUntil(lambda: len(page.setup.lanes.rows) == 1)
    page.setup.repeats.setValue(1)
    QTest.keyClick(page.setup.start_button, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: page.result.values is not None, timeout=10_000)
    assert page.result.values is not None
    assert page.result.values.recorded[0].label == "your own: from the chat"
    assert page.result.replay.lanes[0].words == TEXT
    assert list(app.folder.glob("comparisons/*.jsonl"))


def test_go_on_measuring_and_end_now_while_it_loads_lose_nothing(app: App, qtbot: QtBot) -> None:
    engines: list[ScriptedEngine] = []

    def slowly(listener: Callable[[EngineEvent], None]) -> ScriptedEngine:
        engine = ScriptedEngine(listener, [Script(scripted_steps(TEXT, None), 100.0)])
        if engines:
            engine.load_gate = threading.Event()
        engines.append(engine)
        return engine

    entry = CompareEntry(app.window, app.session, folders_of(app), app.models, slowly)
    app.window.set_theme(LIGHT)
    app.window.show_page(COMPARE_PAGE)
    page, controller = entry.view().page, entry.view().controller
    assert page is not None
    qtbot.waitUntil(lambda: len(page.setup.lanes.rows) == 1)
    QTest.mouseClick(page.setup.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: controller.status.done > 0)
    QTest.mouseClick(page.running.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.tabs.currentIndex() == RESULT_TAB)
    (file,) = app.folder.glob("comparisons/*.jsonl")
    QTest.mouseClick(page.result.resume_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(engines) == 2 and page.running.doing.text() == "Reading the target")
    QTest.mouseClick(page.running.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not controller.busy and page.tabs.currentIndex() == RESULT_TAB)
    assert file.exists()
    assert page.history.list.count() == 1
    assert page.result.resume_button.isVisible()


def test_the_window_opens_without_the_page_and_its_charts() -> None:
    code = "import sys, forespeak.ui.compare_entry, forespeak.ui.main_window\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    loaded = set(done.stdout.split())
    assert not loaded & {"pyqtgraph", "numpy", "psutil", "forespeak.ui.compare_page", "forespeak.compare.runner"}


def test_the_page_opens_without_the_charts() -> None:
    code = "import sys, forespeak.ui.compare_view, forespeak.ui.compare_desk\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    assert "pyqtgraph" not in done.stdout.split()


def test_what_is_known_of_files_moves_with_the_models_folder(app: App) -> None:
    """A report's hashes are computed once, also when the folder was moved while the window is open."""
    entry = CompareEntry(app.window, app.session, folders_of(app), app.models, connect)
    desk = entry.view()._desk
    assert isinstance(desk, ComparisonDesk)
    model = app.folder / "new" / "a.gguf"
    model.parent.mkdir()
    model.write_bytes(b"one")
    entry.set_models_folder(model.parent)
    assert desk._hash_of is not None
    assert desk._hash_of(model, lambda: False)
    assert FileHashes(model.parent).of(model) is not None
