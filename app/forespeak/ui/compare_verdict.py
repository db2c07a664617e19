"""What a comparison found: one big ratio with words, and the speed-up by kind of work as dots with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QBoxLayout, QFrame, QSizePolicy, QVBoxLayout, QWidget

from forespeak.ui.charts import CardChart
from forespeak.ui.compare_parts import ratio_words, tone_colour, words_label
from forespeak.ui.compare_values import ResultValues, SpeedUp, Tone
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, TEXT_PIXELS, Theme, ui_font

_ROW = 26
_TOP = 6
_LABEL_SHARE, _LONGEST_LABEL = 0.3, 190.0
_FIGURES = 150.0
_AROUND = 1.0
"""The ratio at which nothing is gained."""


class VerdictCard(QFrame):
    """The ratio of the best lane, what that means, and what to try next."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = LIGHT
        self._tone = Tone.EVEN
        self.ratio = PlainLabel()
        self.ratio.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        self.headline = words_label()
        self.headline.setStyleSheet("font-size: 15px; font-weight: 600;")
        self.details = words_label(variant="muted")
        self.sameness = words_label(variant="muted")
        self.advice = words_label()
        words = QVBoxLayout()
        words.setSpacing(5)
        for label in (self.headline, self.details, self.sameness, self.advice):
            words.addWidget(label)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(20, 16, 20, 18)
        self._row.setSpacing(22)
        self._row.addWidget(self.ratio, 0, Qt.AlignmentFlag.AlignTop)
        self._row.addLayout(words, 1)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        colour = tone_colour(theme, self._tone)
        self.ratio.setStyleSheet(f"color: {colour}; font-size: 40px; font-weight: 700;")

    def show_result(self, values: ResultValues) -> None:
        self._tone = values.tone
        self.ratio.setText(ratio_words(values.ratio))
        self.ratio.setVisible(values.ratio is not None)
        self.ratio.setAccessibleName(self.tr("{0} times as fast").format(ratio_words(values.ratio).rstrip("×")))
        for label, words in (
            (self.headline, values.headline),
            (self.details, values.details),
            (self.sameness, values.sameness),
            (self.advice, values.advice),
        ):
            label.setText(words)
            label.setVisible(bool(words))
        self.set_theme(self._theme)

    def set_narrow(self, narrow: bool) -> None:
        down = QBoxLayout.Direction.TopToBottom
        self._row.setDirection(down if narrow else QBoxLayout.Direction.LeftToRight)


class SpeedUpRows(CardChart):
    """One row for each kind of work: a dot at the ratio, its interval, and a dashed line where nothing is gained."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[SpeedUp, ...] = ()
        self._scaled: tuple[SpeedUp, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_rows(self, rows: Sequence[SpeedUp], beside: Sequence[SpeedUp] = ()) -> None:
        """`beside`: rows that are shown elsewhere on the same scale."""
        self._rows = tuple(rows)
        self._scaled = (*rows, *beside)
        words = "; ".join(f"{row.label}: {self._figures(row)}" for row in rows)
        self.setAccessibleName(self.tr("Speed-up by kind of work. {0}").format(words))
        self.updateGeometry()
        self.update()

    @property
    def rows(self) -> tuple[SpeedUp, ...]:
        return self._rows

    def sizeHint(self) -> QSize:
        return QSize(420, max(len(self._rows), 1) * _ROW + 2 * _TOP)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _figures(self, row: SpeedUp) -> str:
        if row.low is None or row.high is None:
            return ratio_words(row.ratio)
        return f"{ratio_words(row.ratio)} {row.low:.2f} – {row.high:.2f}"

    def scale(self) -> tuple[float, float]:
        """Logarithms of the ratios at the ends: twice as fast and half as fast lie equally far from 1."""
        ends = [_AROUND]
        for row in self._scaled:
            ends += [value for value in (row.ratio, row.low, row.high) if value is not None and value > 0]
        low, high = math.log(min(ends)), math.log(max(ends))
        # A scale is never so fine that one per cent looks like much.
        room = max(high - low, math.log(1.25)) * 0.07
        middle = (low + high) / 2
        half = max((high - low) / 2, math.log(1.25) / 2) + room
        return middle - half, middle + half

    def dot_at(self, number: int) -> tuple[float, float]:
        """Where the dot of a row is."""
        return self._x(self._rows[number].ratio), self._room.top() + number * _ROW + _ROW / 2

    @property
    def _label_width(self) -> float:
        return min(_LONGEST_LABEL, self.width() * _LABEL_SHARE)

    @property
    def _room(self) -> QRectF:
        """For the dots and their intervals."""
        left = self._label_width + 8
        return QRectF(left, _TOP, max(self.width() - left - _FIGURES - 14, 40), len(self._rows) * _ROW)

    def _x(self, ratio: float) -> float:
        low, high = self.scale()
        at = (math.log(ratio) - low) / (high - low)
        return self._room.left() + self._room.width() * min(max(at, 0.0), 1.0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.begin(event)
        if not self._rows:
            painter.setPen(QColor(self.theme.muted))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, self.tr("Nothing could be compared."))
            painter.end()
            return
        label, room = self._label_width, self._room
        pen = QPen(QColor(self.theme.muted), 1)
        pen.setDashPattern([3, 3])
        painter.setPen(pen)
        line = round(self._x(_AROUND)) + 0.5
        painter.drawLine(QPointF(line, room.top()), QPointF(line, room.bottom()))
        for number, row in enumerate(self._rows):
            y = room.top() + number * _ROW
            self._paint_row(painter, row, y, label)
        painter.end()

    def _paint_row(self, painter: QPainter, row: SpeedUp, y: float, label: float) -> None:
        theme = self.theme
        painter.setFont(ui_font(TEXT_PIXELS))
        painter.setPen(QColor(theme.ink))
        middle = Qt.AlignmentFlag.AlignVCenter
        name = painter.fontMetrics().elidedText(row.label, Qt.TextElideMode.ElideRight, int(label))
        painter.drawText(QRectF(0, y, label, _ROW), middle, name)
        colour = QColor(self._colour(row))
        centre = y + _ROW / 2
        if row.low is not None and row.high is not None and row.low > 0:
            soft = QColor(colour)
            soft.setAlphaF(0.4)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(soft)
            left, right = self._x(row.low), self._x(row.high)
            painter.drawRoundedRect(QRectF(left, centre - 2, max(right - left, 4), 4), 2, 2)
        self._paint_dot(painter, QPointF(self._x(row.ratio), centre), row.tone, colour)
        figures = QRectF(self.width() - _FIGURES, y, _FIGURES, _ROW)
        bold = ui_font(TEXT_PIXELS, 600)
        painter.setFont(bold)
        painter.setPen(QColor(theme.ink))
        words = ratio_words(row.ratio)
        painter.drawText(figures, middle, words)
        if row.low is not None and row.high is not None:
            painter.setFont(ui_font(TEXT_PIXELS))
            painter.setPen(QColor(theme.muted))
            beside = figures.adjusted(QFontMetricsF(bold).horizontalAdvance(words) + 8, 0, 0, 0)
            painter.drawText(beside, middle, f"{row.low:.2f} – {row.high:.2f}")

    def _colour(self, row: SpeedUp) -> str:
        theme = self.theme
        return {
            Tone.GOOD: theme.accepted_model.line,
            Tone.EVEN: theme.corrected.line,
            Tone.BAD: theme.rejected.line,
        }[row.tone]

    def _paint_dot(self, painter: QPainter, at: QPointF, tone: Tone, colour: QColor) -> None:
        """Filled: faster; hollow: no difference shown; a square: slower. So it reads without colour, too."""
        painter.setPen(QPen(colour, 2))
        painter.setBrush(QColor(self.theme.card) if tone is Tone.EVEN else colour)
        if tone is Tone.BAD:
            painter.drawRect(QRectF(at.x() - 5, at.y() - 5, 10, 10))
        else:
            painter.drawEllipse(at, 5.5, 5.5)
