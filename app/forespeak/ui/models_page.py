"""The page about models: those on this computer, those on the Hub, and what is being downloaded."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QTabBar, QTabWidget, QVBoxLayout, QWidget

from forespeak.ui.my_models import MyModels
from forespeak.ui.navigation import PageWidget
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import Theme

WIDE_MARGIN, NARROW_MARGIN = 40, 14
WIDE_FROM = 720


class RoomyBar(QTabBar):
    """Tabs in `longest` have room for that title always: a count that comes and goes moves nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.longest: dict[int, str] = {}

    def tabSizeHint(self, number: int) -> QSize:
        hint = super().tabSizeHint(number)
        words, metrics = self.longest.get(number, ""), self.fontMetrics()
        more = metrics.horizontalAdvance(words) - metrics.horizontalAdvance(self.tabText(number))
        return QSize(hint.width() + max(0, more), hint.height())


class CalmTabs(QTabWidget):
    """Qt's own paint all of the page anew when a label on it gets other words: some 20 ms with a full table."""

    def __init__(self, bar: QTabBar, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabBar(bar)
        self._bar_size = QSize()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:
            size, self._bar_size = self._bar_size, self.tabBar().sizeHint()
            if size == self._bar_size:
                self.updateGeometry()
                return True
        return super().event(event)


class ModelsPage(PageWidget):
    """`my_models` is the first tab; the others are added in the order in which they are to stand."""

    def __init__(self, my_models: MyModels, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelsPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.my_models = my_models
        self._theme: Theme | None = None
        title = PlainLabel(self.tr("Models"))
        title.setProperty("title", True)
        self.title = title
        self._bar = RoomyBar()
        self.tabs = CalmTabs(self._bar)
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.tabBar().setAccessibleName(self.tr("Parts of the Models page"))
        self._layout = QVBoxLayout(self)
        self._layout.setSpacing(8)
        self._layout.addWidget(title)
        self._layout.addWidget(self.tabs, 1)
        self._makers: dict[int, Callable[[], QWidget]] = {}
        self._made: dict[int, QWidget] = {self.tabs.addTab(my_models, self.tr("My models")): my_models}
        self.tabs.currentChanged.connect(self._tab_chosen)

    def add_tab(self, title: str, make: Callable[[], QWidget], longest: str = "") -> int:
        """Returns its number. The widget is made when it is first shown; then its `set_theme` follows the window's.

        `longest`: the title for which there is to be room, if it changes.
        """
        holder = QWidget()
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        self._bar.longest[self.tabs.count()] = longest
        number = self.tabs.addTab(holder, title)
        self._makers[number] = make
        return number

    def tab(self, number: int) -> QWidget:
        """Made now if it was not shown before."""
        make = self._makers.pop(number, None)
        if make is not None:
            widget = self._made[number] = make()
            if self._theme is not None:
                _tell_theme(widget, self._theme)
            holder = self.tabs.widget(number)
            assert holder is not None
            layout = holder.layout()
            assert layout is not None
            layout.addWidget(widget)
            holder.setFocusProxy(widget)
        return self._made[number]

    def show_tab(self, number: int) -> None:
        self.tabs.setCurrentIndex(number)

    def set_tab_title(self, number: int, title: str) -> None:
        """With a count of what is going on in it, perhaps."""
        # Not through the tabs, which would lay out and paint all of the page.
        self._bar.setTabText(number, title)

    @Slot(int)
    def _tab_chosen(self, number: int) -> None:
        self.tab(number)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for widget in self._made.values():
            _tell_theme(widget, theme)

    def take_focus(self) -> None:
        if not self._call("take_focus"):
            self.tab(self.tabs.currentIndex()).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def focus_search(self) -> None:
        self._call("focus_search")

    @property
    def can_undo(self) -> bool:
        return self.my_models.can_undo

    def undo(self) -> None:
        self.my_models.undo()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = WIDE_MARGIN if event.size().width() >= WIDE_FROM else NARROW_MARGIN
        self._layout.setContentsMargins(side, 22, side, 16)

    def _call(self, name: str) -> bool:
        """Other tabs are widgets of their own, which need not know of this page."""
        method = getattr(self.tab(self.tabs.currentIndex()), name, None)
        if method is None:
            return False
        method()
        return True


def _tell_theme(widget: QWidget, theme: Theme) -> None:
    set_theme = getattr(widget, "set_theme", None)
    if set_theme is not None:
        set_theme(theme)
