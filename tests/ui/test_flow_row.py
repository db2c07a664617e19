"""Controls side by side, on as many lines as their width asks for."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from forespeak.ui.flow_row import FlowRow


def test_lines_are_broken_where_there_is_no_room(qtbot: QtBot) -> None:
    row = FlowRow()
    qtbot.addWidget(row)
    buttons = [QPushButton(f"Button {number}") for number in range(4)]
    for button in buttons:
        button.setFixedSize(100, 30)
        row.add(button)
    row.resize(500, 40)
    row.show()
    assert [button.x() for button in buttons] == [0, 108, 216, 324]
    assert row.sizeHint().width() == 424
    row.resize(220, 100)
    assert [(button.x(), button.y()) for button in buttons] == [(0, 0), (108, 0), (0, 38), (108, 38)]
    assert row.heightForWidth(220) == 68
    assert row.heightForWidth(50) == 4 * 38 - 8


def test_what_is_hidden_takes_no_room(qtbot: QtBot) -> None:
    row = FlowRow()
    qtbot.addWidget(row)
    small, large = QPushButton("a"), QPushButton("b")
    small.setFixedSize(40, 20)
    large.setFixedSize(40, 40)
    row.add(small)
    row.add(large)
    row.resize(200, 40)
    row.show()
    assert small.y() == 10, "in the middle of its line"
    small.hide()
    qtbot.waitUntil(lambda: large.x() == 0)
    assert row.sizeHint().width() == 40
