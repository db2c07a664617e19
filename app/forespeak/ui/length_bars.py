"""How long the drafts of a reply were, as bars."""

from __future__ import annotations

import math
from collections.abc import Mapping

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from forespeak.ui.charts import Chart, draw_bar_label
from forespeak.ui.theme import ui_font

_WIDEST = 30.0


class LengthBars(Chart):
    """One bar for each length from 0, a step without a draft, to the longest; its height is the number of steps."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lengths: dict[int, int] = {}
        self.setFixedHeight(60)
        self.set_lengths({})

    def set_lengths(self, lengths: Mapping[int, int]) -> None:
        """Steps by the number of drafted tokens that they tested."""
        if lengths and self._lengths == lengths:
            return
        self._lengths = dict(lengths)
        name, words = self.tr("Draft lengths chosen"), self._in_words()
        self.setAccessibleName(f"{name}: {words}" if words else name)
        self.setToolTip(words)
        self.update()

    def _in_words(self) -> str:
        """“no draft 3 times, 1 token 2 times”"""
        parts = []
        for length, count in sorted(self._lengths.items()):
            tokens = self.tr("no draft") if not length else self.tr("1 token") if length == 1 else f"{length} tokens"
            parts.append(f"{tokens} {self.tr('once') if count == 1 else f'{count} times'}")
        return ", ".join(parts)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(ui_font(11))
        # Room for a few more than there are, so that the bars keep their places while a reply grows.
        longest = max(self._lengths, default=0)
        count = 9 if longest < 9 else 17 if longest < 17 else longest + 1
        gap = 3.0 if count < 20 else 1.5
        width = min((self.width() - gap * (count - 1)) / count, _WIDEST)
        every = math.ceil((painter.fontMetrics().horizontalAdvance("00") + 4) / (width + gap))
        base, most = self.height() - 16.0, max(self._lengths.values(), default=1)
        for length in range(count):
            x, steps = length * (width + gap), self._lengths.get(length, 0)
            height = max((base - 2) * steps / most, 2.0) if steps else 1.0
            painter.setPen(Qt.PenStyle.NoPen)
            colour = self.theme.line if not steps else self.theme.accent if length else self.theme.control_line
            painter.setBrush(QColor(colour))
            corner = min(3.0, height / 2)
            painter.drawRoundedRect(QRectF(x, base - height, width, height), corner, corner)
            if length % every == 0:
                painter.setPen(QColor(self.theme.muted))
                draw_bar_label(painter, f"{length}", x + width / 2, base + 2, self.width())
        painter.end()
