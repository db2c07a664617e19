"""Words on the window, as they are written."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget


class PlainLabel(QLabel):
    """A QLabel that shows `<s>` as `<s>`. Qt's own guesses what is markup, and hides it: a name, a path, a token and
    what a server answered may all look like it. Where markup is meant, set the format.
    """

    def __init__(self, words: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        """The words may be left out, as of a QLabel."""
        if isinstance(words, str):
            super().__init__(words, parent)
        else:
            super().__init__(words)
        self.setTextFormat(Qt.TextFormat.PlainText)
