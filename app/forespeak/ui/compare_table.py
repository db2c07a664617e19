"""A table of figures as tall as its rows; a wide one scrolls sideways."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHeaderView, QTableWidget, QTableWidgetItem, QWidget


class FiguresTable(QTableWidget):
    """Figures as they are, as tall as it needs to be; wide ones scroll sideways."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAlternatingRowColors(False)
        self.verticalHeader().hide()
        self.setStyleSheet(
            # Qt puts three pixels beside the words of an item, but not of a header.
            "QTableView { border: none; background: transparent; padding: 0; } QTableView::item { padding: 0 7px; }"
        )
        self.horizontalHeader().setHighlightSections(False)
        self.setAccessibleName(self.tr("All figures"))
        self.setTabKeyNavigation(False)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """The first row is the head."""
        self.clear()
        if not rows:
            self.setRowCount(0)
            self.setColumnCount(0)
            self.setFixedHeight(0)
            return
        head, *body = rows
        self.setColumnCount(len(head))
        self.setRowCount(len(body))
        self.setHorizontalHeaderLabels(list(head))
        for number, row in enumerate(body):
            for column, words in enumerate(row):
                item = QTableWidgetItem(words)
                side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
                item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(number, column, item)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(False)
        if len(head) < 5:
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in range(len(head)):
            side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
            cell = self.horizontalHeaderItem(column)
            if cell is not None:
                cell.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.resizeRowsToContents()
        tall = header.sizeHint().height() + sum(self.rowHeight(row) for row in range(len(body)))
        self.setFixedHeight(tall + self.horizontalScrollBar().sizeHint().height() + 4)
