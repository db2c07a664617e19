"""The Compare page: set up, watch it run, see what it found, and the comparisons kept from before."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QTabWidget, QVBoxLayout, QWidget

from forespeak.ui.compare_history import CompareHistory
from forespeak.ui.compare_result import CompareResult
from forespeak.ui.compare_running import CompareRunning
from forespeak.ui.compare_setup import CompareSetup
from forespeak.ui.compare_two import CompareTwo
from forespeak.ui.compare_values import HistoryRow, ResultValues
from forespeak.ui.navigation import PageWidget
from forespeak.ui.notices import Toast
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, MarkStyle, Theme

WIDE_MARGIN, NARROW_MARGIN = 40, 14
WIDE_FROM = 720
COMPARE_TAB, RESULT_TAB, HISTORY_TAB = range(3)


class ComparePage(PageWidget):
    """Shows what it is told; its parts tell what the user wants."""

    def __init__(self, suites: Sequence[tuple[str, int]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("comparePage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = LIGHT
        self.title = PlainLabel(self.tr("Compare"))
        self.title.setProperty("title", True)
        self.setup = CompareSetup(suites)
        self.running = CompareRunning()
        self.result = CompareResult()
        self.history = CompareHistory()
        self.two = CompareTwo()
        self.two.backRequested.connect(self.show_list)
        self._work = QStackedWidget()
        self._work.addWidget(self.setup)
        self._work.addWidget(self.running)
        self._kept = QStackedWidget()
        self._kept.addWidget(self.history)
        self._kept.addWidget(self.two)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.tabBar().setAccessibleName(self.tr("Parts of the Compare page"))
        for widget, words in (
            (self._work, self.tr("New comparison")),
            (self.result, self.tr("Result")),
            (self._kept, self.tr("History")),
        ):
            self.tabs.addTab(_spaced(widget), words)
        self.tabs.setTabVisible(RESULT_TAB, False)
        self._layout = QVBoxLayout(self)
        self._layout.setSpacing(8)
        self._layout.addWidget(self.title)
        self._layout.addWidget(self.tabs, 1)
        self.toast = Toast(self)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(f"#comparePage {{ background: {theme.window}; }}")
        for part in (self.setup, self.running, self.result, self.history, self.two):
            part.set_theme(theme)

    def set_mark_style(self, style: MarkStyle) -> None:
        self.running.set_mark_style(style)
        self.result.set_mark_style(style)

    # -- which part is shown

    @property
    def is_running(self) -> bool:
        return self._work.currentWidget() is self.running

    def show_setup(self) -> None:
        self._work.setCurrentWidget(self.setup)
        self.tabs.setTabText(COMPARE_TAB, self.tr("New comparison"))

    def show_running(self, words: str = "", *, paused: bool = False) -> None:
        """`words`: how far it is, for the tab."""
        self._work.setCurrentWidget(self.running)
        doing = self.tr("Paused {0}") if paused else self.tr("Running {0}")
        self.tabs.setTabText(COMPARE_TAB, doing.format(words).strip())

    def show_tab(self, tab: int) -> None:
        self.tabs.setCurrentIndex(tab)

    def show_result(self, values: ResultValues) -> None:
        self.tabs.setTabVisible(RESULT_TAB, True)
        self.result.show_result(values)

    def hide_result(self) -> None:
        """It was deleted."""
        if self.tabs.currentIndex() == RESULT_TAB:
            self.show_tab(HISTORY_TAB)
        self.tabs.setTabVisible(RESULT_TAB, False)

    def show_history(self, rows: Sequence[HistoryRow], query: str) -> None:
        self.history.show_rows(rows, query)

    def show_two(self, first: ResultValues, second: ResultValues) -> None:
        self.two.show_two(first, second)
        self._kept.setCurrentWidget(self.two)

    @Slot()
    def show_list(self) -> None:
        self._kept.setCurrentWidget(self.history)
        self.history.take_focus()

    def picture(self, *, with_replies: bool) -> QPixmap:
        """All of the result on one picture; without the replies unless they are wanted."""
        result = self.result
        result.draw_charts()
        content = result.content
        shown = result.replay.isVisibleTo(content)
        buttons = result.buttons.isVisibleTo(content)
        result.buttons.hide()
        result.saved.hide()
        result.replay.setVisible(shown and with_replies)
        layout = content.layout()
        assert layout is not None
        size = content.size()
        layout.activate()
        content.resize(size.width(), max(content.sizeHint().height(), layout.heightForWidth(size.width())))
        margin = 24
        ratio = 2.0
        pixmap = QPixmap(int((content.width() + 2 * margin) * ratio), int((content.height() + 2 * margin) * ratio))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(self._theme.window)
        painter = QPainter(pixmap)
        content.render(painter, QPoint(margin, margin), renderFlags=QWidget.RenderFlag.DrawChildren)
        painter.end()
        result.buttons.setVisible(buttons)
        result.replay.setVisible(shown)
        content.resize(size)
        return pixmap

    # -- what the window asks

    def take_focus(self) -> None:
        match self.tabs.currentIndex():
            case tab if tab == RESULT_TAB:
                self.result.take_focus()
            case tab if tab == HISTORY_TAB:
                self.history.take_focus()
            case _:
                (self.running if self.is_running else self.setup).take_focus()

    def focus_search(self) -> None:
        self.show_tab(HISTORY_TAB)
        self._kept.setCurrentWidget(self.history)
        self.history.focus_search()

    @property
    def can_undo(self) -> bool:
        return self.toast.can_undo

    def undo(self) -> None:
        self.toast.undo()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = WIDE_MARGIN if event.size().width() >= WIDE_FROM else NARROW_MARGIN
        self._layout.setContentsMargins(side, 22, side, 16)


def _spaced(widget: QWidget) -> QWidget:
    """A little air below the tabs."""
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(0, 14, 0, 0)
    column.addWidget(widget)
    box.setFocusProxy(widget)
    return box
