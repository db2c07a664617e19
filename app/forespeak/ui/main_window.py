"""The window: its parts, where they stand, and what it folds away when it is narrow. It decides nothing about chats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.chat_list import ChatList
from forespeak.ui.composer import Composer
from forespeak.ui.conversation import ConversationView, column_of
from forespeak.ui.drop_veil import DropVeil, accept_as_copy, dropped_file
from forespeak.ui.icons import icon
from forespeak.ui.model_picker import Choice
from forespeak.ui.navigation import CHAT_PAGE, Navigation, Page, PageStack, PageWidget
from forespeak.ui.notices import Banner, ModelCard, Toast
from forespeak.ui.speculation_panel import SpeculationPanel
from forespeak.ui.theme import Theme
from forespeak.ui.top_bar import TopBar

SIDEBAR_WIDTH = 248
PANEL_WIDTH = 316
PANEL_FITS = 1000
SIDEBAR_FITS = 760
"""Window widths below which these fold away by themselves, in pixels."""
SMALLEST = QSize(480, 400)


class _Folding:
    """Whether a side part is shown: as the user wants while it fits; where it does not fit, only when asked for."""

    def __init__(self, wanted: bool, fits_from: int) -> None:
        self.wanted = wanted
        self._fits_from = fits_from
        self._forced = False
        self._fits = True

    def set_width(self, width: int) -> None:
        fits = width >= self._fits_from
        if fits != self._fits:
            self._fits, self._forced = fits, False

    @property
    def shown(self) -> bool:
        return self.wanted if self._fits else self._forced

    def toggle(self) -> None:
        if self._fits:
            self.wanted = not self.wanted
        else:
            self._forced = not self._forced

    def give_way(self) -> None:
        """It was opened where it does not fit, and has done its service."""
        self._forced = False


class _Choices(Protocol):
    def __call__(self) -> Sequence[Choice]: ...


class MainWindow(QMainWindow):
    """Made and shown before anything is read from disk; `ready` to be filled by a session."""

    resized = Signal()
    closing = Signal()
    newChatRequested = Signal()
    settingsRequested = Signal()
    pageShown = Signal(str)
    undoChanged = Signal()
    """Whether the page that is shown has something to take back"""

    def __init__(self, sidebar_open: bool = True, panel_open: bool = True) -> None:
        super().__init__()
        self.setWindowTitle("Forespeak")
        self.setMinimumSize(SMALLEST)
        self._choices: _Choices = tuple
        self._sidebar_folding = _Folding(sidebar_open, SIDEBAR_FITS)
        self._panel_folding = _Folding(panel_open, PANEL_FITS)
        self._theme: Theme | None = None

        self.top = TopBar(self._current_choices)
        self.chats = ChatList()
        self.conversation = ConversationView()
        self.composer = Composer()
        self.banner = Banner()
        self.card = ModelCard()
        self.panel = SpeculationPanel()

        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.top)
        body = QHBoxLayout()
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        self.navigation = Navigation()
        self.navigation.add(CHAT_PAGE, self.tr("Chat"), "chat")
        self.navigation.set_current(CHAT_PAGE)
        self.sidebar = self._make_sidebar()
        self.panel_side = self._make_panel()
        self.pages = PageStack(CHAT_PAGE, self._make_centre())
        body.addWidget(self.sidebar)
        body.addWidget(self.pages, 1)
        body.addWidget(self.panel_side)
        column.addLayout(body, 1)
        self.setCentralWidget(page)
        self.veil = DropVeil(page)
        self.setAcceptDrops(True)

        self.top.sidebar_button.setAccessibleName(self.tr("Side bar"))
        self.top.sidebar_button.setToolTip(self.tr("Show or hide the side bar"))
        self.top.sidebarToggled.connect(self.toggle_sidebar)
        self.top.panelToggled.connect(self.toggle_panel)
        self.navigation.chosen.connect(self.show_page)
        self.navigation.passed.connect(self.pages.show_page)
        self.pages.shown.connect(self._page_shown)
        self.newChatRequested.connect(self._to_chat)
        self.chats.chatSelected.connect(self._to_chat)
        # Also the one that is open already.
        self.chats.view.clicked.connect(self._to_chat)
        self.chats.view.activated.connect(self._to_chat)
        self._fold()

    # -- parts

    def _make_sidebar(self) -> QFrame:
        sidebar = QFrame()
        sidebar.setObjectName("sidebar")
        sidebar.setFixedWidth(SIDEBAR_WIDTH)
        self.new_chat_button = QPushButton(self.tr("New chat"))
        self.new_chat_button.setObjectName("navButton")
        self.new_chat_button.clicked.connect(self.newChatRequested)
        self.settings_button = QPushButton(self.tr("Settings"))
        self.settings_button.setObjectName("navButton")
        self.settings_button.clicked.connect(self.settingsRequested)
        layout = QVBoxLayout(sidebar)
        layout.setContentsMargins(10, 12, 10, 10)
        layout.setSpacing(8)
        layout.addWidget(self.navigation)
        layout.addSpacing(6)
        layout.addWidget(self.new_chat_button)
        layout.addWidget(self.chats, 1)
        layout.addWidget(self.settings_button)
        return sidebar

    def _make_panel(self) -> QFrame:
        side = QFrame()
        side.setObjectName("panelSide")
        side.setFixedWidth(PANEL_WIDTH)
        layout = QVBoxLayout(side)
        layout.setContentsMargins(1, 0, 0, 0)
        layout.addWidget(self.panel)
        return side

    def _make_centre(self) -> QFrame:
        centre = QFrame()
        centre.setObjectName("centre")
        self.toast = Toast(self.conversation)
        self.below = QWidget()
        self._below_layout = QVBoxLayout(self.below)
        self._below_layout.setSpacing(12)
        self._below_layout.addWidget(self.card)
        self._below_layout.addWidget(self.composer)
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.banner)
        layout.addWidget(self.conversation, 1)
        layout.addWidget(self.below)
        self.below.installEventFilter(self)
        return centre

    # -- what it is told

    def _current_choices(self) -> Sequence[Choice]:
        return self._choices()

    def set_choices(self, choices: _Choices) -> None:
        """What the pickers' menus offer, asked each time one opens."""
        self._choices = choices

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.top.set_theme(theme)
        self.navigation.set_theme(theme)
        self.pages.set_theme(theme)
        self.new_chat_button.setIcon(icon("plus", theme.muted))
        self.settings_button.setIcon(icon("settings", theme.muted))
        self.chats.set_theme(theme)
        self.conversation.set_theme(theme)
        self.panel.set_theme(theme)

    def set_menu(self, menus: Sequence[QMenu], native: bool) -> None:
        """`native`: the system shows a menu bar of its own, at the top of the screen."""
        for menu in menus:
            if native:
                self.menuBar().addMenu(menu)
        if native:
            self.top.more_button.hide()
            return
        all_of_them = QMenu(self)
        for menu in menus:
            all_of_them.addMenu(menu)
        self.top.set_menu(all_of_them)

    # -- pages

    def add_page(self, page: Page) -> None:
        self.pages.add(page)
        self.navigation.add(page.name, page.title, page.icon)
        if self._theme is not None:
            self.navigation.set_theme(self._theme)

    @Slot(str)
    def show_page(self, name: str) -> None:
        """An unknown name, of another version, shows the chat."""
        if not self.pages.knows(name):
            name = CHAT_PAGE
        self.pages.show_page(name)
        self._sidebar_folding.give_way()
        self._fold()
        page = self.pages.made(name)
        if isinstance(page, PageWidget):
            page.take_focus()
        else:
            self.composer.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @property
    def page(self) -> str:
        return self.pages.current

    @property
    def can_undo(self) -> bool:
        """What `undo` would do depends on the page that is shown."""
        page = self.pages.made(self.page)
        return page.can_undo if isinstance(page, PageWidget) else self.toast.can_undo

    @Slot()
    def undo(self) -> None:
        page = self.pages.made(self.page)
        if isinstance(page, PageWidget):
            page.undo()
        else:
            self.toast.undo()

    @Slot(str)
    def _page_shown(self, name: str) -> None:
        self.navigation.set_current(name)
        self.top.panel_button.setVisible(name == CHAT_PAGE)
        self._fold()
        self.pageShown.emit(name)

    @Slot()
    def _to_chat(self, *_: object) -> None:
        if self.page != CHAT_PAGE:
            self.show_page(CHAT_PAGE)

    # -- folding

    @property
    def sidebar_open(self) -> bool:
        """As the user wants it, whether or not there is room now."""
        return self._sidebar_folding.wanted

    @property
    def panel_open(self) -> bool:
        return self._panel_folding.wanted

    @Slot()
    def toggle_sidebar(self) -> None:
        self._sidebar_folding.toggle()
        self._fold()

    @Slot()
    def toggle_panel(self) -> None:
        self._panel_folding.toggle()
        self._fold()

    @Slot()
    def focus_search(self) -> None:
        page = self.pages.made(self.page)
        if isinstance(page, PageWidget):
            page.focus_search()
            return
        if not self._sidebar_folding.shown:
            self.toggle_sidebar()
        self.chats.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.chats.search.selectAll()

    def _fold(self) -> None:
        width = self.width()
        for folding, part in ((self._sidebar_folding, self.sidebar), (self._panel_folding, self.panel_side)):
            folding.set_width(width)
            # The panel tells of the chat, and of nothing on other pages.
            shown = folding.shown and (part is self.sidebar or self.page == CHAT_PAGE)
            if part.isVisibleTo(self) != shown:
                part.setVisible(shown)
        self.top.set_window_width(width, SIDEBAR_WIDTH if self._sidebar_folding.shown else 0)

    # -- events

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.below and event.type() == QEvent.Type.Resize:
            # What is written stands below what is read.
            left, width = column_of(self.below.width())
            self._below_layout.setContentsMargins(left, 8, self.below.width() - left - width, 20)
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()
        if self.veil.isVisible():
            self.veil.cover()
        self.resized.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        super().closeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        # Other pages take files themselves, for what they do with them.
        if self.page == CHAT_PAGE and dropped_file(event.mimeData()) is not None:
            accept_as_copy(event)
            self.veil.cover()
