"""Logit bias by hand: numbers and texts become tokens, and what cannot is told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.ui.background import Worker
from forespeak.ui.bias_table import Biases, BiasTable
from models.gguf_writer import ModelFile


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker("files")
    yield made
    made.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return ModelFile(["a", "Ġtea", "tea", "Ċ", "<0x61>"], types=[1, 1, 1, 1, 6]).write(tmp_path / "model.gguf")


@pytest.fixture
def table(qtbot: QtBot, worker: Worker, target: Path) -> BiasTable:
    made = BiasTable(worker)
    qtbot.addWidget(made)
    made.show_biases((), target)
    made.resize(500, 300)
    made.show()
    return made


def enter(table: BiasTable, text: str) -> None:
    QTest.mouseClick(table.add, Qt.MouseButton.LeftButton)
    QTest.keyClicks(table.rows[-1].entry, text)
    QTest.keyClick(table.rows[-1].entry, Qt.Key.Key_Return)


def shown(table: BiasTable) -> list[tuple[int, float]]:
    return list(table.biases)


def test_showing_biases_tells_nobody(qtbot: QtBot, table: BiasTable, target: Path, worker: Worker) -> None:
    told: list[Biases] = []
    table.changed.connect(lambda: told.append(table.biases))
    chosen = ((1, -2.5), (3, -math.inf), (9, 1.0))
    table.show_biases(chosen, target)
    assert table.biases == chosen
    assert table.rows[1].box.text() == "Banned"
    qtbot.waitUntil(lambda: worker.idle)
    assert [row.text.text() for row in table.rows] == ["“␣tea”", "“⏎”", "no token of this model"]
    assert told == []


def test_a_number_and_a_text_become_tokens(qtbot: QtBot, table: BiasTable) -> None:
    enter(table, "2")
    assert shown(table) == [(2, 0.0)]
    table.rows[0].box.setValue(1.5)
    enter(table, " tea")
    qtbot.waitUntil(lambda: len(table.biases) == 2)
    table.rows[1].box.setValue(-100)
    assert shown(table) == [(2, 1.5), (1, -math.inf)]
    qtbot.waitUntil(lambda: table.rows[1].text.text() == "“␣tea”")
    QTest.mouseClick(table.rows[0].remove, Qt.MouseButton.LeftButton)
    assert shown(table) == [(1, -math.inf)]


def test_a_text_of_several_tokens_names_them_all(qtbot: QtBot, table: BiasTable) -> None:
    enter(table, "a")
    qtbot.waitUntil(lambda: table.biases == ((0, 0.0), (4, 0.0)))


def test_a_text_that_is_no_token_is_told_and_counts_for_nothing(qtbot: QtBot, table: BiasTable) -> None:
    enter(table, "coffee")
    qtbot.waitUntil(table.note.isVisible)
    assert "No single token is written “coffee”" in table.note.text()
    assert shown(table) == []
    table.rows[0].entry.setText("0")
    table.rows[0].entry.editingFinished.emit()
    assert shown(table) == [(0, 0.0)]
    assert not table.note.isVisible()


def test_without_a_model_numbers_only(qtbot: QtBot, worker: Worker) -> None:
    table = BiasTable(worker)
    qtbot.addWidget(table)
    table.show()
    enter(table, "tea")
    assert "Choose a target model first" in table.note.text()
    enter(table, "7")
    assert shown(table) == [(7, 0.0)]
