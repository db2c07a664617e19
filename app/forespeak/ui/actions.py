"""The window's commands with their shortcuts, in menus; one list for menus, keyboard and the help page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QMainWindow, QMenu, QVBoxLayout, QWidget

from forespeak.ui.plain_label import PlainLabel


@dataclass(frozen=True, slots=True)
class Command:
    """`key` is portable text such as "Ctrl+N", which is Cmd+N on macOS; empty for none. `role` is macOS's place."""

    name: str
    words: str
    key: str
    run: Callable[[], object]
    role: QAction.MenuRole = QAction.MenuRole.NoRole


class Commands:
    """QActions of a window by name. They live in the window, so the keys work while the menus are closed."""

    def __init__(self, window: QMainWindow, groups: dict[str, list[Command]]) -> None:
        self.menus: list[QMenu] = []
        self._actions: dict[str, QAction] = {}
        self._lines: list[tuple[str, str]] = []
        for title, commands in groups.items():
            menu = QMenu(title, window)
            self.menus.append(menu)
            for command in commands:
                action = QAction(command.words, window)
                if command.key:
                    action.setShortcut(QKeySequence(command.key))
                    shown = QKeySequence(command.key).toString(QKeySequence.SequenceFormat.NativeText)
                    self._lines.append((command.words.rstrip("…"), shown))
                action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
                action.setMenuRole(command.role)
                action.triggered.connect(_without_arguments(command.run))
                menu.addAction(action)
                window.addAction(action)
                self._actions[command.name] = action

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What each shortcut does, and its keys as this system writes them."""
        return list(self._lines)


def _without_arguments(run: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        run()

    return call


class ShortcutsDialog(QDialog):
    """All keys in one list."""

    def __init__(self, lines: list[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        form = QFormLayout()
        form.setHorizontalSpacing(32)
        form.setVerticalSpacing(8)
        for words, keys in [*lines, *_writing_keys()]:
            label = PlainLabel(keys)
            label.setProperty("muted", True)
            form.addRow(words, label)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addLayout(form)
        layout.addWidget(buttons)


def _writing_keys() -> list[tuple[str, str]]:
    def tr(words: str) -> str:
        return QCoreApplication.translate("ShortcutsDialog", words)

    # The key is labelled so; only macOS has a sign for it.
    enter = "Return" if sys.platform == "darwin" else "Enter"
    native = QKeySequence.SequenceFormat.NativeText
    return [
        (tr("Send the message"), QKeySequence(enter).toString(native)),
        (tr("Break the line"), QKeySequence(f"Shift+{enter}").toString(native)),
        (tr("Edit the last message, from an empty box"), QKeySequence(Qt.Key.Key_Up).toString(native)),
    ]
