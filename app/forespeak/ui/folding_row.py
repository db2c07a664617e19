"""A row of a list whose parts stand side by side where there is room, and below each other where there is not."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget


class FoldingRow(QFrame):
    """Whoever derives makes the parts, calls `fold` once, and says in `place_parts` where they stand.

    `wide_from`: the width from which all stand side by side; `narrowest`: how narrow it may become. In pixels.
    """

    def __init__(self, wide_from: int, narrowest: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pairRow")
        self._wide_from, self._narrowest = wide_from, narrowest
        self._wide: bool | None = None
        self.grid = QGridLayout(self)
        self.grid.setVerticalSpacing(3)

    def place_parts(self, grid: QGridLayout, *, wide: bool) -> None:
        """Put the parts into the empty grid, and say how its columns stretch."""
        raise NotImplementedError

    def fold(self, *, wide: bool) -> None:
        if wide == self._wide:
            return
        self._wide = wide
        grid = self.grid
        while grid.takeAt(0) is not None:
            pass
        for column in range(grid.columnCount()):
            grid.setColumnStretch(column, 0)
            grid.setColumnMinimumWidth(column, 0)
        self.place_parts(grid, wide=wide)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fold(wide=event.size().width() >= self._wide_from)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._narrowest, super().minimumSizeHint().height())
