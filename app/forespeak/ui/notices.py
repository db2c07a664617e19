"""Short messages of the window: a banner that stays, a toast that goes, a card with progress."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QToolButton, QVBoxLayout, QWidget

from forespeak.ui.plain_label import PlainLabel

TOAST_MS = 8000


class Banner(QFrame):
    """One line across the page about something that lasts, with at most one thing to do."""

    actionRequested = Signal()
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("banner")
        self.label = PlainLabel()
        self.label.setWordWrap(True)
        self.action = QPushButton()
        self.action.clicked.connect(self.actionRequested)
        self.close_button = QToolButton()
        self.close_button.setObjectName("quietButton")
        self.close_button.setText("✕")
        self.close_button.setAccessibleName(self.tr("Dismiss"))
        self.close_button.clicked.connect(self.dismiss)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 8, 8)
        row.addWidget(self.label, 1)
        row.addWidget(self.action)
        row.addWidget(self.close_button)
        self.setVisible(False)

    def show_message(self, words: str, action: str = "") -> None:
        self.label.setText(words)
        self.setAccessibleName(words)
        self.action.setText(action)
        self.action.setVisible(bool(action))
        self.setVisible(True)

    def text(self) -> str:
        return "" if self.isHidden() else self.label.text()

    @Slot()
    def dismiss(self) -> None:
        self.setVisible(False)
        self.dismissed.emit()


class Toast(QFrame):
    """What just happened, with a way back. Floats over its parent's lower edge and goes by itself."""

    changed = Signal()
    """Whether there is something to take back"""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self._undo: Callable[[], None] | None = None
        self.label = PlainLabel()
        self.button = QPushButton()
        self.button.setObjectName("toastButton")
        self.button.clicked.connect(self.undo)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 8, 8)
        row.setSpacing(12)
        row.addWidget(self.label)
        row.addWidget(self.button)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(TOAST_MS)
        self._timer.timeout.connect(self.hide)
        parent.installEventFilter(self)
        self.hide()

    def offer(self, words: str, action: str, undo: Callable[[], None]) -> None:
        self._undo = undo
        self.label.setText(words)
        self.button.setText(action)
        self.setAccessibleName(words)
        self.adjustSize()
        self._place()
        self.show()
        self.raise_()
        self._timer.start()
        self.changed.emit()

    @property
    def can_undo(self) -> bool:
        return self._undo is not None

    @Slot()
    def undo(self) -> None:
        """Take the last thing back, also after the toast has gone."""
        undo, self._undo = self._undo, None
        self.hide()
        self.changed.emit()
        if undo is not None:
            undo()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.parent() and event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        parent = self.parentWidget()
        assert parent is not None
        self.move((parent.width() - self.width()) // 2, parent.height() - self.height() - 24)


class ModelCard(QFrame):
    """While there is no model: what is missing, what is being done about it, what can be done."""

    primaryRequested = Signal()
    secondaryRequested = Signal()
    detailsRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelCard")
        self.title = PlainLabel()
        self.title.setObjectName("cardTitle")
        self.title.setWordWrap(True)
        self.text = PlainLabel()
        self.text.setObjectName("cardText")
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.primary = QPushButton()
        self.primary.setObjectName("primaryButton")
        self.primary.clicked.connect(self.primaryRequested)
        self.secondary = QPushButton()
        self.secondary.clicked.connect(self.secondaryRequested)
        self.details = QPushButton(self.tr("Details"))
        self.details.clicked.connect(self.detailsRequested)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.primary)
        buttons.addWidget(self.secondary)
        buttons.addWidget(self.details)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 18)
        layout.setSpacing(10)
        layout.addWidget(self.title)
        layout.addWidget(self.text)
        layout.addWidget(self.bar)
        layout.addLayout(buttons)
        self.setVisible(False)

    def show_card(
        self,
        title: str,
        text: str,
        *,
        primary: str = "",
        secondary: str = "",
        fraction: float | None = None,
        details: bool = False,
    ) -> None:
        """`fraction` 0 to 1 shows a progress bar; empty words hide their button."""
        self.title.setText(title)
        self.text.setText(text)
        self.text.setVisible(bool(text))
        self.setAccessibleName(f"{title} {text}".strip())
        self.bar.setVisible(fraction is not None)
        if fraction is not None:
            self.bar.setValue(round(1000 * fraction))
            self.bar.setAccessibleName(title)
        for button, words in ((self.primary, primary), (self.secondary, secondary)):
            button.setText(words)
            button.setVisible(bool(words))
        self.details.setVisible(details)
        self.setVisible(True)
