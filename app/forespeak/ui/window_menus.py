"""The menus and keys of the window."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QMessageBox

import forespeak
from forespeak.ui.actions import Command, Commands, ShortcutsDialog
from forespeak.ui.main_window import MainWindow
from forespeak.ui.navigation import CHAT_PAGE
from forespeak.ui.session import Session


def _tr(words: str) -> str:
    return QCoreApplication.translate("Menu", words)


def add_menus(window: MainWindow, session: Session, logs: Path) -> Commands:
    """Give the window its commands. The menu bar is the system's on macOS and one button elsewhere."""

    def show_shortcuts() -> None:
        dialog = ShortcutsDialog(commands.lines, window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()

    def about() -> None:
        box = QMessageBox(window)
        box.setWindowTitle(_tr("About Forespeak"))
        box.setText(f"Forespeak {forespeak.__version__}")
        box.setInformativeText(_tr("Chat with local language models and see their speculation."))
        box.finished.connect(box.deleteLater)
        box.show()

    chats = session.chats
    commands = Commands(
        window,
        {
            _tr("Chat"): [
                Command("new", _tr("New chat"), "Ctrl+N", window.newChatRequested.emit),
                Command("search", _tr("Search"), "Ctrl+F", window.focus_search),
                Command("rename", _tr("Rename chat"), "F2", window.chats.rename_current),
                Command("delete", _tr("Delete chat"), "", window.chats.delete_current),
                Command("undo", _tr("Undo deleting"), "Ctrl+Z", window.undo),
                Command(
                    "settings", _tr("Settings…"), "Ctrl+,", session.open_settings, QAction.MenuRole.PreferencesRole
                ),
                Command("quit", _tr("Quit"), "Ctrl+Q", window.close, QAction.MenuRole.QuitRole),
            ],
            _tr("Reply"): [
                Command("stop", _tr("Stop"), "Esc", chats.stop),
                Command("regenerate", _tr("Write another version"), "Ctrl+R", chats.regenerate),
                Command("copy", _tr("Copy the last reply"), "Ctrl+Shift+C", session.chat_view.copy_last_reply),
            ],
            _tr("View"): [
                *_page_commands(window),
                Command("sidebar", _tr("Show or hide the side bar"), "Ctrl+B", window.toggle_sidebar),
                Command("panel", _tr("Show or hide the speculation panel"), "Ctrl+.", window.toggle_panel),
            ],
            _tr("Help"): [
                Command("keys", _tr("Keyboard shortcuts"), "Ctrl+/", show_shortcuts),
                Command(
                    "logs",
                    _tr("Open the log folder"),
                    "",
                    lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(logs))),
                ),
                Command("about", _tr("About Forespeak"), "", about, QAction.MenuRole.AboutRole),
            ],
        },
    )
    _keep_enabled(commands, window, session)
    window.set_menu(commands.menus, native=sys.platform == "darwin")
    return commands


def _page_commands(window: MainWindow) -> list[Command]:
    navigation = window.navigation
    return [
        Command(f"page-{name}", navigation.button(name).text(), f"Ctrl+{number}", partial(window.show_page, name))
        for number, name in enumerate(navigation.names, 1)
    ]


def _keep_enabled(commands: Commands, window: MainWindow, session: Session) -> None:
    """A command that can do nothing now leaves its key to whatever has the focus."""

    def update(*_: object) -> None:
        chats = session.chats
        # What belongs to the chat waits until it is shown again: on another page nobody means it.
        here = window.page == CHAT_PAGE
        commands["stop"].setEnabled(here and chats.busy)
        commands["regenerate"].setEnabled(here and not chats.busy and chats.last_reply() is not None)
        commands["copy"].setEnabled(here and chats.last_reply() is not None)
        for name in ("rename", "delete"):
            commands[name].setEnabled(here and chats.chat is not None)
        commands["panel"].setEnabled(here)
        commands["undo"].setEnabled(window.can_undo)

    chats = session.chats
    for signal in (chats.busyChanged, chats.chatOpened, window.toast.changed, window.pageShown, window.undoChanged):
        signal.connect(update)
    update()
