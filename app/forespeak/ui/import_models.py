"""Bringing model files into the models folder: the button, the question how, and what may be dropped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QMenu,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.library import ImportWay
from forespeak.ui.dialogs import FittedDialog, end_question
from forespeak.ui.drop_veil import say_in_zone
from forespeak.ui.form import caption
from forespeak.ui.model_details import breakable
from forespeak.ui.plain_label import PlainLabel

NOTE_INDENT = 29
"""Where the words of a radio button begin, in pixels."""


def dropped_models(data: QMimeData) -> tuple[Path, ...]:
    """The local GGUF files and folders of a drag; what is neither is not taken."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return tuple(path for path in paths if path.suffix.lower() == ".gguf" or path.is_dir())


class ImportVeil(QFrame):
    """Says over a page what becomes of the files that are dragged over it; the page itself takes them."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        say_in_zone(self, self.tr("Import"), self.tr("Into the models folder: copied, moved or linked."))
        self.setProperty("over", True)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def cover(self) -> None:
        parent = self.parentWidget()
        if parent is not None:
            self.setGeometry(parent.rect().adjusted(0, 8, 0, 0))
        self.show()
        self.raise_()


class ImportDialog(FittedDialog):
    """Asks how files are to come into the models folder, and whether to ask again."""

    def __init__(self, paths: Sequence[Path], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("importDialog")
        self.setWindowTitle(self.tr("Import models"))
        name = f"“{breakable(paths[0].name)}”" if len(paths) == 1 else self.tr("{count} files").format(count=len(paths))
        title = PlainLabel(self.tr("How shall {name} come into the models folder?").format(name=name))
        title.setObjectName("dialogTitle")
        title.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(8)
        layout.addWidget(title)
        self._ways = QButtonGroup(self)
        self.choices: dict[ImportWay, QRadioButton] = {}
        for number, (way, words, why) in enumerate(
            (
                (ImportWay.COPY, self.tr("Copy"), self.tr("The original stays where it is. Takes its size once more.")),
                (ImportWay.MOVE, self.tr("Move"), self.tr("The original is gone afterwards. Takes no more room.")),
                (
                    ImportWay.LINK,
                    self.tr("Link"),
                    self.tr("Takes no room. A link to another disk is of no use when the original is gone."),
                ),
            )
        ):
            choice = QRadioButton(words)
            choice.setAccessibleDescription(why)
            self._ways.addButton(choice, number)
            self.choices[way] = choice
            note = caption(why)
            note.setIndent(NOTE_INDENT)
            both = QVBoxLayout()
            both.setSpacing(2)
            both.addWidget(choice)
            both.addWidget(note)
            layout.addLayout(both)
        self.choices[ImportWay.COPY].setChecked(True)
        self.remember = QCheckBox(self.tr("Do the same from now on, without asking"))
        layout.addSpacing(6)
        layout.addWidget(self.remember)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.ok = buttons.addButton(self.tr("Import"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.ok.setProperty("primary", True)
        self.ok.setDefault(True)
        end_question(self, layout, buttons)

    @property
    def way(self) -> ImportWay:
        return next(way for way, button in self.choices.items() if button.isChecked())


class ImportButton(QPushButton):
    """A menu: files, a folder, and how they come in. `way` None: it is asked each time."""

    chosen = Signal(object)
    """tuple of Paths"""
    wayChanged = Signal(object)
    """ImportWay or None"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(self.tr("Import"))
        self.setObjectName("importButton")
        menu = QMenu(self)
        self.files_action = menu.addAction(self.tr("GGUF files…"))
        self.folder_action = menu.addAction(self.tr("A folder…"))
        self.files_action.triggered.connect(self._browse_files)
        self.folder_action.triggered.connect(self._browse_folder)
        menu.addSeparator()
        group = QActionGroup(self)
        self.way_actions = {}
        for way, words in (
            (None, self.tr("Ask how each time")),
            (ImportWay.COPY, self.tr("Always copy")),
            (ImportWay.MOVE, self.tr("Always move")),
            (ImportWay.LINK, self.tr("Always link")),
        ):
            action = menu.addAction(words)
            action.setCheckable(True)
            action.setData(way)
            group.addAction(action)
            self.way_actions[way] = action
        group.triggered.connect(lambda action: self.wayChanged.emit(action.data()))
        self.setMenu(menu)
        self.set_way(None)

    def set_way(self, way: ImportWay | None) -> None:
        self.way_actions[way].setChecked(True)

    def _browse_files(self) -> None:
        words = self.tr("Models (*.gguf);;All files (*)")
        names, _ = QFileDialog.getOpenFileNames(self.window(), self.tr("Import models"), str(Path.home()), words)
        if names:
            self.chosen.emit(tuple(Path(name) for name in names))

    def _browse_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self.window(), self.tr("Import a folder of models"), str(Path.home()))
        if name:
            self.chosen.emit((Path(name),))
