"""The list of chats: groups, choosing, the context menu."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from forespeak.ui.chat_list import ChatEntry, ChatIdRole, ChatList, group_of

NOW = datetime(2026, 5, 14, 15, 0).astimezone()


def entries(*hours: float) -> list[ChatEntry]:
    return [ChatEntry(n, f"Chat {n}", NOW - timedelta(hours=h)) for n, h in enumerate(hours, start=1)]


@pytest.fixture
def chats(qtbot: QtBot) -> ChatList:
    widget = ChatList()
    qtbot.addWidget(widget)
    widget.resize(240, 500)
    widget.show()
    return widget


def shown(chats: ChatList) -> list[str]:
    return [str(chats.model.index(row).data()) for row in range(chats.model.rowCount())]


def test_groups_follow_the_calendar() -> None:
    assert group_of(NOW - timedelta(hours=14), NOW) == 0
    assert group_of(NOW - timedelta(hours=16), NOW) == 1, "yesterday evening is not today"
    assert group_of(NOW - timedelta(days=6), NOW) == 1
    assert group_of(NOW - timedelta(days=7), NOW) == 2
    assert group_of(NOW + timedelta(days=1), NOW) == 0, "a clock that went back"


def test_chats_stand_under_their_groups(chats: ChatList) -> None:
    chats.set_entries(entries(0, 1, 30, 500), None, NOW)
    assert shown(chats) == ["Today", "Chat 1", "Chat 2", "This week", "Chat 3", "Earlier", "Chat 4"]
    heading = chats.model.index(0)
    assert heading.data(ChatIdRole) is None
    assert not chats.model.flags(heading) & Qt.ItemFlag.ItemIsSelectable


def test_a_click_chooses_and_a_refresh_does_not(chats: ChatList) -> None:
    chosen: list[int] = []
    chats.chatSelected.connect(chosen.append)
    chats.set_entries(entries(0, 1), 1, NOW)
    assert chosen == []
    place = chats.view.visualRect(chats.model.index_of(2)).center()
    QTest.mouseClick(chats.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
    assert chosen == [2]
    chats.set_entries(entries(0, 1), 2, NOW)
    assert chosen == [2]
    assert chats.current() == 2


def test_arrows_skip_the_headings(chats: ChatList) -> None:
    chosen: list[int] = []
    chats.chatSelected.connect(chosen.append)
    chats.set_entries(entries(0, 30), 1, NOW)
    chats.view.setFocus()
    QTest.keyClick(chats.view, Qt.Key.Key_Down)
    assert chosen == [2]


def test_renaming_in_place(chats: ChatList, qtbot: QtBot) -> None:
    named: list[tuple[int, str]] = []
    chats.renameRequested.connect(lambda chat, title: named.append((chat, title)))
    chats.set_entries(entries(0, 1), 2, NOW)
    chats.rename_current()
    editor = chats.view.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, "  New   name ")
    chats.set_entries(entries(0, 1, 2), 2, NOW)
    assert editor.isVisible(), "a refresh leaves the edit alone"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: named == [(2, "New name")])


def test_an_empty_or_unchanged_name_is_no_renaming(chats: ChatList) -> None:
    named: list[int] = []
    chats.renameRequested.connect(lambda chat, _title: named.append(chat))
    chats.set_entries(entries(0), 1, NOW)
    index = chats.model.index_of(1)
    assert not chats.model.setData(index, "  ")
    assert not chats.model.setData(index, "Chat 1")
    assert named == []


def test_delete_and_the_menu_ask_for_the_right_chat(chats: ChatList) -> None:
    deleted: list[int] = []
    chats.deleteRequested.connect(deleted.append)
    chats.set_entries(entries(0, 1), 1, NOW)
    QTest.keyClick(chats.view, Qt.Key.Key_Delete)
    entry = chats.model.entry(chats.model.index_of(2))
    assert entry is not None
    menu = chats.menu_for(entry)
    assert [action.text() for action in menu.actions()] == ["Rename", "Delete"]
    menu.actions()[1].trigger()
    assert deleted == [1, 2]


def test_typing_searches_after_a_moment(chats: ChatList, qtbot: QtBot) -> None:
    with qtbot.waitSignal(chats.searchChanged) as blocker:
        QTest.keyClicks(chats.search, "rain ")
    assert blocker.args == ["rain"]
    chats.set_entries([], None, NOW)
    assert chats.empty.isVisible()
    assert "rain" in chats.empty.text()


def test_strange_titles_are_drawn(chats: ChatList) -> None:
    titles = ["旅行計畫:京都三日 🍁", "\u202eright to left", "x" * 5000, "", "👩‍👩‍👧‍👦" * 20]
    chats.set_entries([ChatEntry(n, title, NOW, busy=n % 2 == 0) for n, title in enumerate(titles)], 0, NOW)
    QApplication.processEvents()
    image = chats.view.grab().toImage()
    colours = {image.pixel(x, y) for x in range(0, image.width(), 7) for y in range(0, image.height(), 7)}
    assert len(colours) > 5
