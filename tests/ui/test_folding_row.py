"""The rows of lists of pairs and drafts, wide and narrow."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QPushButton
from pytestqt.qtbot import QtBot

from forespeak.ui.folding_row import FoldingRow


class Row(FoldingRow):
    def __init__(self) -> None:
        super().__init__(400, 120)
        self.first, self.second = QPushButton("a"), QPushButton("b")
        self.fold(wide=True)

    def place_parts(self, grid: QGridLayout, *, wide: bool) -> None:
        grid.addWidget(self.first, 0, 0)
        grid.addWidget(self.second, 0 if wide else 1, 1 if wide else 0)
        grid.setColumnMinimumWidth(1, 90 if wide else 0)


def test_parts_stand_below_each_other_where_there_is_no_room(qtbot: QtBot) -> None:
    row = Row()
    qtbot.addWidget(row)
    row.resize(400, 100)
    row.show()
    assert row.first.y() == row.second.y()
    row.resize(399, 100)
    qtbot.waitUntil(lambda: row.first.x() == row.second.x())
    assert row.second.y() > row.first.y()
    assert row.minimumSizeHint().width() == 120
    row.resize(400, 100)
    qtbot.waitUntil(lambda: row.first.y() == row.second.y())
    assert row.grid.columnMinimumWidth(1) == 90
