"""The token for the Hub: typed in, stored, tested, removed; and in words where it is kept and whose it is."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from forespeak.models.hub_token import TokenSource
from forespeak.ui.hub_account import TokenStatus
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle


class TokenEntry(QWidget):
    """Shows a TokenStatus. The field never shows a token that is stored."""

    storeRequested = Signal(str)
    testRequested = Signal()
    forgetRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._status = TokenStatus()
        self.field = QLineEdit(self)
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setMaxLength(512)
        self.field.setAccessibleName(self.tr("Token for the Hub"))
        self.field.textChanged.connect(self._show_buttons)
        self.field.returnPressed.connect(self._store)
        self.store_button = QPushButton(self.tr("Save and test"), self)
        self.store_button.setAutoDefault(False)
        self.store_button.clicked.connect(self._store)
        self.test_button = QPushButton(self.tr("Test"), self)
        self.test_button.setAutoDefault(False)
        self.test_button.clicked.connect(self.testRequested)
        self.forget_button = QPushButton(self.tr("Remove"), self)
        self.forget_button.setAutoDefault(False)
        self.forget_button.clicked.connect(self.forgetRequested)
        self.outcome = _words(self)
        self.place = _words(self)
        self.place.setProperty("caption", True)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.field, 1)
        row.addWidget(self.store_button)
        row.addWidget(self.test_button)
        row.addWidget(self.forget_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(5)
        column.addLayout(row)
        column.addWidget(self.outcome)
        column.addWidget(self.place)
        self.show_status(self._status)

    def show_status(self, status: TokenStatus) -> None:
        if status.user is not None:
            self.field.clear()
        self._status = status
        words = self._outcome_words(status)
        self.outcome.setText(words)
        self.outcome.setVisible(bool(words))
        self.place.setText(self._place_words(status))
        stored = status.source is not None
        self.field.setPlaceholderText(
            self.tr("Stored: {0}").format(status.hint) if stored else self.tr("hf_…, from the Hub's page of tokens")
        )
        self._show_buttons()
        self._colour()

    def _outcome_words(self, status: TokenStatus) -> str:
        if status.busy:
            return self.tr("Asking the Hub…")
        if status.error is not None:
            return str(status.error)
        if status.user is not None:
            return self.tr("Signed in as {0}.").format(status.user)
        return ""

    def _place_words(self, status: TokenStatus) -> str:
        match status.source:
            case TokenSource.ENVIRONMENT:
                return self.tr("It comes from HF_TOKEN in the environment, and goes before one that is stored here.")
            case TokenSource.KEYRING:
                return self.tr("It is kept in your system's keyring, in no file of Forespeak.")
            case TokenSource.SESSION:
                return self.tr("It is kept until Forespeak closes. {0}").format(status.keyring_problem or "").strip()
        if status.keyring_problem:
            return self.tr("{0} A token would be kept until Forespeak closes.").format(status.keyring_problem)
        return self.tr(
            "Only for gated and private models. It will be kept in your system's keyring, and sent to this Hub alone."
        )

    @Slot()
    def _show_buttons(self) -> None:
        status, typed = self._status, bool(self.field.text().strip())
        stored = status.source is not None
        for widget in (self.field, self.store_button, self.test_button, self.forget_button):
            widget.setEnabled(not status.busy)
        self.store_button.setEnabled(typed and not status.busy)
        self.store_button.setVisible(typed or not stored)
        self.test_button.setVisible(stored and not typed)
        # What the environment gives is not ours to remove.
        self.forget_button.setVisible(stored and not typed and status.source is not TokenSource.ENVIRONMENT)

    def _colour(self) -> None:
        status = self._status
        restyle(self.outcome, danger=status.error is not None, success=status.user is not None, muted=status.busy)

    @Slot()
    def _store(self) -> None:
        value = self.field.text().strip()
        if value and not self._status.busy:
            self.storeRequested.emit(value)


def _words(parent: QWidget) -> PlainLabel:
    label = PlainLabel(parent)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
