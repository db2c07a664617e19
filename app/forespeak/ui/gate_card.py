"""What a gated repo asks for, before a download fails of it: the licence on its page, and a token here."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from forespeak.models.hub_results import Gate
from forespeak.ui.hub_account import TokenStatus
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import Theme
from forespeak.ui.token_entry import TokenEntry


class GateCard(QFrame):
    """Hidden where the files are for everybody."""

    pageRequested = Signal()
    retryRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("gateCard")
        self.title = PlainLabel()
        self.title.setProperty("heading", True)
        self.title.setWordWrap(True)
        self.text = PlainLabel()
        self.text.setProperty("muted", True)
        self.text.setWordWrap(True)
        self.page_button = QPushButton(self.tr("Open its page"))
        self.page_button.clicked.connect(self.pageRequested)
        self.retry_button = QPushButton(self.tr("Look again"))
        self.retry_button.clicked.connect(self.retryRequested)
        self.entry = TokenEntry()
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.page_button)
        buttons.addWidget(self.retry_button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 18, 14)
        column.setSpacing(8)
        column.addWidget(self.title)
        column.addWidget(self.text)
        column.addLayout(buttons)
        column.addWidget(self.entry)
        self.setVisible(False)

    def set_theme(self, theme: Theme) -> None:
        self.page_button.setIcon(icon("external", theme.muted))

    def show_gate(self, gate: Gate, token: TokenStatus) -> None:
        if gate is Gate.OPEN:
            self.setVisible(False)
            return
        if gate is Gate.MANUAL:
            self.title.setText(self.tr("The owner of this model decides who may have its files"))
            step = self.tr("Ask for access on its page in the browser; the owner answers there.")
        else:
            self.title.setText(self.tr("The files of this model are for those who accept its licence"))
            step = self.tr("Accept it once on its page in the browser, signed in with your account.")
        if token.source is None:
            then = self.tr("Then make a token there that may read, and put it in here.")
        else:
            then = self.tr("The download then works with the token that is stored.")
        self.text.setText(f"{step} {then}")
        self.setAccessibleName(f"{self.title.text()}. {self.text.text()}")
        self.setVisible(True)
