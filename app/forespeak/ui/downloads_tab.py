"""The Downloads tab: what comes, what waits, what is there, and how fast it may all go."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.ui.download_row import DownloadRow
from forespeak.ui.downloads_controller import DownloadsController
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.form import scrolled
from forespeak.ui.hub_style import hub_style_sheet
from forespeak.ui.hub_words import left_words, speed_words
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.state_panel import StatePanel
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.web_page import open_web_page

_LIMITS = (None, 1, 2, 5, 10, 20, 50, 100)
"""Megabytes a second"""
_MEGABYTE = 1_000_000


class DownloadsTab(QWidget):
    discoverRequested = Signal()
    useRequested = Signal(object, bool)
    """A finished Download and whether it is to be the draft"""
    showRequested = Signal(object)
    """A finished Download: show it among my models"""
    tokenRequested = Signal()

    def __init__(self, controller: DownloadsController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("downloadsPage")
        self._controller = controller
        self._theme = LIGHT
        self.rows: dict[str, DownloadRow] = {}
        self._moving: str | None = None
        self.summary = PlainLabel()
        self.summary.setProperty("heading", True)
        self.summary.setWordWrap(True)
        self.limit = QComboBox()
        self.limit.setAccessibleName(self.tr("Bandwidth of all downloads together"))
        self.limit.setToolTip(self.tr("How fast all downloads together may go"))
        self.limit.activated.connect(self._limit_chosen)
        self.pause_all = QPushButton(self.tr("Pause all"))
        self.pause_all.clicked.connect(self._pause_all)
        self.clear = QPushButton(self.tr("Clear finished"))
        self.clear.clicked.connect(controller.forget_finished)
        controls = FlowRow()
        for control in (self.pause_all, self.clear, self.limit):
            controls.add(control)
        inside = QWidget()
        self._list = QVBoxLayout(inside)
        self._list.setContentsMargins(0, 0, 8, 0)
        self._list.setSpacing(10)
        self._list.addStretch(1)
        self.area = scrolled(inside)
        self.note = PlainLabel(
            self.tr(
                "Downloads go on while you chat. They stop when Forespeak is closed, and go on where they were when it "
                "opens again."
            )
        )
        self.note.setProperty("caption", True)
        self.note.setWordWrap(True)
        full = QWidget()
        column = QVBoxLayout(full)
        column.setContentsMargins(0, 12, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.summary)
        column.addWidget(controls)
        column.addWidget(self.area, 1)
        column.addWidget(self.note)
        self.empty = StatePanel()
        self.empty.primaryRequested.connect(self.discoverRequested)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(full)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._stack)
        controller.changed.connect(self.refresh)
        controller.limitChanged.connect(self._show_limit)
        self._show_limit()
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(hub_style_sheet(theme))
        self.empty.set_theme(theme)
        for row in self.rows.values():
            row.set_theme(theme)

    def take_focus(self) -> None:
        rows = self._in_order()
        target: QWidget = rows[0] if rows else self.empty.primary
        target.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_download(self, download: Download) -> None:
        """Bring a row into view and put the keyboard there."""
        row = self.rows.get(download.id)
        if row is not None:
            self.area.ensureWidgetVisible(row)
            row.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def refresh(self) -> None:
        downloads = self._controller.downloads
        open_ones = [each for each in downloads if not each.state.is_over]
        shown = [*open_ones, *(each for each in downloads if each.state is DownloadState.DONE)]
        self._arrange(shown)
        for number, download in enumerate(open_ones):
            self.rows[download.id].set_places(number > 0, number < len(open_ones) - 1)
        if not shown:
            self.empty.show_state(
                "download",
                self.tr("Nothing is being downloaded"),
                self.tr("What you take from the Hub comes here: with its progress, and a check of every byte."),
                primary=self.tr("Find models"),
            )
        self._stack.setCurrentIndex(1 if shown else 0)
        self.summary.setText(_summary(downloads))
        going = any(each.state.is_going for each in downloads)
        paused = any(each.state is DownloadState.PAUSED for each in downloads)
        self.pause_all.setText(self.tr("Pause all") if going or not paused else self.tr("Go on with all"))
        self.pause_all.setVisible(going or paused)
        self.clear.setVisible(any(each.state is DownloadState.DONE for each in downloads))

    def _arrange(self, downloads: Sequence[Download]) -> None:
        """Rows that stay are kept, with the focus on them; only what moved is put elsewhere."""
        wanted = [download.id for download in downloads]
        for gone in [name for name in self.rows if name not in wanted]:
            self._remove(gone)
        for place, download in enumerate(downloads):
            row = self.rows.get(download.id)
            if row is None:
                row = self._new_row(download)
                self._list.insertWidget(place, row)
            elif row.download != download:
                row.show_download(download)
            if self._list.indexOf(row) != place:
                self._list.removeWidget(row)
                self._list.insertWidget(place, row)
        if self._moving in self.rows:
            self.area.ensureWidgetVisible(self.rows[self._moving])
        self._moving = None

    def _new_row(self, download: Download) -> DownloadRow:
        row = DownloadRow(download)
        row.set_theme(self._theme)
        controller = self._controller
        row.pauseRequested.connect(controller.pause)
        row.resumeRequested.connect(controller.resume)
        row.retryRequested.connect(controller.retry)
        row.cancelRequested.connect(controller.cancel)
        row.clearRequested.connect(controller.forget)
        row.moveRequested.connect(self._move)
        row.useRequested.connect(self.useRequested)
        row.showRequested.connect(self.showRequested)
        row.tokenRequested.connect(self.tokenRequested)
        row.pageRequested.connect(open_web_page)
        row.stepRequested.connect(self._step)
        self.rows[download.id] = row
        return row

    def _remove(self, name: str) -> None:
        row = self.rows.pop(name)
        place = self._list.indexOf(row)
        had_focus = row.hasFocus() or row.isAncestorOf(self.focusWidget() or self)
        self._list.removeWidget(row)
        row.hide()
        row.deleteLater()
        if had_focus:
            self._focus_near(place)

    def _focus_near(self, place: int) -> None:
        rows = self._in_order()
        if rows:
            rows[min(place, len(rows) - 1)].setFocus(Qt.FocusReason.OtherFocusReason)

    def _in_order(self) -> list[DownloadRow]:
        return sorted(self.rows.values(), key=self._list.indexOf)

    # -- what is asked for

    @Slot(str, bool)
    def _move(self, name: str, up: bool) -> None:
        self._moving = name
        self._controller.move(name, up)

    @Slot(int)
    def _step(self, by: int) -> None:
        rows = self._in_order()
        here = next((place for place, row in enumerate(rows) if row is self.sender()), None)
        if here is not None and 0 <= here + by < len(rows):
            row = rows[here + by]
            row.setFocus(Qt.FocusReason.TabFocusReason)
            self.area.ensureWidgetVisible(row)

    @Slot()
    def _pause_all(self) -> None:
        going = any(each.state.is_going for each in self._controller.downloads)
        if going:
            self._controller.pause_all()
        else:
            self._controller.resume_all()

    @Slot()
    def _show_limit(self) -> None:
        limit = self._controller.limit
        choices = [None if each is None else each * _MEGABYTE for each in _LIMITS]
        if limit not in choices:
            choices.append(limit)
        self.limit.clear()
        for choice in choices:
            words = (
                self.tr("As fast as it goes") if choice is None else self.tr("At most {0}").format(speed_words(choice))
            )
            self.limit.addItem(words, choice)
        self.limit.setCurrentIndex(choices.index(limit))

    @Slot(int)
    def _limit_chosen(self, place: int) -> None:
        limit = self.limit.itemData(place)
        self._controller.set_limit(limit)


def _summary(downloads: Sequence[Download]) -> str:
    """How many there are of each, how fast it goes, and how long all of it takes."""

    def tr(words: str) -> str:
        return QCoreApplication.translate("DownloadsTab", words)

    running = [each for each in downloads if each.state.is_active]
    waiting = sum(each.state is DownloadState.QUEUED for each in downloads)
    paused = sum(each.state is DownloadState.PAUSED for each in downloads)
    failed = sum(each.state is DownloadState.FAILED for each in downloads)
    done = sum(each.state is DownloadState.DONE for each in downloads)
    parts = []
    for count, words in (
        (len(running), tr("{0} running")),
        (waiting, tr("{0} waiting")),
        (paused, tr("{0} paused")),
        (failed, tr("{0} failed")),
    ):
        if count:
            parts.append(words.format(count))
    speed = sum(each.bytes_per_second or 0.0 for each in running)
    if speed:
        missing = sum(each.total_bytes - each.done_bytes for each in downloads if each.state.is_going)
        parts += [speed_words(speed), left_words(missing / speed)]
    if not parts:
        return tr("1 download is done") if done == 1 else tr("{0} downloads are done").format(done)
    return " · ".join(parts)
