"""The page about models: those on this computer, those on the Hub, and what is being downloaded."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QTabWidget, QVBoxLayout, QWidget

from forespeak.ui.my_models import MyModels
from forespeak.ui.navigation import PageWidget
from forespeak.ui.theme import Theme

WIDE_MARGIN, NARROW_MARGIN = 40, 14
WIDE_FROM = 720


class ModelsPage(PageWidget):
    """Three tabs. `my_models` is the first; the others are added in the order in which they are to stand."""

    def __init__(self, my_models: MyModels, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelsPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.my_models = my_models
        self._theme: Theme | None = None
        title = QLabel(self.tr("Models"))
        title.setProperty("title", True)
        self.title = title
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.tabBar().setAccessibleName(self.tr("Parts of the Models page"))
        self._layout = QVBoxLayout(self)
        self._layout.setSpacing(8)
        self._layout.addWidget(title)
        self._layout.addWidget(self.tabs, 1)
        # A page gives up file drags where the tab on show takes none.
        self.add_tab(my_models, self.tr("My models"))

    def add_tab(self, widget: QWidget, title: str) -> int:
        """Returns its number. A `set_theme` of the widget is called now and with each change."""
        number = self.tabs.addTab(widget, title)
        if self._theme is not None:
            _tell_theme(widget, self._theme)
        return number

    def show_tab(self, widget: QWidget) -> None:
        self.tabs.setCurrentWidget(widget)

    def set_tab_title(self, widget: QWidget, title: str) -> None:
        """With a count of what is going on in it, perhaps."""
        self.tabs.setTabText(self.tabs.indexOf(widget), title)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for number in range(self.tabs.count()):
            _tell_theme(self.tabs.widget(number), theme)

    def take_focus(self) -> None:
        self._call("take_focus") or self.tabs.currentWidget().setFocus(Qt.FocusReason.ShortcutFocusReason)

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
        method = getattr(self.tabs.currentWidget(), name, None)
        if method is None:
            return False
        method()
        return True


def _tell_theme(widget: QWidget | None, theme: Theme) -> None:
    set_theme = getattr(widget, "set_theme", None)
    if set_theme is not None:
        set_theme(theme)
