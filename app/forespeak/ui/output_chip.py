"""The chip at the composer that says what the next reply is held to."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from forespeak.ui.structured_output import OutputKind, StructuredOutput


class OutputChip(QFrame):
    """Shown only while replies are held to something. `opened` asks for the place where it is written."""

    opened = Signal()
    switchedOff = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("chip", True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.name = QToolButton()
        self.name.setToolTip(self.tr("Replies are held to this structure. Click to see or change it."))
        self.name.clicked.connect(self.opened)
        self.off = QToolButton()
        self.off.setText("✕")
        self.off.setFixedWidth(22)
        self.off.clicked.connect(self.switchedOff)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(5, 2, 3, 2)
        layout.setSpacing(0)
        layout.addWidget(self.name)
        layout.addWidget(self.off)
        self.setVisible(False)

    def show_output(self, output: StructuredOutput) -> None:
        if output.kind is OutputKind.GRAMMAR:
            words = self.tr("Grammar")
        else:
            words = self.tr("JSON schema") if output.schema.strip() else self.tr("JSON")
        self.name.setText(words)
        off = self.tr("Switch off: {what}").format(what=words)
        self.off.setToolTip(off)
        self.off.setAccessibleName(off)
        self.setVisible(output.holds)
