"""One download on the screen: how far it is, what it does in words, and what can be done about it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import NO_MLX, ModelFormat, mlx_is_installed
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.part_file import Verification
from forespeak.models.sizes import size_words
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.hub_words import left_words, speed_words
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import LIGHT, Theme

SURE_FROM_BYTES = 100_000_000
"""What is there of a download that one would rather not lose to a slip of the hand."""
SURE_MS = 6000
WIDE = 760
"""From this width in pixels on a row has its buttons beside the name."""
_ABOUT_ACCESS = {
    HubProblem.GATED,
    HubProblem.TOKEN_MISSING,
    HubProblem.TOKEN_WRONG,
    HubProblem.TOKEN_EXPIRED,
    HubProblem.FORBIDDEN,
    HubProblem.PRIVATE_OR_MISSING,
}


class DownloadRow(QFrame):
    """With the keyboard: Space pauses and goes on, Delete cancels or clears, Alt with an arrow moves, Enter does what
    comes next.
    """

    pauseRequested = Signal(str)
    resumeRequested = Signal(str)
    retryRequested = Signal(str)
    cancelRequested = Signal(str)
    clearRequested = Signal(str)
    moveRequested = Signal(str, bool)
    """The download and whether it goes up"""
    useRequested = Signal(object, bool)
    """The Download and whether it is to be the draft"""
    showRequested = Signal(object)
    pageRequested = Signal(str)
    tokenRequested = Signal()
    stepRequested = Signal(int)
    """The arrow keys: to the row after or before"""

    def __init__(self, download: Download, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("downloadRow")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._theme = LIGHT
        self._can_up = self._can_down = False
        self._asked = QTimer(self)
        self._asked.setSingleShot(True)
        self._asked.setInterval(SURE_MS)
        self._asked.timeout.connect(self._show_cancel)
        self.download = download
        self.name = ElidedLabel(self)
        self.name.setObjectName("rowName")
        self.repo = ElidedLabel(self)
        self.repo.setProperty("caption", True)
        self.bar = QProgressBar(self)
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.state = _label(self)
        self.state.setObjectName("rowState")
        self.state.setWordWrap(True)
        self.state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.up = _tool(self, self.tr("Move up"))
        self.up.clicked.connect(self._up)
        self.down = _tool(self, self.tr("Move down"))
        self.down.clicked.connect(self._down)
        self.buttons: dict[str, QPushButton] = {}
        head = QHBoxLayout()
        head.setSpacing(8)
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self.name)
        words.addWidget(self.repo)
        head.addLayout(words, 1)
        head.addWidget(self.up)
        head.addWidget(self.down)
        self._actions = FlowRow(self)
        for key, text, act in (
            ("retry", self.tr("Try again"), self._retry),
            ("resume", self.tr("Go on"), self._resume),
            ("pause", self.tr("Pause"), self._pause),
            ("target", self.tr("Use as target"), self._use_as_target),
            ("draft", self.tr("Use as draft"), self._use_as_draft),
            ("show", self.tr("Show in my models"), self._show),
            ("page", self.tr("Open its page"), self._page),
            ("token", self.tr("Enter a token"), self._token),
            ("cancel", self.tr("Cancel"), self._cancel),
            ("clear", self.tr("Clear"), self._clear),
        ):
            button = QPushButton(text, self)
            button.clicked.connect(act)
            self.buttons[key] = button
            self._actions.add(button)
        self._head = head
        self._wide = False
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 12)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.state)
        column.addWidget(self._actions)
        self.show_download(download)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.up.setIcon(icon("up", theme.muted, theme.line))
        self.down.setIcon(icon("down", theme.muted, theme.line))
        self._show_state()

    def set_places(self, can_up: bool, can_down: bool) -> None:
        """Whether there is something above and below that it could change places with."""
        self._can_up, self._can_down = can_up, can_down
        self._show_moves()

    def show_download(self, download: Download) -> None:
        if download.state is not self.download.state:
            self._asked.stop()
        self.download = download
        self._show_cancel()
        title = " · ".join(part for part in (download.repo.rpartition("/")[2], download.label) if part)
        self.name.set_words(title)
        owner = download.repo.rpartition("/")[0]
        parts = self.tr("{0} files").format(len(download.files)) if len(download.files) > 1 else download.name
        self.repo.set_words(" · ".join(part for part in (owner, parts) if part))
        self.bar.setValue(round(1000 * download.done_bytes / max(1, download.total_bytes)))
        self.bar.setVisible(download.state not in {DownloadState.DONE, DownloadState.CANCELLED})
        words = state_words(download)
        self.state.setText(words)
        for button in self.buttons.values():
            button.setAccessibleName(f"{button.text()}: {title}")
        self.bar.setAccessibleName(self.tr("Progress of {0}").format(title))
        self.setAccessibleName(title)
        self.setAccessibleDescription(words)
        self._show_state()
        self._show_buttons()
        self._show_moves()

    def _show_buttons(self) -> None:
        download = self.download
        state, error = download.state, download.error
        shown: set[str] = set()
        if state.is_going:
            shown = {"pause", "cancel"}
        elif state is DownloadState.PAUSED:
            shown = {"resume", "cancel"}
        elif state is DownloadState.FAILED:
            shown = {"retry", "cancel"}
            if isinstance(error, HubError) and error.problem in _ABOUT_ACCESS:
                shown.add("token")
                if error.page:
                    shown.add("page")
        elif state is DownloadState.DONE:
            shown = {"show", "clear"}
            if can_be_loaded(download):
                shown |= {"target", "draft"}
        for key, button in self.buttons.items():
            # A button that goes takes the focus along; the row keeps it.
            if key not in shown and button.hasFocus():
                self.setFocus(Qt.FocusReason.OtherFocusReason)
            button.setVisible(key in shown)

    def _show_moves(self) -> None:
        movable = not self.download.state.is_over and (self._can_up or self._can_down)
        self.up.setVisible(movable)
        self.down.setVisible(movable)
        self.up.setEnabled(self._can_up)
        self.down.setEnabled(self._can_down)

    def _show_state(self) -> None:
        tone = {DownloadState.FAILED: "bad", DownloadState.DONE: "good"}.get(self.download.state, "")
        restyle(self.state, tone=tone)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The buttons stand beside the name where there is room, below everything where there is not."""
        super().resizeEvent(event)
        wide = event.size().width() >= WIDE
        if wide != self._wide:
            self._wide = wide
            if wide:
                self._column.removeWidget(self._actions)
                self._head.insertWidget(1, self._actions)
            else:
                self._head.removeWidget(self._actions)
                self._column.addWidget(self._actions)

    # -- what is asked for

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, alt = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        state = self.download.state
        if key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            up = key == Qt.Key.Key_Up
            if not alt:
                self.stepRequested.emit(-1 if up else 1)
            elif self._can_up if up else self._can_down:
                self.moveRequested.emit(self.download.id, up)
        elif key == Qt.Key.Key_Space:
            if state is DownloadState.PAUSED:
                self._resume()
            elif state.is_going:
                self._pause()
        elif key in {Qt.Key.Key_Delete, Qt.Key.Key_Backspace}:
            self._clear() if state is DownloadState.DONE else self._cancel()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            act = {
                DownloadState.DONE: self._show,
                DownloadState.FAILED: self._retry,
                DownloadState.PAUSED: self._resume,
            }.get(state)
            if act is not None:
                act()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _up(self) -> None:
        self.moveRequested.emit(self.download.id, True)

    @Slot()
    def _down(self) -> None:
        self.moveRequested.emit(self.download.id, False)

    @Slot()
    def _pause(self) -> None:
        self.pauseRequested.emit(self.download.id)

    @Slot()
    def _resume(self) -> None:
        self.resumeRequested.emit(self.download.id)

    @Slot()
    def _retry(self) -> None:
        self.retryRequested.emit(self.download.id)

    @Slot()
    def _cancel(self) -> None:
        """What has come so far goes with it: from some size on that takes a second press."""
        if self.download.done_bytes < SURE_FROM_BYTES or self._asked.isActive():
            self._asked.stop()
            self._show_cancel()
            self.cancelRequested.emit(self.download.id)
        else:
            self._asked.start()
            self._show_cancel()

    @Slot()
    def _show_cancel(self) -> None:
        done = size_words(self.download.done_bytes)
        button = self.buttons["cancel"]
        button.setText(self.tr("Delete {0}").format(done) if self._asked.isActive() else self.tr("Cancel"))
        restyle(button, danger=self._asked.isActive())

    @Slot()
    def _clear(self) -> None:
        self.clearRequested.emit(self.download.id)

    @Slot()
    def _use_as_target(self) -> None:
        self.useRequested.emit(self.download, False)

    @Slot()
    def _use_as_draft(self) -> None:
        self.useRequested.emit(self.download, True)

    @Slot()
    def _show(self) -> None:
        self.showRequested.emit(self.download)

    @Slot()
    def _page(self) -> None:
        error = self.download.error
        if isinstance(error, HubError) and error.page:
            self.pageRequested.emit(error.page)

    @Slot()
    def _token(self) -> None:
        self.tokenRequested.emit()


def state_words(download: Download) -> str:
    """What a download is doing, how far it is, and how long it still takes."""
    total = size_words(download.total_bytes)
    amount = _tr("{0} of {1}").format(size_words(download.done_bytes), total)
    match download.state:
        case DownloadState.RUNNING if download.notice:
            return f"{download.notice} {amount}"
        case DownloadState.RUNNING:
            parts = [_tr("Downloading"), amount]
            if download.bytes_per_second is not None:
                parts.append(speed_words(download.bytes_per_second))
            if download.seconds_left is not None:
                parts.append(left_words(download.seconds_left))
            return " · ".join(parts)
        case DownloadState.VERIFYING:
            return _tr("Checking what is here · {0}").format(amount)
        case DownloadState.QUEUED:
            return _tr("Waiting for its turn · {0}").format(amount if download.done_bytes else total)
        case DownloadState.PAUSED:
            why = "" if download.error is None else f" {download.error.what}"
            return _tr("Paused · {0}").format(amount) + (why and f" ·{why}")
        case DownloadState.DONE:
            words = f"{_done_words(download)} · {total}"
            return words if can_be_loaded(download) else f"{words}. {NO_MLX}"
        case DownloadState.CANCELLED:
            return _tr("Cancelled")
        case _:
            error = download.error
            words = "" if error is None else str(error)
            kept = _tr("{0} are kept.").format(size_words(download.done_bytes)) if download.done_bytes else ""
            return " ".join(part for part in (words or _tr("It failed."), kept) if part)


def _done_words(download: Download) -> str:
    """No more than what was checked: some servers state no hash."""
    checks = set(download.verified)
    if not checks:
        return _tr("Done")
    if Verification.SIZE in checks:
        return _tr("Done; the server states no hash, so only sizes could be checked")
    if checks == {Verification.GIT}:
        return _tr("Done and verified by Git's SHA-1")
    return _tr("Done and verified by SHA-256")


def can_be_loaded(download: Download) -> bool:
    """Whether what runs models of its format is here."""
    return download.format is ModelFormat.GGUF or mlx_is_installed()


def _tr(words: str) -> str:
    return QCoreApplication.translate("DownloadRow", words)


def _label(parent: QWidget) -> PlainLabel:
    label = PlainLabel(parent)
    # A long name must not make the page wider than the window.
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return label


def _tool(parent: QWidget, words: str) -> QToolButton:
    button = QToolButton(parent)
    button.setAccessibleName(words)
    button.setToolTip(words)
    return button
