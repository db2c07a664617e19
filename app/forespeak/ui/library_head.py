"""What stands above the table of my models: search, filters, and the buttons of the whole library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QBoxLayout, QComboBox, QHBoxLayout, QPushButton, QWidget

from forespeak.models.formats import ModelFormat
from forespeak.models.library import LibraryItem
from forespeak.ui.import_models import ImportButton
from forespeak.ui.search_field import SearchField


class LibraryHead(QWidget):
    """In one row where there is room for that, else in three."""

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
        filters = QHBoxLayout()
        filters.setSpacing(8)
        filters.addWidget(self.format_box)
        filters.addWidget(self.partner_box, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.pairs_button, self.refresh_button, self.import_button):
            buttons.addWidget(button)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addWidget(self.search, 1)
        self._row.addLayout(filters, 1)
        self._row.addLayout(buttons)

    def set_wide(self, wide: bool) -> None:
        direction = QBoxLayout.Direction
        self._row.setDirection(direction.LeftToRight if wide else direction.TopToBottom)

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
