"""The page of structured output: what is written is checked, kept apart by kind, and told at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.ui.background import Worker
from forespeak.ui.structured_output import OutputKind, StructuredOutput
from forespeak.ui.structured_page import StructuredPage

SCHEMA, GRAMMAR = OutputKind.JSON_SCHEMA, OutputKind.GRAMMAR


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker("checks")
    yield made
    made.close()


@pytest.fixture
def page(qtbot: QtBot, worker: Worker) -> StructuredPage:
    made = StructuredPage(worker)
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    return made


def verdict(qtbot: QtBot, page: StructuredPage) -> str:
    qtbot.waitUntil(lambda: page.verdict.text() not in {"", "Checking…"})
    return page.verdict.text()


def test_what_is_written_is_checked(qtbot: QtBot, page: StructuredPage) -> None:
    assert verdict(qtbot, page) == "Any JSON object."
    page.text.setPlainText('{"type": "object"}')
    assert page.verdict.text() == "Checking…", "an old verdict must not stand below a new text"
    assert verdict(qtbot, page) == "A valid schema."
    assert not page.verdict.property("danger")
    page.text.setPlainText('{"type": "foo"}')
    assert "Invalid type: foo" in verdict(qtbot, page)
    assert page.verdict.property("danger")
    page.text.clear()
    assert verdict(qtbot, page) == "Any JSON object."


def test_schema_and_grammar_are_kept_apart(qtbot: QtBot, page: StructuredPage) -> None:
    told: list[StructuredOutput] = []
    page.changed.connect(lambda: told.append(page.output))
    page.text.setPlainText("{}")
    QTest.mouseClick(page.kinds[GRAMMAR], Qt.MouseButton.LeftButton)
    assert page.text.toPlainText() == ""
    assert verdict(qtbot, page) == "Nothing is written yet."
    page.text.setPlainText('root ::= "a"')
    assert verdict(qtbot, page) == "A valid grammar."
    page.switch.click()
    QTest.mouseClick(page.kinds[SCHEMA], Qt.MouseButton.LeftButton)
    assert page.text.toPlainText() == "{}"
    grammar = 'root ::= "a"'
    assert told == [
        StructuredOutput(False, SCHEMA, "{}"),
        StructuredOutput(False, GRAMMAR, "{}"),
        StructuredOutput(False, GRAMMAR, "{}", grammar),
        StructuredOutput(True, GRAMMAR, "{}", grammar),
        StructuredOutput(True, SCHEMA, "{}", grammar),
    ]


def test_showing_tells_nobody(page: StructuredPage) -> None:
    told: list[None] = []
    page.changed.connect(lambda: told.append(None))
    shown = StructuredOutput(True, GRAMMAR, "{}", "x")
    page.show_output(shown)
    assert page.output == shown
    assert page.switch.isChecked()
    assert page.text.toPlainText() == "x"
    assert told == []


def test_a_file_is_loaded_or_the_reason_told(page: StructuredPage, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"title": "Ä"}', encoding="utf-8")
    page.load(path)
    assert page.output.schema == '{"title": "Ä"}'
    path.write_bytes(b"\xff")
    page.load(path)
    assert page.verdict.text() == "schema.json could not be read: it is not UTF-8 text."
    page.load(tmp_path / "nowhere")
    assert page.verdict.text() == "nowhere could not be read: No such file or directory."
    path.write_bytes(b" " * 1_000_001)
    page.load(path)
    assert page.verdict.text() == "schema.json could not be read: it is too large."
    assert page.output.schema == '{"title": "Ä"}'


def test_the_page_may_be_gone_when_the_verdict_comes(qtbot: QtBot, worker: Worker) -> None:
    page = StructuredPage(worker)
    page.show_output(StructuredOutput(True, SCHEMA, "{}"))
    page._check_later.stop()
    page._check()
    page.close()
    page.deleteLater()
    del page
    qtbot.waitUntil(lambda: worker.idle)
