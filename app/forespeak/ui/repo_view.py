"""One repo of the Hub: what it is, which of its files to take, and its card."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.hub_results import Gate, HubModel
from forespeak.ui.badge import Badge, BadgeTone
from forespeak.ui.card_view import CardView, LinkDialog
from forespeak.ui.file_groups import FileGroups, GroupView
from forespeak.ui.form import scrolled
from forespeak.ui.gate_card import GateCard
from forespeak.ui.hub_account import TokenStatus
from forespeak.ui.hub_controller import RepoStatus
from forespeak.ui.hub_problems import problem_words
from forespeak.ui.hub_words import age_words, count_words, parameter_words
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.state_panel import StatePanel
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.web_page import open_web_page

_WIDEST = 860


class RepoView(QWidget):
    downloadRequested = Signal(object)
    """A HubFileGroup"""
    useRequested = Signal(object)
    compareRequested = Signal(object)
    showDownloadRequested = Signal(object)
    judgeRequested = Signal(object)
    """A GroupView each"""
    retryRequested = Signal()
    cardRetryRequested = Signal()
    settingsRequested = Signal()
    backRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("repoPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = LIGHT
        self._status = RepoStatus()
        self._token = TokenStatus()
        self._page = ""
        self._open_card = ""
        self._hint = False
        self.back = QToolButton()
        self.back.setAccessibleName(self.tr("Back to the results"))
        self.back.setToolTip(self.tr("Back to the results"))
        self.back.clicked.connect(self.backRequested)
        self.title = _words("repoTitle")
        self.owner = _words()
        self.owner.setProperty("muted", True)
        self.facts = _words()
        self.facts.setProperty("caption", True)
        self.gated = Badge()
        self.page_button = QPushButton(self.tr("Open on the Hub"))
        self.page_button.clicked.connect(self._open_page)
        self.copy_button = QPushButton(self.tr("Copy name"))
        self.copy_button.clicked.connect(self._copy_name)
        self.gate = GateCard()
        self.gate.pageRequested.connect(self._open_page)
        self.gate.retryRequested.connect(self.retryRequested)
        self.files_title = _heading(self.tr("Files"))
        self.groups = FileGroups()
        self.groups.downloadRequested.connect(self._download)
        self.groups.useRequested.connect(self.useRequested)
        self.groups.compareRequested.connect(self.compareRequested)
        self.groups.showDownloadRequested.connect(self.showDownloadRequested)
        self.groups.judgeRequested.connect(self.judgeRequested)
        self.card_title = _heading(self.tr("Model card"))
        self.card_note = PlainLabel()
        self.card_note.setProperty("muted", True)
        self.card_note.setWordWrap(True)
        self.card_retry = QPushButton(self.tr("Try again"))
        self.card_retry.clicked.connect(self.cardRetryRequested)
        self.card = CardView()
        self.card.linkActivated.connect(self._ask_link)
        self.card.grown.connect(self._card_grew)
        self._column = QWidget()
        self._fill_column()
        self.area = scrolled(self._column)
        self.area.verticalScrollBar().valueChanged.connect(self._look)
        self.area.viewport().installEventFilter(self)
        self._column.installEventFilter(self)
        self.state = StatePanel()
        self.state.primaryRequested.connect(self._primary)
        self.state.secondaryRequested.connect(self._secondary)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.state)
        self._stack.addWidget(self.area)
        self._looking = QTimer(self)
        self._looking.setSingleShot(True)
        self._looking.setInterval(0)
        self._looking.timeout.connect(self._look)
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 8, 0, 0)
        bar.addWidget(self.back)
        bar.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(bar)
        column.addWidget(self._stack, 1)
        self.set_narrow(False)
        self.show_status(self._status)

    def _fill_column(self) -> None:
        name = QHBoxLayout()
        name.setSpacing(10)
        name.addWidget(self.title, 1)
        name.addWidget(self.gated, 0, Qt.AlignmentFlag.AlignTop)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.page_button)
        buttons.addWidget(self.copy_button)
        buttons.addStretch(1)
        note = QHBoxLayout()
        note.setSpacing(8)
        note.addWidget(self.card_note, 1)
        note.addWidget(self.card_retry)
        inner = QVBoxLayout()
        inner.setSpacing(6)
        inner.addLayout(name)
        inner.addWidget(self.owner)
        inner.addWidget(self.facts)
        inner.addSpacing(4)
        inner.addLayout(buttons)
        inner.addSpacing(10)
        inner.addWidget(self.gate)
        inner.addSpacing(6)
        inner.addWidget(self.files_title)
        inner.addSpacing(2)
        inner.addWidget(self.groups)
        inner.addSpacing(18)
        inner.addWidget(self.card_title)
        inner.addLayout(note)
        inner.addWidget(self.card)
        inner.addStretch(1)
        held = QWidget()
        held.setMaximumWidth(_WIDEST)
        held.setLayout(inner)
        inner.setContentsMargins(0, 0, 0, 0)
        row = QHBoxLayout(self._column)
        row.setContentsMargins(24, 12, 16, 24)
        row.addWidget(held, 1)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.back.setIcon(icon("previous", theme.muted))
        self.page_button.setIcon(icon("external", theme.muted))
        self.copy_button.setIcon(icon("copy", theme.muted))
        for part in (self.gated, self.gate, self.groups, self.card, self.state):
            part.set_theme(theme)

    def set_narrow(self, narrow: bool) -> None:
        """Alone on the page, with a way back."""
        self.back.setVisible(narrow)

    # -- what is shown

    def show_status(self, status: RepoStatus) -> None:
        another = status.name != self._status.name
        self._status = status
        if status.repo is None:
            self._show_state(status)
            self._stack.setCurrentIndex(0)
            return
        repo = status.repo
        self._page = repo.page
        self._show_head(repo.model)
        self._show_gate()
        self._show_card(status)
        self._stack.setCurrentIndex(1)
        if another:
            self.area.verticalScrollBar().setValue(0)
        self._looking.start()

    def set_hint(self, choosable: bool) -> None:
        """Whether there is something to choose from while nothing is open."""
        if choosable != self._hint:
            self._hint = choosable
            self.show_status(self._status)

    def show_groups(self, views: Sequence[GroupView]) -> None:
        self.groups.show_views(views)
        self._looking.start()

    def show_token(self, token: TokenStatus) -> None:
        self._token = token
        self.gate.entry.show_status(token)
        self._show_gate()

    def _show_state(self, status: RepoStatus) -> None:
        if status.name is None:
            self.state.show_state(
                "models" if self._hint else "", self.tr("Choose a model on the left") if self._hint else ""
            )
        elif status.error is not None:
            self._page = getattr(status.error, "page", None) or ""
            words = problem_words(status.error)
            self.state.show_state(words.icon, words.title, words.text, primary=words.primary, secondary=words.secondary)
        else:
            self.state.show_state("", self.tr("Opening {0}").format(status.name), busy=True)

    def _show_head(self, model: HubModel) -> None:
        self.title.setText(model.name)
        self.owner.setText(model.owner)
        parts = []
        if model.parameters:
            parts.append(self.tr("{0} parameters").format(parameter_words(model.parameters)))
        if model.architecture:
            parts.append(model.architecture)
        if model.context_length:
            parts.append(self.tr("context of {0} tokens").format(f"{model.context_length:,}"))
        parts.append(self.tr("licence: {0}").format(model.licence or self.tr("not said")))
        if model.downloads is not None:
            parts.append(self.tr("{0} downloads a month").format(count_words(model.downloads)))
        if model.likes is not None:
            parts.append(self.tr("{0} likes").format(count_words(model.likes)))
        if model.updated is not None:
            parts.append(self.tr("updated {0}").format(age_words(model.updated)))
        self.facts.setText(" · ".join(parts))
        words = self.tr("Gated") if model.gate is not Gate.OPEN else self.tr("Private") if model.private else ""
        self.gated.set_words(words, BadgeTone.CAUTION if model.gate is not Gate.OPEN else BadgeTone.QUIET)
        self.page_button.setToolTip(self._page)

    def _show_gate(self) -> None:
        repo = self._status.repo
        gate = Gate.OPEN if repo is None else repo.model.gate
        self.gate.show_gate(gate, self._token)

    def _show_card(self, status: RepoStatus) -> None:
        error, card = status.card_error, status.card
        self.card_retry.setVisible(error is not None)
        if error is not None:
            note = str(error)
        elif card is None:
            note = self.tr("Reading it…")
        elif not card.text:
            note = self.tr("This repo has none.")
        else:
            note = self.tr("Only its beginning is shown here.") if card.shortened else ""
        self.card_note.setText(note)
        self.card_note.setVisible(bool(note))
        text = "" if card is None else card.text
        if text != self._open_card:
            self._open_card = text
            self.card.set_card(text, self._page)
        self.card.setVisible(bool(text))

    # -- the card is laid out where it is seen

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.Resize, QEvent.Type.LayoutRequest}:
            self._looking.start()
        return super().eventFilter(watched, event)

    @Slot()
    def _look(self) -> None:
        view = self.area.viewport()
        top = self.card.mapFrom(view, QPoint(0, 0)).y()
        self.card.show_part(top, top + view.height())

    @Slot(int)
    def _card_grew(self, by: int) -> None:
        bar = self.area.verticalScrollBar()
        if self.card.mapFrom(self.area.viewport(), QPoint(0, 0)).y() > 0:
            bar.setValue(bar.value() + by)

    # -- what is asked for

    @Slot(object)
    def _download(self, view: GroupView) -> None:
        self.downloadRequested.emit(view)

    @Slot()
    def _primary(self) -> None:
        if self._status.error is not None and problem_words(self._status.error).settings:
            self.settingsRequested.emit()
        else:
            self.retryRequested.emit()

    @Slot()
    def _secondary(self) -> None:
        if self._status.error is not None and problem_words(self._status.error).settings:
            self.retryRequested.emit()
        else:
            self._open_page()

    @Slot()
    def _open_page(self) -> None:
        open_web_page(self._page)

    @Slot()
    def _copy_name(self) -> None:
        if self._status.name is not None:
            QGuiApplication.clipboard().setText(self._status.name)

    @Slot(str)
    def _ask_link(self, address: str) -> None:
        dialog = LinkDialog(address, self.window())
        dialog.setModal(True)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()


def _words(name: str = "") -> PlainLabel:
    label = PlainLabel()
    if name:
        label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return label


def _heading(words: str) -> PlainLabel:
    label = PlainLabel(words)
    label.setProperty("heading", True)
    return label
