"""The window's pages: their list at the top of the side bar, and the pages themselves, made when first shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QButtonGroup, QPushButton, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from forespeak.ui.icons import icon
from forespeak.ui.theme import Theme

CHAT_PAGE = "chat"


class PageWidget(QWidget):
    """What a page may be told by the window. All of it is optional."""

    def set_theme(self, theme: Theme) -> None:
        """Before the page is first shown, and with each change."""

    def take_focus(self) -> None:
        """The user came here: put the keyboard where it is most useful."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def focus_search(self) -> None:
        """The key that searches was pressed."""

    @property
    def can_undo(self) -> bool:
        """Whether `undo` would take something back."""
        return False

    def undo(self) -> None:
        """The key that takes the last thing back was pressed."""


@dataclass(frozen=True, slots=True)
class Page:
    """`name` is what preferences and keys call it; `icon` one of resources/icons; `make` is called at most once."""

    name: str
    title: str
    icon: str
    make: Callable[[], PageWidget]


class Navigation(QWidget):
    """One button for each page, the shown one checked. The arrow keys walk through them."""

    chosen = Signal(str)
    passed = Signal(str)
    """By an arrow key, which may go on to the next: the keyboard stays here."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Pages"))
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._group.idClicked.connect(self._clicked)
        self._entries: list[tuple[str, str, QPushButton]] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(2)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._entries)

    def add(self, name: str, title: str, icon_name: str) -> None:
        button = QPushButton(title)
        button.setObjectName("navButton")
        button.setCheckable(True)
        button.setAccessibleDescription(self.tr("Page {number}").format(number=len(self._entries) + 1))
        button.installEventFilter(self)
        self._group.addButton(button, len(self._entries))
        self._entries.append((name, icon_name, button))
        self._layout.addWidget(button)

    def button(self, name: str) -> QPushButton:
        """Raises KeyError."""
        return {known: button for known, _, button in self._entries}[name]

    def set_current(self, name: str) -> None:
        self.button(name).setChecked(True)

    def set_theme(self, theme: Theme) -> None:
        for _, icon_name, button in self._entries:
            button.setIcon(icon(icon_name, theme.muted))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
            if step is not None:
                at = next(number for number, entry in enumerate(self._entries) if entry[2] is watched) + step
                if 0 <= at < len(self._entries):
                    name, _, button = self._entries[at]
                    button.setFocus(Qt.FocusReason.TabFocusReason)
                    button.setChecked(True)
                    self.passed.emit(name)
                return True
        return super().eventFilter(watched, event)

    @Slot(int)
    def _clicked(self, number: int) -> None:
        self.chosen.emit(self._entries[number][0])


class PageStack(QStackedWidget):
    """The pages, one of them shown. The first one is there from the start; others are made when first shown."""

    shown = Signal(str)

    def __init__(self, first: str, widget: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pages: dict[str, Page] = {}
        self._made: dict[str, QWidget] = {first: widget}
        self._theme: Theme | None = None
        self._current = first
        self.addWidget(widget)

    @property
    def current(self) -> str:
        return self._current

    def add(self, page: Page) -> None:
        self._pages[page.name] = page

    def knows(self, name: str) -> bool:
        return name in self._made or name in self._pages

    def made(self, name: str) -> QWidget | None:
        """The page, if it was shown before."""
        return self._made.get(name)

    def show_page(self, name: str) -> None:
        """Raises KeyError."""
        widget = self._made.get(name)
        if widget is None:
            page = self._pages[name].make()
            if self._theme is not None:
                page.set_theme(self._theme)
            self._made[name] = widget = page
            self.addWidget(page)
        if name != self._current:
            self._current = name
            self.setCurrentWidget(widget)
            self.shown.emit(name)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for widget in self._made.values():
            if isinstance(widget, PageWidget):
                widget.set_theme(theme)
