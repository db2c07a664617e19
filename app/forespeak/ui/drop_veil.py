"""Two places to drop a model file on: target or draft."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from forespeak.ui.model_picker import Place
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle


def dropped_file(data: QMimeData) -> Path | None:
    """The first local file of a drag, or None."""
    return next((Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()), None)


def accept_as_copy(event: QDropEvent) -> None:
    """Whatever was proposed: for a move, some file managers delete the file as soon as it was dropped."""
    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()


class DropVeil(QFrame):
    """Covers the window while a file is dragged over it."""

    fileDropped = Signal(object, object)
    """Place, Path"""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("dropVeil")
        self.setAcceptDrops(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(40, 40, 40, 40)
        row.setSpacing(24)
        self.zones: dict[Place, QFrame] = {}
        for place, title, text in (
            (Place.TARGET, self.tr("Use as target"), self.tr("The model that answers.")),
            (Place.DRAFT, self.tr("Use as draft"), self.tr("A smaller model that guesses ahead.")),
        ):
            zone = QFrame()
            say_in_zone(zone, title, text)
            row.addWidget(zone)
            self.zones[place] = zone
        self.hide()

    def cover(self) -> None:
        parent = self.parentWidget()
        if parent is not None:
            self.setGeometry(parent.rect())
        self._mark(None)
        self.show()
        self.raise_()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_file(event.mimeData()) is not None:
            accept_as_copy(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        place = self._place_at(event.position().toPoint())
        self._mark(place)
        if place is None:
            event.ignore()
        else:
            accept_as_copy(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        place = self._place_at(event.position().toPoint())
        path = dropped_file(event.mimeData())
        self.hide()
        if place is not None and path is not None:
            accept_as_copy(event)
            self.fileDropped.emit(place, path)

    def _place_at(self, at: QPoint) -> Place | None:
        return next((place for place, zone in self.zones.items() if zone.geometry().contains(at)), None)

    def _mark(self, over: Place | None) -> None:
        for place, zone in self.zones.items():
            restyle(zone, over=place is over)


def say_in_zone(zone: QFrame, title: str, text: str) -> None:
    """What becomes of files that are dropped there, in the middle of it."""
    zone.setObjectName("dropZone")
    column = QVBoxLayout(zone)
    column.addStretch(1)
    for words, name in ((title, "emptyTitle"), (text, "quietNote")):
        label = PlainLabel(words)
        label.setObjectName(name)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        column.addWidget(label)
    column.addStretch(1)
