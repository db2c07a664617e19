"""The list of comparisons: chosen, renamed, deleted, searched, two at a time, by mouse and keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from forespeak.ui.compare_history import CompareHistory
from forespeak.ui.compare_two import CompareTwo
from forespeak.ui.compare_values import HistoryRow, SpeedUp, SpeedUps
from forespeak.ui.theme import LIGHT
from ui.compare_doubles import values

ROWS = (
    HistoryRow("c", "Third", "today 14:05", "1.36× as fast"),
    HistoryRow("b", "Second", "yesterday", "no difference"),
    HistoryRow("a", "First", "3 May, 10:00", "ended after 2 of 9 runs"),
)


@pytest.fixture
def history(qtbot: QtBot) -> CompareHistory:
    shown = CompareHistory()
    qtbot.addWidget(shown)
    shown.set_theme(LIGHT)
    shown.resize(700, 500)
    shown.show_rows(ROWS, "")
    shown.show()
    qtbot.waitExposed(shown)
    shown.take_focus()
    return shown


def place(history: CompareHistory, row: int) -> QPoint:
    return history.list.visualItemRect(history.list.item(row)).center()


def click(history: CompareHistory, row: int, key: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(history.list.viewport(), Qt.MouseButton.LeftButton, key, place(history, row))


def test_an_empty_list_says_what_comes_here(history: CompareHistory, qtbot: QtBot) -> None:
    history.show_rows((), "")
    assert "No comparisons yet" in history.empty.text()
    assert not history.search.isVisible()
    assert not history.delete_button.isVisible()
    with qtbot.waitSignal(history.newRequested):
        QTest.mouseClick(history.new_button, Qt.MouseButton.LeftButton)


def test_one_is_opened_by_the_button_the_key_and_a_double_click(history: CompareHistory, qtbot: QtBot) -> None:
    click(history, 1)
    with qtbot.waitSignal(history.openRequested) as opened:
        QTest.mouseClick(history.open_button, Qt.MouseButton.LeftButton)
    assert opened.args == ["b"]
    QTest.keyClick(history.list, Qt.Key.Key_Down)
    with qtbot.waitSignal(history.openRequested) as opened:
        QTest.keyClick(history.list, Qt.Key.Key_Return)
    assert opened.args == ["a"]
    click(history, 0)
    with qtbot.waitSignal(history.openRequested) as opened:
        QTest.mouseDClick(history.list.viewport(), Qt.MouseButton.LeftButton, pos=place(history, 0))
    assert opened.args == ["c"]


def test_renamed_in_place(history: CompareHistory, qtbot: QtBot) -> None:
    click(history, 1)
    QTest.keyClick(history.list, Qt.Key.Key_F2)
    editor = QApplication.focusWidget()
    assert isinstance(editor, QLineEdit)
    assert editor.text() == "Second"
    QTest.keyClicks(editor, "Better  name ")
    with qtbot.waitSignal(history.renameRequested) as renamed:
        QTest.keyClick(editor, Qt.Key.Key_Return)
    assert renamed.args == ["b", "Better name"]


def test_the_same_name_and_none_change_nothing(history: CompareHistory, qtbot: QtBot) -> None:
    click(history, 1)
    for words in ("Second", "  "):
        history.rename_button.click()
        editor = QApplication.focusWidget()
        assert isinstance(editor, QLineEdit)
        editor.setText(words)
        with qtbot.assertNotEmitted(history.renameRequested, wait=30):
            QTest.keyClick(editor, Qt.Key.Key_Return)


def test_several_are_deleted_together(history: CompareHistory, qtbot: QtBot) -> None:
    click(history, 0)
    click(history, 2, Qt.KeyboardModifier.ControlModifier)
    assert not history.open_button.isEnabled()
    with qtbot.waitSignal(history.deleteRequested) as deleted:
        QTest.keyClick(history.list, Qt.Key.Key_Delete)
    assert deleted.args == [("c", "a")]


def test_two_are_compared_the_older_one_first(history: CompareHistory, qtbot: QtBot) -> None:
    click(history, 0)
    assert not history.two_button.isEnabled()
    QTest.keyClick(history.list, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert history.two_button.isEnabled()
    with qtbot.waitSignal(history.twoRequested) as two:
        QTest.mouseClick(history.two_button, Qt.MouseButton.LeftButton)
    assert two.args == ["b", "c"]


def test_a_search_waits_for_the_typing(history: CompareHistory, qtbot: QtBot) -> None:
    history.focus_search()
    with qtbot.waitSignal(history.searchChanged) as searched:
        QTest.keyClicks(history.search, "math ")
    assert searched.args == ["math"]
    history.show_rows((), "math")
    assert history.empty.text() == "Nothing found for “math”."
    assert history.search.isVisible()


def test_what_is_chosen_stays_chosen(history: CompareHistory) -> None:
    click(history, 2)
    history.show_rows((HistoryRow("d", "Newest", "now", ""), *ROWS), "")
    assert history.chosen == ("a",)


def test_a_screen_reader_hears_all_of_a_row(history: CompareHistory) -> None:
    heard = history.list.item(0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert heard == "Third, today 14:05 · 1.36× as fast"


def test_two_beside_each_other(qtbot: QtBot) -> None:
    first = values("a", "Before")
    second = values(
        "b", "After", ratio=1.5, speed_ups=(SpeedUps("x", (SpeedUp("coding", 2.0), SpeedUp("poems", 0.9, 0.8, 1.0))),)
    )
    two = CompareTwo()
    qtbot.addWidget(two)
    two.set_theme(LIGHT)
    two.show_two(first, second)
    # The newer one has no interval over all kinds of work.
    words = "1.36× then, 1.50× now: 1.10× the speed-up. That may be chance."
    assert two.words.text() == f"{words} These are different lanes."
    cells = {
        two.table.item(row, 0).text(): [two.table.item(row, column).text() for column in (1, 2, 3)]  # type: ignore[union-attr]
        for row in range(two.table.rowCount())
    }
    assert cells["coding"] == ["1.71×  (1.62 – 1.80)", "2.00×", "1.17×"]
    assert cells["poems"] == ["–", "0.90×  (0.80 – 1.00)", "–"]
    one, other = two._rows
    assert one.scale() == other.scale()
    with qtbot.waitSignal(two.backRequested):
        two.back_button.click()


@pytest.mark.parametrize(("low", "chance"), [(1.1, True), (1.7, False)])
def test_only_intervals_without_anything_in_common_differ(qtbot: QtBot, low: float, chance: bool) -> None:
    two = CompareTwo()
    qtbot.addWidget(two)
    two.show_two(
        values(speed_ups=(SpeedUps("x", (SpeedUp("coding", 1.4, 1.3, 1.6),)),)),
        values(speed_ups=(SpeedUps("x", (SpeedUp("coding", 1.9, low, 2.1),)),), ratio=1.9),
    )
    assert two.words.text().endswith("That may be chance.") is chance


def test_the_same_lane_is_compared_even_where_another_one_is_the_fastest(qtbot: QtBot) -> None:
    two = CompareTwo()
    qtbot.addWidget(two)
    lookup, small = (SpeedUps(name, (SpeedUp("coding", 1.4, 1.3, 1.6),)) for name in ("Lookup", "Small"))
    slower = SpeedUps("Small", (SpeedUp("coding", 0.7, 0.6, 0.8),))
    two.show_two(values(speed_ups=(small, lookup), ratio=1.4), values(speed_ups=(lookup, slower), ratio=1.4))
    assert two.words.text() == "1.40× then, 0.70× now: 0.50× the speed-up."
    assert [rows.rows for rows in two._rows] == [small.rows, slower.rows]
    two.show_two(values(speed_ups=(lookup,), ratio=1.4), values(speed_ups=(small, lookup), ratio=2.0))
    assert two.words.text().startswith("1.40× then, 1.40× now")


def test_one_of_two_without_a_ratio(qtbot: QtBot) -> None:
    two = CompareTwo()
    qtbot.addWidget(two)
    two.show_two(values(ratio=None, speed_ups=()), values())
    assert "nothing to compare" in two.words.text()
