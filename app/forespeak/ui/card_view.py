"""A model's card on the screen: our own renderer, nothing fetched; a link says where it leads and opens on a click."""

from __future__ import annotations

from urllib.parse import urljoin

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QHelpEvent, QResizeEvent
from PySide6.QtWidgets import QDialogButtonBox, QPushButton, QToolTip, QVBoxLayout, QWidget

from forespeak.ui.dialogs import FittedDialog
from forespeak.ui.message_body import MessageBody
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.text_look import Look
from forespeak.ui.theme import LIGHT, MarkStyle, Theme

_AHEAD = 400
"""Pixels beyond the view that are laid out already."""


class CardView(QWidget):
    """Grows to the height of its text; what is laid out is what `show_part` says is seen."""

    grown = Signal(int)
    """By how many pixels what stands above the seen part has grown."""
    linkActivated = Signal(str)
    """A whole http, https or mailto address."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._page = ""
        self._seen = (0.0, 0.0)
        self.body = MessageBody(Look(LIGHT, MarkStyle.OFF), self)
        self.body.setAccessibleName(self.tr("Model card"))
        self.body.linkActivated.connect(self._activated)
        self.body.installEventFilter(self)

    @property
    def text(self) -> str:
        """The card as Markdown, as far as it is shown."""
        return self.body.document.text

    def set_theme(self, theme: Theme) -> None:
        self.body.set_look(Look(theme, MarkStyle.OFF))
        self._lay_out()

    def set_card(self, text: str, page: str) -> None:
        """`text` is what `card_markdown` made; `page` the repo's address, from which its relative links count."""
        self._page = page
        self.body.document.set_text(text, ())
        self.body.content_changed()
        self.body.setAccessibleDescription(self.body.document.text[:2000])
        self._lay_out()

    def show_part(self, top: int, bottom: int) -> None:
        """What lies between is in view, in this widget's coordinates."""
        self._seen = (float(max(top, 0)), float(max(bottom, 0)))
        self._lay_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        top, bottom = self._seen
        document = self.body.document
        document.set_width(float(self.width()))
        grown = self.body.ensure(top, bottom + _AHEAD) if bottom > 0 else 0.0
        height = int(document.height) + 2
        self.body.setGeometry(QRect(QPoint(0, 0), QRect(0, 0, self.width(), height).size()))
        if height != self.minimumHeight():
            self.setFixedHeight(height)
        if grown:
            self.grown.emit(round(grown))

    def address_of(self, link: str) -> str | None:
        """Where a link of the card leads; None where it leads nowhere that we would open."""
        if link.startswith("#"):
            return None
        address = urljoin(f"{self._page}/blob/main/", link)
        url = QUrl(address, QUrl.ParsingMode.StrictMode)
        if url.scheme() == "mailto" or (url.scheme() in {"http", "https"} and url.host()):
            return address
        return None

    @Slot(str)
    def _activated(self, link: str) -> None:
        address = self.address_of(link)
        if address is not None:
            self.linkActivated.emit(address)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if watched is self.body and event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            link = self.body.document.link_at(event.pos().toPointF())
            address = self.address_of(link) if link else None
            # Broken into plain pieces: an address must not be taken for markup.
            QToolTip.showText(event.globalPos(), _plain(address) if address else "", self.body)
            return True
        return False


class LinkDialog(FittedDialog):
    """Where a link of a stranger's text leads, before it is opened."""

    def __init__(self, address: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._address = address
        self.setObjectName("linkDialog")
        self.setWindowTitle(self.tr("Open a link"))
        title = PlainLabel(self.tr("Open this page in your browser?"))
        title.setObjectName("dialogTitle")
        where = PlainLabel(address)
        where.setWordWrap(True)
        where.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        # A long address has no spaces to break at.
        where.setText("\u200b".join(address[at : at + 8] for at in range(0, len(address), 8)))
        where.setAccessibleName(address)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.open_button = QPushButton(self.tr("Open"))
        self.open_button.setObjectName("primaryButton")
        self.open_button.setDefault(True)
        self.copy_button = QPushButton(self.tr("Copy address"))
        buttons.addButton(self.copy_button, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.open_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.accepted.connect(self._open)
        buttons.rejected.connect(self.reject)
        self.copy_button.clicked.connect(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(10)
        for widget in (title, where, buttons):
            layout.addWidget(widget)

    @Slot()
    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl(self._address))
        self.accept()

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._address)
        self.reject()


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
