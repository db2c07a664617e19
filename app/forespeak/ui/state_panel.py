"""What a part of a page shows while it has nothing else: what is so, why, and what can be done."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, Theme

_WIDEST = 460


class StatePanel(QWidget):
    """A picture, a heading, some words and at most two buttons in the middle of their place."""

    primaryRequested = Signal()
    secondaryRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._icon_name = ""
        self._picture = PlainLabel()
        self._picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = _words()
        self.title.setProperty("heading", True)
        self.text = _words()
        self.text.setProperty("muted", True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.bar.setFixedWidth(160)
        self.primary = QPushButton()
        self.primary.clicked.connect(self.primaryRequested)
        self.secondary = QPushButton()
        self.secondary.clicked.connect(self.secondaryRequested)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        buttons.addWidget(self.primary)
        buttons.addWidget(self.secondary)
        buttons.addStretch(1)
        middle = QWidget()
        middle.setMaximumWidth(_WIDEST)
        middle.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        column = QVBoxLayout(middle)
        column.setContentsMargins(24, 24, 24, 24)
        column.setSpacing(10)
        column.addWidget(self._picture)
        column.addWidget(self.title)
        column.addWidget(self.text)
        column.addWidget(self.bar, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addLayout(buttons)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addStretch(2)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(middle, 20)
        row.addStretch(1)
        outer.addLayout(row)
        outer.addStretch(3)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        if self._icon_name:
            self._picture.setPixmap(icon(self._icon_name, theme.muted, size=32).pixmap(QSize(32, 32)))

    def show_state(
        self, picture: str, title: str, text: str = "", *, primary: str = "", secondary: str = "", busy: bool = False
    ) -> None:
        """`picture` is one of resources/icons; empty words hide their button; `busy` shows that something goes on."""
        self._icon_name = picture
        self.set_theme(self._theme)
        self._picture.setVisible(bool(picture))
        self.title.setText(title)
        self.text.setText(text)
        self.text.setVisible(bool(text))
        self.bar.setVisible(busy)
        self.bar.setAccessibleName(title)
        for button, words in ((self.primary, primary), (self.secondary, secondary)):
            button.setText(words)
            button.setVisible(bool(words))
        self.setAccessibleName(f"{title} {text}".strip())


def _words() -> PlainLabel:
    label = PlainLabel()
    label.setWordWrap(True)
    # What a server says must not become a picture or a link.
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return label
