"""Where the models lie: our folder with its size and what is free, and other programs' folders, which are only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.roots import Root, RootKind
from forespeak.models.sizes import size_words
from forespeak.ui.form import caption
from forespeak.ui.library_state import LibraryState
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.tool_tips import plain_tip

LEAST_WORDS = 200
"""What the folder's path and facts need beside the buttons, in pixels; else they stand above them."""


class FolderBar(QFrame):
    """About the models folder, in one row where there is room for that. Emits what the user wants."""

    openRequested = Signal()
    moveRequested = Signal(object)
    """Path"""
    othersRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("folderBar")
        self._folder: Path | None = None
        self._path_words = ""
        self.path = PlainLabel()
        self.path.setMinimumWidth(40)
        self.facts = PlainLabel()
        self.facts.setProperty("caption", True)
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self.path)
        words.addWidget(self.facts)
        self.open_button = QPushButton(self.tr("Open"))
        self.open_button.setAccessibleName(self.tr("Open the models folder"))
        self.open_button.clicked.connect(self.openRequested)
        self.change_button = QPushButton(self.tr("Change…"))
        self.change_button.setAccessibleName(self.tr("Change the models folder"))
        self.change_button.setToolTip(self.tr("Choose another models folder; the models move there"))
        self.change_button.clicked.connect(self._change)
        self.others_button = QPushButton(self.tr("Other folders…"))
        self.others_button.clicked.connect(self.othersRequested)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(8)
        for button in (self.others_button, self.open_button, self.change_button):
            self._buttons.addWidget(button)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addLayout(words, 1)
        self._row.addLayout(self._buttons)

    def show_state(self, state: LibraryState, busy: bool) -> None:
        own = next((root for root in state.roots if not root.read_only), None)
        self._folder = None if own is None else own.path
        self._path_words = "" if own is None else short_path(own.path)
        self._cut()
        self.path.setToolTip("" if own is None else plain_tip(str(own.path)))
        parts = []
        if state.read:
            count = state.own_count
            models = self.tr("1 model") if count == 1 else self.tr("{count} models").format(count=count)
            parts.append(self.tr("{models}, {size}").format(models=models, size=size_words(state.own_bytes)))
        if state.free_bytes is not None:
            parts.append(self.tr("{size} free").format(size=size_words(state.free_bytes)))
        self.facts.setText(" · ".join(parts))
        self.path.setAccessibleName(self.tr("Models folder: {path}").format(path=self._path_words))
        self.change_button.setEnabled(own is not None and not busy)
        self.open_button.setEnabled(own is not None)
        others = sum(root.read_only for root in state.roots)
        self.others_button.setText(
            self.tr("Other folders ({count})…").format(count=others) if others else self.tr("Other folders…")
        )
        self._arrange()

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._arrange()
        self._cut()

    def _arrange(self) -> None:
        beside = self.width() >= self._buttons.sizeHint().width() + LEAST_WORDS
        direction = QBoxLayout.Direction
        self._row.setDirection(direction.LeftToRight if beside else direction.TopToBottom)

    def _cut(self) -> None:
        metrics = self.path.fontMetrics()
        self.path.setText(metrics.elidedText(self._path_words, Qt.TextElideMode.ElideMiddle, self.path.width()))

    @Slot()
    def _change(self) -> None:
        title = self.tr("Choose the folder in which the models shall be")
        near = "" if self._folder is None else str(self._folder.parent)
        name = QFileDialog.getExistingDirectory(self.window(), title, near)
        if name and self._folder is not None and Path(name) != self._folder:
            self.moveRequested.emit(Path(name))


class FoldersDialog(QDialog):
    """The read-only folders. Those of other programs are found by themselves; others can be added and taken out."""

    addedChanged = Signal(object)
    """tuple of the Paths that the user added"""

    def __init__(self, roots: Sequence[Root], added: Sequence[Path], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("foldersDialog")
        self.setWindowTitle(self.tr("Other folders"))
        self._added = list(added)
        why = self.tr(
            "Models in these folders are listed and can be used where they are. Forespeak changes nothing in them."
        )
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Folders that are only read"))
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.currentItemChanged.connect(self._update)
        self.add_button = QPushButton(self.tr("Add a folder…"))
        self.add_button.clicked.connect(self._browse)
        self.remove_button = QPushButton(self.tr("Take out"))
        self.remove_button.setToolTip(self.tr("Its models are no longer listed; nothing is deleted"))
        self.remove_button.clicked.connect(self._remove)
        row = QHBoxLayout()
        row.addWidget(self.add_button)
        row.addWidget(self.remove_button)
        row.addStretch(1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(10)
        layout.addWidget(caption(why))
        layout.addWidget(self.list, 1)
        layout.addLayout(row)
        layout.addWidget(buttons)
        self.resize(540, 380)
        for root in roots:
            if root.read_only:
                self._show(root.path, root.label, root.kind is RootKind.ADDED)
        self.list.setCurrentRow(0)
        self._update()

    def add(self, folder: Path) -> None:
        if folder not in self._added:
            self._added.append(folder)
            self._show(folder, folder.name or str(folder), mine=True)
            self.list.setCurrentRow(self.list.count() - 1)
            self.addedChanged.emit(tuple(self._added))

    def _show(self, path: Path, label: str, mine: bool) -> None:
        entry = QListWidgetItem(f"{label}\n{short_path(path)}")
        entry.setData(Qt.ItemDataRole.UserRole, path if mine else None)
        entry.setToolTip(plain_tip(str(path)))
        self.list.addItem(entry)

    @Slot()
    def _browse(self) -> None:
        name = QFileDialog.getExistingDirectory(self, self.tr("Add a folder with models"), str(Path.home()))
        if name:
            self.add(Path(name))

    @Slot()
    def _remove(self) -> None:
        entry = self.list.currentItem()
        path = None if entry is None else entry.data(Qt.ItemDataRole.UserRole)
        if path in self._added:
            self._added.remove(path)
            self.list.takeItem(self.list.row(entry))
            self.addedChanged.emit(tuple(self._added))

    @Slot()
    def _update(self, *_: object) -> None:
        entry = self.list.currentItem()
        self.remove_button.setEnabled(entry is not None and entry.data(Qt.ItemDataRole.UserRole) is not None)


def short_path(path: Path) -> str:
    """With ~ for the home folder."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except ValueError:
        return str(path)
