"""Pages of the window: keys, the list at the side, what survives a restart, and a reply that goes on elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QVBoxLayout
from pytestqt.qtbot import QtBot

from forespeak.ui.main_window import MainWindow
from forespeak.ui.navigation import CHAT_PAGE, Page, PageWidget
from forespeak.ui.theme import DARK, LIGHT, Theme
from ui.conftest import TEXT, AppMaker
from ui.scripted_engine import Script, scripted_steps
from ui.test_main_window import enter, file_drag


class NotesPage(PageWidget):
    made = 0

    def __init__(self) -> None:
        super().__init__()
        NotesPage.made += 1
        self.themes: list[Theme] = []
        self.search = QLineEdit()
        self.search.setAccessibleName("Search notes")
        QVBoxLayout(self).addWidget(self.search)

    def set_theme(self, theme: Theme) -> None:
        self.themes.append(theme)

    def focus_search(self) -> None:
        self.search.setFocus()


@pytest.fixture
def window(qtbot: QtBot) -> MainWindow:
    NotesPage.made = 0
    made = MainWindow()
    qtbot.addWidget(made)
    made.resize(1280, 820)
    made.set_theme(LIGHT)
    made.add_page(Page("notes", "Notes", "edit", NotesPage))
    made.show()
    return made


def test_a_page_is_made_when_it_is_first_shown_and_kept(window: MainWindow) -> None:
    assert NotesPage.made == 0
    window.navigation.button("notes").click()
    assert window.page == "notes"
    page = window.pages.made("notes")
    assert isinstance(page, NotesPage)
    assert page.isVisible()
    assert page.themes == [LIGHT]
    window.set_theme(DARK)
    assert page.themes == [LIGHT, DARK]
    window.navigation.button(CHAT_PAGE).click()
    window.navigation.button("notes").click()
    assert NotesPage.made == 1


def test_the_speculation_panel_belongs_to_the_chat(window: MainWindow) -> None:
    assert window.panel_side.isVisible()
    window.show_page("notes")
    assert not window.panel_side.isVisible()
    assert not window.top.panel_button.isVisible()
    window.show_page(CHAT_PAGE)
    assert window.panel_side.isVisible()
    assert window.top.panel_button.isVisible()


def test_the_arrow_keys_walk_through_the_pages(window: MainWindow) -> None:
    window.navigation.button(CHAT_PAGE).setFocus()
    QTest.keyClick(window.navigation.button(CHAT_PAGE), Qt.Key.Key_Down)
    assert window.page == "notes"
    assert window.navigation.button("notes").isChecked()
    assert not window.navigation.button(CHAT_PAGE).isChecked()
    # The keyboard stays there, on its way to another one.
    assert window.navigation.button("notes").hasFocus()
    QTest.keyClick(window.navigation.button("notes"), Qt.Key.Key_Up)
    assert window.page == CHAT_PAGE


def test_a_click_goes_into_the_page(window: MainWindow) -> None:
    window.navigation.button("notes").click()
    assert window.pages.made("notes").hasFocus()  # type: ignore[union-attr]
    window.navigation.button(CHAT_PAGE).click()
    assert window.composer.edit.hasFocus()


def test_the_pages_have_names_for_screen_readers(window: MainWindow) -> None:
    assert window.navigation.accessibleName() == "Pages"
    for name in window.navigation.names:
        button = window.navigation.button(name)
        assert button.text()
        assert button.accessibleDescription()


def test_an_unknown_page_is_the_chat(window: MainWindow) -> None:
    window.show_page("notes")
    window.show_page("of another version")
    assert window.page == CHAT_PAGE


def test_in_a_narrow_window_the_side_bar_gives_way_to_the_page_chosen_in_it(window: MainWindow) -> None:
    window.resize(600, 700)
    window.toggle_sidebar()
    assert window.sidebar.isVisible()
    window.navigation.button("notes").click()
    assert not window.sidebar.isVisible()
    QApplication.processEvents()
    page = window.pages.made("notes")
    assert page is not None
    assert page.width() == 600


def test_the_smallest_window_shows_the_whole_page(window: MainWindow) -> None:
    window.resize(window.minimumSize())
    window.show_page("notes")
    QApplication.processEvents()
    page = window.pages.made("notes")
    assert isinstance(page, NotesPage)
    right = page.search.mapTo(window, QPoint(page.search.width(), 0)).x()
    assert right <= window.width() == window.minimumWidth()


def test_files_are_the_chats_own_only_on_its_page(window: MainWindow, tmp_path: Path) -> None:
    window.show_page("notes")
    assert not enter(window, file_drag(tmp_path / "model.gguf")).isAccepted()
    assert not window.veil.isVisible()


def test_search_belongs_to_the_page(window: MainWindow) -> None:
    window.show_page("notes")
    window.focus_search()
    page = window.pages.made("notes")
    assert isinstance(page, NotesPage)
    assert page.search.hasFocus()
    window.show_page(CHAT_PAGE)
    window.focus_search()
    assert window.chats.search.hasFocus()


def test_a_reply_goes_on_while_another_page_is_shown(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(scripts=[Script(scripted_steps(TEXT), rate=60.0)])
    app.window.add_page(Page("notes", "Notes", "edit", NotesPage))
    app.session.chats.send("Go on.")
    qtbot.waitUntil(lambda: bool(app.session.chats.text_of(app.session.chats.last_reply() or 0)))
    app.window.show_page("notes")
    assert app.session.chats.busy
    before = app.session.chats.text_of(app.session.chats.last_reply() or 0)
    qtbot.waitUntil(lambda: not app.session.chats.busy, timeout=10_000)
    app.window.show_page(CHAT_PAGE)
    reply = app.session.chats.text_of(app.session.chats.last_reply() or 0)
    assert len(reply) > len(before)
    assert reply == TEXT


def test_a_new_chat_and_a_chosen_chat_show_the_chat(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    app.window.add_page(Page("notes", "Notes", "edit", NotesPage))
    app.window.show_page("notes")
    app.window.new_chat_button.click()
    assert app.window.page == CHAT_PAGE
    app.window.show_page("notes")
    app.commands["new"].trigger()
    assert app.window.page == CHAT_PAGE
    app.session.chats.send("Hello there.")
    qtbot.waitUntil(lambda: not app.session.chats.busy and bool(app.session.chats.items))
    qtbot.waitUntil(lambda: app.window.chats.model.rowCount() > 0)
    app.session.chats.new_chat()
    app.window.show_page("notes")
    row = next(
        row
        for row in range(app.window.chats.model.rowCount())
        if app.window.chats.model.entry(app.window.chats.model.index(row)) is not None
    )
    app.window.chats.view.setCurrentIndex(app.window.chats.model.index(row))
    assert app.window.page == CHAT_PAGE
    # It is the open one now, and still leads back.
    app.window.show_page("notes")
    spot = app.window.chats.view.visualRect(app.window.chats.model.index(row)).center()
    QTest.mouseClick(app.window.chats.view.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert app.window.page == CHAT_PAGE
