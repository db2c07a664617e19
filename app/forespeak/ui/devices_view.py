"""What this machine can compute on, as it is found out, and why not on its GPU."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from forespeak.ui.form import caption
from forespeak.ui.hardware_controller import HardwareController
from forespeak.ui.hardware_words import device_words
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import code_font

_LONG_WORD = re.compile(r"[!-~]{24,}")


class DevicesView(QWidget):
    def __init__(self, controller: HardwareController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._rows = QWidget()
        self._grid = QGridLayout(self._rows)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        self._labels: list[PlainLabel] = []
        self.state = caption("")
        self.again = QPushButton(self.tr("Look again"))
        self.why = QPushButton(self.tr("Why is my GPU not used?"))
        self.why.setCheckable(True)
        self.why.toggled.connect(self._show_reasons)
        self.again.clicked.connect(controller.look)
        for button in (self.again, self.why):
            button.setAutoDefault(False)
        self.reasons = PlainLabel()
        self.reasons.setWordWrap(True)
        self.reasons.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.reasons.setAccessibleName(self.why.text())
        self.commands = QPlainTextEdit()
        self.commands.setReadOnly(True)
        self.commands.setFont(code_font())
        self.commands.setTabChangesFocus(True)
        self.commands.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.commands.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.commands.setAccessibleName(self.tr("Commands"))
        self.copy = QPushButton(self.tr("Copy the commands"))
        self.copy.setAutoDefault(False)
        self.copy.clicked.connect(self._copy)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.again)
        buttons.addWidget(self.why)
        buttons.addStretch(1)
        heading = PlainLabel(self.tr("Devices"))
        restyle(heading, heading=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(3)
        column.addWidget(heading)
        column.addWidget(caption(self.tr("What this machine has that the engine can compute on.")))
        column.addSpacing(5)
        column.addWidget(self._rows)
        column.addWidget(self.state)
        column.addSpacing(5)
        column.addLayout(buttons)
        column.addSpacing(5)
        column.addWidget(self.reasons)
        column.addWidget(self.commands)
        column.addSpacing(5)
        column.addWidget(self.copy, 0, Qt.AlignmentFlag.AlignLeft)
        controller.changed.connect(self._show)
        self._show()

    @property
    def words(self) -> list[str]:
        """Each device, as it is shown."""
        return [label.text() for label in self._labels]

    @Slot()
    def _show(self) -> None:
        findings, problem = self._controller.findings, self._controller.problem
        self._show_rows()
        if self._controller.asking:
            words = self.tr("Looking for devices…")
        elif problem is not None:
            words = str(problem)
        elif findings is not None and not findings.gpus:
            words = self.tr("There is no GPU that the engine can use: the processor computes everything.")
        else:
            words = ""
        self.state.setText(words)
        self.state.setVisible(bool(words))
        restyle(self.state, danger=problem is not None and not self._controller.asking)
        self.again.setEnabled(not self._controller.asking)
        unused = () if findings is None else findings.unused
        self.reasons.setText("\n\n".join(unused))
        commands = () if findings is None else findings.commands
        self.commands.setPlainText("\n".join(commands))
        self.copy.setText(self.tr("Copy the command") if len(commands) == 1 else self.tr("Copy the commands"))
        lines = len(commands) * self.commands.fontMetrics().lineSpacing()
        # Frame, the document's margin, and the bar below lines that are too long.
        self.commands.setFixedHeight(lines + 2 * round(self.commands.document().documentMargin()) + 28)
        self.why.setVisible(bool(unused))
        self._show_reasons()

    def _show_rows(self) -> None:
        for label in self._labels:
            self._grid.removeWidget(label)
            label.hide()
            label.deleteLater()
        self._labels = []
        findings = self._controller.findings
        for place, device in enumerate(() if findings is None else findings.devices):
            for column, words in enumerate((device.name, device_words(device))):
                label = PlainLabel(_LONG_WORD.sub(_foldable, words))
                label.setWordWrap(column == 1 or _LONG_WORD.search(words) is not None)
                restyle(label, muted=column == 1)
                self._grid.addWidget(label, place, column, Qt.AlignmentFlag.AlignTop)
                self._labels.append(label)
        self._rows.setVisible(bool(self._labels))

    @Slot()
    def _show_reasons(self) -> None:
        shown = self.why.isChecked() and bool(self.reasons.text())
        self.reasons.setVisible(shown)
        for part in (self.commands, self.copy):
            part.setVisible(shown and bool(self.commands.toPlainText()))

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.commands.toPlainText())


def _foldable(word: re.Match[str]) -> str:
    """With places where a line may end: a label breaks nowhere else, and would make the page as wide."""
    return "\u200b".join(word[0][at : at + 12] for at in range(0, len(word[0]), 12))
