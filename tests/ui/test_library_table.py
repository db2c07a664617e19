"""The table of models: keys, the row that stays chosen, and fewer columns where there is less room."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.models.library import LibraryItem
from forespeak.models.roots import own_root
from forespeak.ui.library_model import ARROW_ROOM, Column, LibraryFilter, LibraryModel
from forespeak.ui.library_table import NARROWEST_NAME, PADDING, WIDEST_NAME, LibraryTable
from forespeak.ui.theme import LIGHT
from ui.fake_library import item
from ui.models_doubles import some_items


@pytest.fixture
def items(tmp_path: Path) -> list[LibraryItem]:
    return some_items(tmp_path / "models")


@pytest.fixture
def table(qtbot: QtBot, items: list[LibraryItem]) -> LibraryTable:
    model = LibraryModel()
    made = LibraryTable(model)
    model.setParent(made)
    qtbot.addWidget(made)
    model.set_items(items, {})
    made.resize(1200, 500)
    made.show()
    return made


def library(table: LibraryTable) -> LibraryModel:
    model = table.model()
    assert isinstance(model, LibraryModel)
    return model


def test_the_arrow_keys_enter_and_delete(table: LibraryTable) -> None:
    opened: list[LibraryItem] = []
    removals: list[bool] = []
    table.opened.connect(opened.append)
    table.removeRequested.connect(lambda: removals.append(True))
    table.setFocus()
    assert table.current is not None, "somebody who comes by the keyboard sees where they are"
    assert table.current.name == "Big-8B-Q8_0"
    QTest.keyClick(table, Qt.Key.Key_Down)
    QTest.keyClick(table, Qt.Key.Key_Down)
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert [entry.name for entry in opened] == ["Coder-7B"]
    QTest.keyClick(table, Qt.Key.Key_End)
    assert table.current.name == "Small-1B-Q4_0"
    QTest.keyClick(table, Qt.Key.Key_Home)
    assert table.current.name == "Big-8B-Q8_0"
    QTest.keyClick(table, Qt.Key.Key_Delete)
    assert removals == [True]


def test_tab_leaves_the_table(table: LibraryTable) -> None:
    assert not table.tabKeyNavigation()


def test_the_chosen_model_stays_chosen_while_others_come_and_go(
    table: LibraryTable, items: list[LibraryItem], tmp_path: Path
) -> None:
    chosen: list[LibraryItem | None] = []
    table.choose(items[1].path)
    table.chosen.connect(chosen.append)
    model = library(table)
    new = [item(f"A-{number}", own_root(tmp_path / "models")) for number in range(40)]
    model.set_items([*new, *items], {})
    assert table.current == items[1]
    model.set_items([*new[:3], items[1]], {})
    assert table.current == items[1]
    assert all(entry == items[1] for entry in chosen)
    model.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert table.current == items[1]
    model.set_filter(LibraryFilter("a-1"))
    assert chosen[-1] is None
    assert not table.currentIndex().isValid()


def test_after_a_removal_the_next_model_is_chosen(table: LibraryTable, items: list[LibraryItem]) -> None:
    def without(*names: str) -> list[LibraryItem]:
        return [entry for entry in items if entry.name not in names]

    def chosen() -> str | None:
        return None if table.current is None else table.current.name

    model = library(table)
    table.selectRow(1)
    assert chosen() == "Broken-70B"
    model.set_items(without("Broken-70B"), {})
    assert chosen() == "Coder-7B"
    table.selectRow(2)
    assert chosen() == "Small-1B-Q4_0"
    model.set_items(without("Broken-70B", "Small-1B-Q4_0"), {})
    assert chosen() == "Coder-7B", "the last one has a neighbour above"
    model.set_filter(LibraryFilter("Big"))
    assert chosen() is None, "it is only out of sight"
    model.set_items([], {})
    assert chosen() is None


def test_the_mouse_marks_a_whole_row(qtbot: QtBot, table: LibraryTable) -> None:
    def look(column: Column) -> str:
        place = table.visualRect(library(table).index(2, column))
        return table.viewport().grab().toImage().pixelColor(place.left() + 3, place.top() + 3).name()

    plain = look(Column.NAME)
    over = library(table).index(2, Column.SIZE)
    table.entered.emit(over)
    assert look(Column.NAME) == look(Column.SIZE) == LIGHT.side.lower() != plain
    table.viewportEntered.emit()
    assert look(Column.NAME) == look(Column.SIZE) == plain


def test_the_arrow_of_the_order_lies_over_no_title(table: LibraryTable) -> None:
    header = table.horizontalHeader()
    table.resize(1300, 500)
    plain = {column: str(library(table).headerData(column, Qt.Orientation.Horizontal)) for column in Column}
    for column in (Column.PARAMETERS, Column.CONTEXT, Column.SIZE):
        table.sortByColumn(column, Qt.SortOrder.AscendingOrder)
        words = str(library(table).headerData(column, Qt.Orientation.Horizontal))
        assert words == plain[column] + ARROW_ROOM
        assert header.fontMetrics().horizontalAdvance(words) + 2 * PADDING <= header.sectionSize(column)
    assert str(library(table).headerData(Column.CONTEXT, Qt.Orientation.Horizontal)) == plain[Column.CONTEXT]


def test_the_place_in_a_long_list_is_kept(table: LibraryTable, items: list[LibraryItem], tmp_path: Path) -> None:
    many = [item(f"M-{number:03}", own_root(tmp_path / "models")) for number in range(200)]
    model = library(table)
    model.set_items(many, {})
    table.choose(many[120].path)
    place = table.verticalScrollBar().value()
    assert place > 0
    model.set_items(many[:-1], {})
    assert table.verticalScrollBar().value() == place


def test_a_narrow_table_keeps_name_and_size(table: LibraryTable) -> None:
    shown = {}
    for width in (1300, 810, 560, 400):
        table.resize(width, 500)
        shown[width] = [column for column in Column if not table.isColumnHidden(column)]
        assert table.columnWidth(Column.NAME) >= min(NARROWEST_NAME, width - 120)
    assert shown[1300] == list(Column)
    assert shown[810] == [column for column in Column if column not in {Column.ARCHITECTURE, Column.CONTEXT}]
    assert shown[400] == [Column.NAME, Column.SIZE]
    assert len(shown[560]) < len(shown[810])


def test_the_menu_key_asks_at_the_row(table: LibraryTable) -> None:
    asked: list[QPoint] = []
    table.menuRequested.connect(asked.append)
    table.setCurrentIndex(QModelIndex())
    table.customContextMenuRequested.emit(QPoint(5, 5))
    assert asked == [], "no model is chosen"
    table.selectRow(2)
    table.customContextMenuRequested.emit(QPoint(2, 499))
    inside = table.viewport().mapFromGlobal(asked[0])
    assert table.rowAt(inside.y()) == 2


def test_a_long_name_takes_the_room_of_what_is_needed_least(
    qtbot: QtBot, table: LibraryTable, items: list[LibraryItem]
) -> None:
    table.resize(810, 500)
    assert not table.isColumnHidden(Column.WHERE)
    long = item("Qwen2.5-Coder-32B-Instruct-Q4_K_M-and-more", own_root(items[0].root.path))
    library(table).set_items([*items, long], {})
    assert table.isColumnHidden(Column.WHERE)
    assert table.columnWidth(Column.NAME) >= WIDEST_NAME
    # There is no room for a long name here, which does not cost more than a short one would.
    table.resize(560, 500)
    assert not table.isColumnHidden(Column.QUANT)
