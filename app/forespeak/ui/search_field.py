"""The field above a list: what is typed searches, and the arrow key goes on to what was found."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget


class SearchField(QLineEdit):
    """`words` tell what is searched; they stand in the field while it is empty. Esc empties it."""

    leftDownwards = Signal()
    """The Down key: the user wants to go to the list."""

    def __init__(self, words: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPlaceholderText(words)
        self.setAccessibleName(words)
        self.setClearButtonEnabled(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.leftDownwards.emit()
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            # Who listens for typing has to know of this too.
            self.textEdited.emit("")
        else:
            super().keyPressEvent(event)
