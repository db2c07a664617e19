"""What can be done with a model of the library, for buttons, menus and keys alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from forespeak.models.library import LibraryItem
from forespeak.ui.background import Worker
from forespeak.ui.file_manager import open_folder, reveal
from forespeak.ui.library_controller import LibraryController
from forespeak.ui.removal_dialog import RemovalDialog


class ModelActions(QObject):
    """Acts on the item that it was told of last. `keys_of` is the widget in which the keys count."""

    targetRequested = Signal(object)
    draftRequested = Signal(object)
    chatRequested = Signal(object)
    findDraftRequested = Signal(object)
    """Path of the model"""
    noticed = Signal(str)

    def __init__(self, controller: LibraryController, worker: Worker, keys_of: QWidget) -> None:
        super().__init__(keys_of)
        self._controller = controller
        self._worker = worker
        self._widget = keys_of
        self._item: LibraryItem | None = None
        self._use = ""
        self.chat = self._action(self.tr("Chat with it"), self._chat)
        self.as_target = self._action(self.tr("Use as target"), self._as_target, "Ctrl+T")
        self.as_draft = self._action(self.tr("Use as draft"), self._as_draft, "Ctrl+D")
        self.find_draft = self._action(self.tr("Find a draft"), self._find_draft)
        self.find_draft.setToolTip(self.tr("Which draft would make it faster"))
        self.show_file = self._action(self.tr("Show in folder"), self._reveal, "Ctrl+Shift+O")
        self.copy_path = self._action(self.tr("Copy path"), self._copy_path, "Ctrl+C")
        self.verify = self._action(self.tr("Check files"), self._verify)
        self.verify.setToolTip(self.tr("Read all of it and compare it with what its publisher has"))
        self.remove = self._action(self.tr("Remove…"), self._remove)

    @property
    def in_order(self) -> list[QAction]:
        """The most wanted first, the one that takes something away last."""
        first = [self.chat, self.as_target, self.as_draft, self.find_draft]
        return [*first, self.show_file, self.copy_path, self.verify, self.remove]

    def set_item(self, item: LibraryItem | None, use: str = "") -> None:
        """`use`: what it is in use as now, in words."""
        self._item, self._use = item, use
        usable = item is not None and item.usable
        busy = self._controller.task is not None
        for action in (self.chat, self.as_target, self.as_draft, self.find_draft):
            action.setEnabled(usable)
        for action in (self.show_file, self.copy_path):
            action.setEnabled(item is not None)
        self.verify.setEnabled(item is not None and not busy)
        mine = item is not None and not item.root.read_only
        self.remove.setEnabled(mine and not busy)
        why = self.tr("It lies in a folder of another program, or in one that is only read")
        self.remove.setToolTip("" if mine else why)

    def open_item(self) -> None:
        """What Enter and a double click do."""
        self.chat.trigger()

    def menu(self, parent: QWidget) -> QMenu:
        menu = QMenu(parent)
        menu.addActions([self.chat, self.as_target, self.as_draft, self.find_draft])
        menu.addSeparator()
        menu.addActions([self.show_file, self.copy_path, self.verify])
        menu.addSeparator()
        menu.addAction(self.remove)
        return menu

    def open_models_folder(self) -> None:
        own = next((root.path for root in self._controller.state.roots if not root.read_only), None)
        if own is not None:
            self._worker.run(lambda: open_folder(own), self._answered)

    # -- inside

    def _action(self, words: str, run: Callable[[], object], key: str = "") -> QAction:
        made = QAction(words, self)
        made.triggered.connect(lambda _=False: run())
        if key:
            made.setShortcut(QKeySequence(key))
            made.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            # In a search field the same keys mean what they always do.
            self._widget.addAction(made)
        return made

    def _chat(self) -> None:
        if self._item is not None:
            self.chatRequested.emit(self._item.path)

    def _as_target(self) -> None:
        if self._item is not None:
            self.targetRequested.emit(self._item.path)

    def _as_draft(self) -> None:
        if self._item is not None:
            self.draftRequested.emit(self._item.path)

    def _find_draft(self) -> None:
        if self._item is not None:
            self.findDraftRequested.emit(self._item.path)

    def _reveal(self) -> None:
        if self._item is not None:
            path: Path = self._item.path
            self._worker.run(lambda: reveal(path), self._answered)

    def _answered(self, shown: bool) -> None:
        if not shown:
            self.noticed.emit(self.tr("No file manager answered. The path can be copied instead."))

    def _copy_path(self) -> None:
        if self._item is not None:
            QGuiApplication.clipboard().setText(str(self._item.path))
            self.noticed.emit(self.tr("Copied the path."))

    def _verify(self) -> None:
        if self._item is not None:
            self._controller.verify(self._item)

    def _remove(self) -> None:
        """After asking."""
        item = self._item
        if item is None:
            return
        dialog = RemovalDialog(item, in_use=bool(self._use), parent=self._widget.window())
        dialog.accepted.connect(lambda: self._controller.remove(item))
        dialog.finished.connect(dialog.deleteLater)
        dialog.setModal(True)
        dialog.show()
