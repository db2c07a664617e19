"""Opens the window. Nothing of Qt is imported before it is known that Qt can run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forespeak.errors import UserFacingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtCore import QLockFile
    from PySide6.QtWidgets import QApplication

    from forespeak.engines.engine import EngineClient, EngineEvent
    from forespeak.models.folders import Folders
    from forespeak.ui.appearance import AppearanceKeeper
    from forespeak.ui.application import Application
    from forespeak.ui.main_window import MainWindow
    from forespeak.ui.preferences import Preferences, PreferencesFile
    from forespeak.ui.session import Session


def ui_problem() -> UserFacingError | None:
    """Why no window can be opened here, or None. Ask before `run_window`: Qt itself would end the process."""
    from forespeak.ui.display import window_problem

    return window_problem()


def run_window(argv: Sequence[str] | None = None, model: Path | None = None) -> int:
    """Show the window until it is closed, with `model` as the target. Returns the exit code: 2 if the chats cannot be
    opened.
    """
    from PySide6.QtCore import Qt, QTimer

    from forespeak.models.folders import folders
    from forespeak.ui.crash_guard import CrashGuard
    from forespeak.ui.preferences import PreferencesFile
    from forespeak.ui.quit_signals import QuitSignals

    application = make_application(list(sys.argv if argv is None else argv))
    if model is not None:
        application.open_file(model)
    where = folders()
    guard = CrashGuard(where.logs / "forespeak.log", application)
    guard.install()
    preferences_file = PreferencesFile(where.config / "preferences.json")
    preferences = preferences_file.read()
    window, appearance = make_window(application, preferences)
    # Qt quits with the last window, and a tool tip or a menu may happen to be one.
    window.closing.connect(application.quit, Qt.ConnectionType.QueuedConnection)
    signals = QuitSignals(application)
    signals.arrived.connect(window.close)
    window.show()
    # Everything that reads the disk or takes long to import waits until the window is up.
    QTimer.singleShot(0, lambda: _begin(application, window, appearance, preferences_file, where))
    code = application.exec()
    signals.uninstall()
    guard.uninstall()
    return code


def make_application(argv: list[str]) -> Application:
    from forespeak.ui.app_icon import app_icon
    from forespeak.ui.application import Application
    from forespeak.ui.theme import ui_font

    application = Application(argv)
    application.setApplicationName("Forespeak")
    application.setApplicationDisplayName("Forespeak")
    application.setDesktopFileName("forespeak")
    # The same look everywhere; the style sheet paints over it.
    application.setStyle("Fusion")
    application.setFont(ui_font())
    application.setWindowIcon(app_icon())
    return application


def make_window(application: QApplication, preferences: Preferences) -> tuple[MainWindow, AppearanceKeeper]:
    """The empty window, and what keeps it in its theme."""
    from forespeak.ui.app_icon import app_icon
    from forespeak.ui.appearance import AppearanceKeeper
    from forespeak.ui.main_window import MainWindow

    window = MainWindow(preferences.sidebar_open, preferences.panel_open)
    window.resize(*preferences.window_size)
    window.top.mark.setPixmap(app_icon().pixmap(22, 22))
    appearance = AppearanceKeeper(application, window)
    appearance.apply(preferences)
    return window, appearance


def _begin(
    application: Application,
    window: MainWindow,
    appearance: AppearanceKeeper,
    preferences_file: PreferencesFile,
    where: Folders,
) -> None:
    from forespeak.ui.garbage import GarbageKeeper

    try:
        session = make_session(window, appearance, preferences_file, where)
    except UserFacingError as error:
        from forespeak.ui.dialogs import ErrorDialog

        dialog = ErrorDialog(error, window)
        dialog.finished.connect(lambda _: application.exit(2))
        dialog.setModal(True)
        dialog.show()
        return
    keeper = GarbageKeeper(lambda: bool(session.replies.busy_chats), session)
    window.composer.edit.textChanged.connect(keeper.note_input)
    window.closing.connect(keeper.stop)
    session.start()
    application.open_with(session.pair_view.open_model)
    keeper.start()


def make_session(
    window: MainWindow, appearance: AppearanceKeeper, preferences_file: PreferencesFile, where: Folders
) -> Session:
    """Open the chats and put everything together. Raises UserFacingError if they cannot be opened, or are already."""
    from functools import partial

    from forespeak.chats.store import ChatStore
    from forespeak.engines.by_format import EngineByFormat
    from forespeak.engines.host import EngineProcess
    from forespeak.pairing.compatibility import Judge
    from forespeak.pairing.load_plan import choose_layers
    from forespeak.pairing.pair_memory import PairFiles
    from forespeak.pairing.self_test import SelfTest
    from forespeak.ui.compare_entry import CompareEntry
    from forespeak.ui.disk_models import DiskModels
    from forespeak.ui.models_entry import ModelsEntry
    from forespeak.ui.pair_entry import PairEntry
    from forespeak.ui.session import Session
    from forespeak.ui.window_menus import add_menus

    where, folder_problem = _created(where)
    lock = _claim(where)
    pairs = PairFiles(where.pairs)
    judge = Judge(where.cache / "verdicts")
    models = DiskModels(where.models, judge.verdict)

    def connect(listener: Callable[[EngineEvent], None], log: str = "engine.log") -> EngineClient:
        return EngineProcess(
            listener,
            log_path=where.logs / log,
            pair_check=judge.refusal,
            engine=partial(EngineByFormat, memory=pairs, layer_choice=choose_layers),
            parity_check=SelfTest(pairs),
        )

    session = Session(
        window,
        ChatStore(where.chats),
        appearance.preferences,
        preferences_file,
        models,
        connect,
        pairs,
    )
    session.watch_machine()
    session.preferencesChanged.connect(appearance.apply)
    models_entry = ModelsEntry(window, session, where, models)
    models_entry.folderMoved.connect(models.set_folder)
    PairEntry(window, session, where, models_entry, partial(connect, log="engine-test.log"))
    compare = CompareEntry(window, session, where, models, partial(connect, log="comparison.log"))
    models_entry.folderMoved.connect(compare.set_models_folder)
    if folder_problem is not None:
        session.problems.show_banner(folder_problem)
    add_menus(window, session, where.logs)
    window.closing.connect(session.close)
    window.closing.connect(lock.unlock)
    return session


def _created(where: Folders) -> tuple[Folders, UserFacingError | None]:
    """The folders with the models folder that was chosen; where its disk is away, with the usual one, and why."""
    from forespeak.models.library_settings import with_chosen_models

    chosen = with_chosen_models(where)
    try:
        chosen.create()
    except UserFacingError as error:
        if chosen == where:
            raise
        where.create()
        why = f"{error.why} Until it is back, models go to {where.models}."
        return where, UserFacingError("The models folder that was chosen is not there.", why)
    return chosen, None


def _claim(where: Folders) -> QLockFile:
    """One window at a time writes the chats: a second one would take the first one's growing reply for a torn one.

    A lock that a killed process has left behind is taken over.
    """
    from PySide6.QtCore import QLockFile

    lock = QLockFile(str(where.data / "forespeak.lock"))
    lock.setStaleLockTime(0)
    if not lock.tryLock(0) and lock.error() is QLockFile.LockError.LockFailedError:
        raise UserFacingError(
            "Forespeak is already open.",
            "Two windows cannot write into the same chats.",
            "Go on in the other window, or close it and start again.",
        )
    return lock
