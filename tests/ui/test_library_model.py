"""The table's rows: sorting by every column, search, filters, and what a cell says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from forespeak.models.formats import ModelFormat
from forespeak.models.library import LibraryItem
from forespeak.models.memory import Fit
from forespeak.models.roots import own_root
from forespeak.ui.fit_words import fit_words
from forespeak.ui.library_model import (
    BadgeRole,
    CaptionRole,
    Column,
    LibraryFilter,
    LibraryModel,
    ProblemRole,
    context_words,
)
from ui.fake_library import item
from ui.models_doubles import by_size, some_items


@pytest.fixture
def items(tmp_path: Path) -> list[LibraryItem]:
    return some_items(tmp_path / "models")


@pytest.fixture
def model(items: list[LibraryItem]) -> LibraryModel:
    made = LibraryModel()
    fits = {entry.path: fit_words(by_size(entry), entry.size_bytes) for entry in items if entry.usable}
    made.set_items(items, fits)
    return made


def names(model: LibraryModel) -> list[str]:
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


UP, DOWN = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
BIG, SMALL, CODER, BROKEN = "Big-8B-Q8_0", "Small-1B-Q4_0", "Coder-7B", "Broken-70B"


@pytest.mark.parametrize(
    ("column", "up", "down"),
    [
        (Column.NAME, [BIG, BROKEN, CODER, SMALL], [SMALL, CODER, BROKEN, BIG]),
        (Column.ARCHITECTURE, [BIG, BROKEN, SMALL, CODER], [CODER, BIG, BROKEN, SMALL]),
        # What is not known stands last, whichever way.
        (Column.PARAMETERS, [SMALL, BIG, CODER, BROKEN], [BIG, CODER, SMALL, BROKEN]),
        (Column.QUANT, [SMALL, BROKEN, CODER, BIG], [BIG, BROKEN, CODER, SMALL]),
        (Column.CONTEXT, [BIG, BROKEN, CODER, SMALL], [BIG, BROKEN, CODER, SMALL]),
        (Column.SIZE, [SMALL, CODER, BIG, BROKEN], [BROKEN, BIG, CODER, SMALL]),
        (Column.WHERE, [CODER, BIG, BROKEN, SMALL], [BIG, BROKEN, SMALL, CODER]),
        (Column.FIT, [CODER, SMALL, BIG, BROKEN], [BIG, CODER, SMALL, BROKEN]),
    ],
)
def test_every_column_sorts(model: LibraryModel, column: Column, up: list[str], down: list[str]) -> None:
    model.sort(column, UP)
    assert names(model) == up
    model.sort(column, DOWN)
    assert names(model) == down


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LibraryFilter("coder"), [CODER]),
        (LibraryFilter("LM studio"), [CODER]),
        (LibraryFilter("q8_0 big"), [BIG]),
        (LibraryFilter("llama"), [BIG, BROKEN, SMALL]),
        (LibraryFilter("nothing like it"), []),
        (LibraryFilter(format=ModelFormat.MLX), []),
        (LibraryFilter(partners=frozenset()), []),
    ],
)
def test_search_and_filters(model: LibraryModel, wanted: LibraryFilter, found: list[str]) -> None:
    model.set_filter(wanted)
    assert names(model) == found
    assert len(model.items) == 4


def test_formats_and_partners(model: LibraryModel, items: list[LibraryItem], tmp_path: Path) -> None:
    folder = replace(item("Folder-4bit", own_root(tmp_path / "models")), format=ModelFormat.MLX)
    model.set_items([*items, folder], {})
    model.set_filter(LibraryFilter(format=ModelFormat.MLX))
    assert names(model) == ["Folder-4bit"]
    model.set_filter(LibraryFilter("small", ModelFormat.GGUF, frozenset({items[0].path, items[1].path})))
    assert names(model) == [SMALL]


def test_a_damaged_model_says_so_in_words(model: LibraryModel) -> None:
    row = names(model).index(BROKEN)
    index = model.index(row, Column.NAME)
    assert index.data(CaptionRole) == "Part 2 of 3 is missing."
    assert index.data(ProblemRole) is True
    assert model.index(row, Column.FIT).data(BadgeRole) is None
    assert "Part 2 of 3 is missing." in index.data(Qt.ItemDataRole.AccessibleTextRole)
    assert index.data(Qt.ItemDataRole.ToolTipRole).count("<br>") == 2


def test_screen_readers_hear_what_a_figure_is(model: LibraryModel) -> None:
    row = names(model).index(BIG)
    heard = [model.index(row, column).data(Qt.ItemDataRole.AccessibleTextRole) for column in Column]
    assert heard[Column.SIZE] == "Size: 8.5 GB"
    assert heard[Column.CONTEXT] == "Context: 128k"
    assert heard[Column.FIT] == "Memory: Tight"


def test_what_is_in_use_stands_under_the_name(model: LibraryModel, items: list[LibraryItem]) -> None:
    model.set_uses({items[0].path: "Target now"})
    assert model.index(names(model).index(BIG), 0).data(CaptionRole).startswith("Target now · ")


@pytest.mark.parametrize(
    ("tokens", "words"), [(512, "512"), (2048, "2k"), (131_072, "128k"), (1_048_576, "1M"), (10_485_760, "10M")]
)
def test_context_lengths_as_people_write_them(tokens: int, words: str) -> None:
    assert context_words(tokens) == words


def test_only_rows_that_changed_are_painted_again(model: LibraryModel, items: list[LibraryItem]) -> None:
    rows: list[int] = []
    model.dataChanged.connect(lambda first, last: rows.extend(range(first.row(), last.row() + 1)))
    fits = {entry.path: fit_words(by_size(entry), entry.size_bytes) for entry in items if entry.usable}
    model.set_items(list(items), dict(fits))
    assert rows == [], "the same again"
    fits[items[1].path] = fit_words(Fit.TOO_LARGE, 1)
    model.set_items(items, fits)
    assert rows == [model.row_of(items[1].path)]
    rows.clear()
    model.set_uses({items[0].path: "Target now"})
    assert rows == [model.row_of(items[0].path)]
    rows.clear()
    model.set_items([*items[:3], replace(items[3], size_bytes=5)], fits)
    assert rows == [model.row_of(items[3].path)]
