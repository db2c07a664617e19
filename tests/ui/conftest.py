"""A window as a person meets it, on scripted engines; whatever a test leaves behind fails it."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.chats.store import ChatStore
from forespeak.engines.engine import ConversionRequest, EngineClient, EngineEvent
from forespeak.errors import UserFacingError
from forespeak.ui.actions import Commands
from forespeak.ui.main_window import MainWindow
from forespeak.ui.pair_controller import Fit, Starter
from forespeak.ui.parity_controller import KeptResults
from forespeak.ui.preferences import Preferences, PreferencesFile
from forespeak.ui.session import Session
from forespeak.ui.window_menus import add_menus
from ui.scripted_engine import Script, ScriptedEngine, scripted_steps

TEXT = "The square of the longest side equals the sum of the squares of the other two sides."


@pytest.fixture(autouse=True)
def garbage_goes_on_the_window_s_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """As `GarbageKeeper` does in the app: a worker thread that happened to collect would destroy an earlier test's
    widgets, which Qt answers with a crash.
    """
    if request.path.name == "test_garbage.py":
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.collect(1)
        gc.enable()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Windows still open and threads still running at the end of a test are faults of the test or of the window."""
    before = set(threading.enumerate())
    yield
    application = QApplication.instance()
    if isinstance(application, QApplication):
        for _ in range(3):
            application.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        left = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
        for widget in left:
            widget.close()
        assert not left, f"windows left open: {left}"
    running = [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()]
    for thread in running:
        thread.join(2.0)
    still = [thread.name for thread in running if thread.is_alive()]
    assert not still, f"threads left running: {still}"


@dataclass
class FakeModels:
    """Files by name; `fits` decides about pairs."""

    folder: Path
    has_starter: bool = True
    unpacked: bool = True
    starter_error: UserFacingError | None = None
    fits: Callable[[Path, Path], Fit] = lambda target, draft: Fit(True, "same vocabulary", "Both have 49,152 tokens.")
    names: dict[str, str] = field(default_factory=dict)

    def starter(self) -> Starter | None:
        if self.starter_error is not None:
            raise self.starter_error
        if not self.has_starter:
            return None
        target, draft = self.folder / "starter-f32.gguf", self.folder / "starter-q4.gguf"
        done = self.unpacked or target.exists()
        conversion = None if done else ConversionRequest(draft, target)
        return Starter("Small starter pair", target, draft, "Small · F32", "Small · Q4_1", conversion, "540 MB")

    def name(self, path: Path) -> str:
        if path.suffix != ".gguf":
            raise UserFacingError(f"“{path.name}” is not a GGUF file.", "It is a text file.", "Choose a .gguf file.")
        return self.names.get(path.name, path.stem.replace("-", " ").title())

    def fit(self, target: Path, draft: Path) -> Fit:
        return self.fits(target, draft)


@dataclass
class App:
    """The window with its session, and what the world around it did."""

    window: MainWindow
    session: Session
    store: ChatStore
    models: FakeModels
    commands: Commands
    folder: Path
    engines: list[ScriptedEngine]

    @property
    def engine(self) -> ScriptedEngine:
        return self.engines[-1]


AppMaker = Callable[..., App]


@pytest.fixture
def make_app(qtbot: QtBot, tmp_path: Path) -> Iterator[AppMaker]:
    """Make a window; with `ready` a pair is chosen and loaded. Keywords go to the preferences."""
    made: list[App] = []

    def make(
        *,
        scripts: list[Script] | None = None,
        ready: bool = True,
        models: FakeModels | None = None,
        prepare: Callable[[ScriptedEngine], None] = lambda engine: None,
        store: ChatStore | None = None,
        kept: KeptResults | None = None,
        **chosen: object,
    ) -> App:
        models = models or FakeModels(tmp_path)
        preferences = Preferences()
        if ready:
            starter = replace(models, unpacked=True, starter_error=None, has_starter=True).starter()
            assert starter is not None
            preferences = replace(preferences, target=starter.target, draft=starter.draft)
        preferences = replace(preferences, **chosen)  # type: ignore[arg-type]
        engines: list[ScriptedEngine] = []

        def connect(listener: Callable[[EngineEvent], None]) -> EngineClient:
            engine = ScriptedEngine(listener, scripts or [Script(scripted_steps(TEXT))])
            prepare(engine)
            engines.append(engine)
            return engine

        window = MainWindow()
        qtbot.addWidget(window)
        window.resize(1280, 820)
        chats = store or ChatStore(tmp_path / "chats.db")
        file = PreferencesFile(tmp_path / "preferences.json")
        session = Session(window, chats, preferences, file, models, connect, kept)
        commands = add_menus(window, session, tmp_path)
        window.closing.connect(session.close)
        window.show()
        qtbot.waitExposed(window)
        app = App(window, session, chats, models, commands, tmp_path, engines)
        made.append(app)
        session.start()
        if ready:
            qtbot.waitUntil(lambda: session.pair.status.loaded is not None)
        return app

    yield make
    for app in made:
        app.window.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The offscreen platform complains of what it cannot do for a window; real ones can."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))
