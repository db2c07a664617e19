"""The real window with the real engine and the starter pair, driven as a person would: for benches and pictures.

Needs FORESPEAK_HOME and a Qt platform (offscreen, or a display) in the environment before it is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from forespeak.models.folders import folders
from forespeak.ui.app import make_application, make_session, make_window
from forespeak.ui.appearance import AppearanceKeeper
from forespeak.ui.main_window import MainWindow
from forespeak.ui.preferences import Preferences, PreferencesFile
from forespeak.ui.session import Session

PATIENCE = 120.0


class LiveWindow:
    def __init__(self, preferences: Preferences | None = None, size: tuple[int, int] = (1280, 820)) -> None:
        existing = QApplication.instance()
        self.application = existing if isinstance(existing, QApplication) else make_application(["forespeak"])
        file = PreferencesFile(folders().config / "preferences.json")
        self.window: MainWindow
        self.appearance: AppearanceKeeper
        self.window, self.appearance = make_window(self.application, preferences or file.read())
        self.window.resize(*size)
        self.window.show()
        self.session: Session = make_session(self.window, self.appearance, file, folders())
        self.session.start()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        # A real event loop, as the app has: spinning would take the engine's processor time.
        deadline = time.monotonic() + PATIENCE
        loop = QEventLoop()
        watch = QTimer()
        watch.timeout.connect(lambda: loop.quit() if condition() or time.monotonic() > deadline else None)
        watch.start(100)
        loop.exec()
        if not condition():
            raise TimeoutError(what)

    def use_starter(self) -> None:
        self.until(lambda: self.session.pair.starter is not None, "the starter is found")
        self.session.pair.use_starter()
        self.until(lambda: self.session.pair.status.can_send, "the pair can be asked")

    def say(self, text: str) -> None:
        """Type into the composer and press Enter."""
        editor = self.window.composer.edit
        editor.setFocus()
        QTest.keyClicks(editor, text) if text.isascii() else editor.insertPlainText(text)
        QTest.keyClick(editor, Qt.Key.Key_Return)
        self.until(lambda: self.session.chats.busy, "the message is taken")

    @property
    def reply(self) -> str:
        """The text of the last reply, as far as it has come."""
        last = self.session.chats.last_reply()
        return "" if last is None else self.session.chats.text_of(last)

    def until_idle(self) -> None:
        self.until(lambda: not self.session.chats.busy, "the reply ends")

    def close(self) -> None:
        self.window.close()
        for _ in range(20):
            self.application.processEvents()
