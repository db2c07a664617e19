"""What the library does and what it has just done: a bar with a way to stop it, a message that goes by itself."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from forespeak.models.sizes import size_words
from forespeak.ui.library_state import Task, TaskKind
from forespeak.ui.model_details import breakable
from forespeak.ui.notices import Toast
from forespeak.ui.plain_label import PlainLabel

GAP = 10
"""Between a toast and what it floats above, in pixels."""
LEAST_WIDTH, MOST_WIDTH = 160, 16_777_215
"""Of a toast's words, in pixels."""


class TaskBar(QFrame):
    """What is being done, how far it is, and a way to stop it."""

    cancelRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self.words = PlainLabel()
        self.words.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.clicked.connect(self.cancelRequested)
        column = QVBoxLayout()
        column.setSpacing(6)
        column.addWidget(self.words)
        column.addWidget(self.bar)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 10, 10, 10)
        row.setSpacing(12)
        row.addLayout(column, 1)
        row.addWidget(self.cancel)
        self.hide()

    def show_task(self, task: Task | None) -> None:
        self.setVisible(task is not None)
        if task is None:
            return
        doing = {
            TaskKind.IMPORT: self.tr("Importing {name}"),
            TaskKind.MOVE: self.tr("Moving the models to {name}"),
            TaskKind.VERIFY: self.tr("Checking {name}"),
        }[task.kind].format(name=task.name)
        if task.cancelling:
            doing = self.tr("Stopping")
        elif task.total:
            doing = self.tr("{doing}: {done} of {total}").format(
                doing=doing, done=size_words(task.done), total=size_words(task.total)
            )
        self.words.setText(doing)
        self.bar.setRange(0, 1000 if task.total else 0)
        if task.total:
            self.bar.setValue(round(1000 * task.done / task.total))
        self.bar.setAccessibleName(doing)
        self.cancel.setEnabled(not task.cancelling)


class PageToast(Toast):
    """Also says what happened where nothing can be taken back. Floats above `foot`, whose buttons stay free."""

    def __init__(self, parent: QWidget, foot: QWidget) -> None:
        super().__init__(parent)
        self._foot = foot
        self._words = ""

    def offer(self, words: str, action: str, undo: Callable[[], None]) -> None:
        self.button.show()
        self._words = words
        super().offer(words, action, undo)

    def tell(self, words: str) -> None:
        self.button.hide()
        self._words = words
        super().offer(words, "", lambda: None)

    def _place(self) -> None:
        """In as many lines as it takes: names of models can be longer than a window is wide."""
        self._fit()
        parent = self.parentWidget()
        assert parent is not None
        self.move((parent.width() - self.width()) // 2, self._foot.y() - self.height() - GAP)

    def _fit(self) -> None:
        parent = self.parentWidget()
        assert parent is not None
        label = self.label
        label.setWordWrap(False)
        label.setText(self._words)
        label.setMinimumWidth(0)
        label.setMaximumWidth(MOST_WIDTH)
        wanted = label.sizeHint().width()
        label.setFixedWidth(wanted)
        self.adjustSize()
        too_much = self.width() - (parent.width() - 2 * GAP)
        if too_much > 0:
            label.setWordWrap(True)
            label.setText(breakable(self._words))
            label.setFixedWidth(max(LEAST_WIDTH, wanted - too_much))
            self.adjustSize()
