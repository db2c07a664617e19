"""A line of text that is cut in its middle where there is no room, and shown whole by its tool tip."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.tool_tips import plain_tip


class ElidedLabel(PlainLabel):
    """Takes the room it gets. `words` is all of the text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    @property
    def words(self) -> str:
        return self._words

    def set_words(self, words: str) -> None:
        self._words = words
        self.setAccessibleName(words)
        self._cut()
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        self.ensurePolished()
        return QSize(self.fontMetrics().horizontalAdvance(self._words) + 2, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(40, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        shown = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideMiddle, max(self.width(), 40))
        self.setText(shown)
        self.setToolTip(plain_tip(self._words) if shown != self._words else "")
