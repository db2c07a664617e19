"""A chat before its first message."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import Theme


class EmptyConversation(QWidget):
    """What a new chat shows: what to try, in a few words."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.setSpacing(8)
        self._icon = PlainLabel(self)
        self._title = PlainLabel(self.tr("Ask something to begin"), self)
        self._title.setProperty("heading", True)
        self._hint = PlainLabel(
            self.tr(
                "Every word of the reply shows who chose it. Code and rewriting gain most:\n"
                "try a function with tests, or paste a text and ask for a small change."
            ),
            self,
        )
        self._hint.setProperty("muted", True)
        for label in (self._icon, self._title, self._hint):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.addWidget(label)

    def set_theme(self, theme: Theme) -> None:
        self._icon.setPixmap(icon("chat", theme.accent, size=36).pixmap(QSize(36, 36)))
