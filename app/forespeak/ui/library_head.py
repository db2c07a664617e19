"""What stands above the table of my models: search, filters, and the buttons of the whole library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QPushButton, QWidget

from forespeak.models.formats import ModelFormat
from forespeak.models.library import LibraryItem
from forespeak.ui.import_models import ImportButton
from forespeak.ui.search_field import SearchField

ONE_ROW_FROM, TWO_ROWS_FROM = 780, 520
"""Widths in pixels."""


class LibraryHead(QWidget):
    """In one row where there is room for that, else in two or three."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = SearchField(self.tr("Search my models"))
        self.search.setMinimumWidth(120)
        self.format_box = QComboBox()
        self.format_box.setAccessibleName(self.tr("Format"))
        self.format_box.addItem(self.tr("All formats"), None)
        for kind in ModelFormat:
            self.format_box.addItem(kind.value, kind)
        self.partner_box = QComboBox()
        self.partner_box.setAccessibleName(self.tr("Drafts for a target"))
        self.partner_box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.partner_box.setMinimumContentsLength(16)
        self.pairs_button = QPushButton(self.tr("Good pairs"))
        self.pairs_button.setCheckable(True)
        self.pairs_button.setToolTip(self.tr("Well-known pairs of target and draft, by the memory they need"))
        self.refresh_button = QPushButton(self.tr("Refresh"))
        self.refresh_button.setToolTip(self.tr("Look at the folders again"))
        self.refresh_button.setShortcut(QKeySequence("F5"))
        self.import_button = ImportButton()
        self._filters = _side_by_side(self.format_box, self.partner_box)
        self._buttons = _side_by_side(self.pairs_button, self.refresh_button, self.import_button)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self._grid.setColumnStretch(0, 1)
        self._grid.addWidget(self.search, 0, 0)
        self._rows = 0
        self.set_width(ONE_ROW_FROM)

    def set_width(self, width: int) -> None:
        """How much room there is for it."""
        rows = 1 if width >= ONE_ROW_FROM else 2 if width >= TWO_ROWS_FROM else 3
        if rows == self._rows:
            return
        self._rows = rows
        if rows == 1:
            self._grid.addWidget(self._filters, 0, 1)
            self._grid.addWidget(self._buttons, 0, 2)
        elif rows == 2:
            self._grid.addWidget(self._filters, 0, 1)
            self._grid.addWidget(self._buttons, 1, 0, 1, 2)
        else:
            self._grid.addWidget(self._filters, 1, 0)
            self._grid.addWidget(self._buttons, 2, 0)
        # A column that nothing stands in takes no room.
        self._grid.setColumnStretch(1, 1 if rows < 3 else 0)
        self._grid.setHorizontalSpacing(8 if rows < 3 else 0)

    def show_targets(self, items: Sequence[LibraryItem], chosen: Path | None) -> bool:
        """The models that drafts can be looked for. False if `chosen` is no longer one of them."""
        targets = [item for item in items if item.usable]
        box = self.partner_box
        if [box.itemData(row) for row in range(box.count())] == [None, *(item.path for item in targets)]:
            return True
        box.blockSignals(True)
        box.clear()
        box.addItem(self.tr("Any vocabulary"), None)
        for item in targets:
            box.addItem(self.tr("Drafts for {name}").format(name=item.name), item.path)
        row = box.findData(chosen) if chosen is not None else 0
        box.setCurrentIndex(max(0, row))
        box.blockSignals(False)
        return row >= 0


def _side_by_side(*widgets: QWidget) -> QWidget:
    whole = QWidget()
    row = QHBoxLayout(whole)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(8)
    for widget in widgets:
        row.addWidget(widget, 1 if isinstance(widget, QComboBox) and widget.minimumContentsLength() else 0)
    return whole
