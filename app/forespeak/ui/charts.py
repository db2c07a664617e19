"""Small painted figures: a line over time, bars by position, the steps of a reply, the room left in the context."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from forespeak.speculation.trace import Step
from forespeak.ui.theme import CAPTION_PIXELS, LIGHT, MarkKind, Theme, mark_kind, ui_font

_SPARK_POINTS = 120
_KEPT_STEPS = 200
_KEPT_ROWS = 12


_CUT = {
    MarkKind.ACCEPTED_LOOKUP: (QRectF(0, 2.5, 9, 10.5),),
    MarkKind.ACCEPTED_SIMPLE: (QRectF(0, 6, 9, 7),),
    MarkKind.ACCEPTED_MAP_K: (QRectF(0, 2.5, 4, 10.5), QRectF(5, 2.5, 4, 10.5)),
    MarkKind.ACCEPTED_MAP_K4V: tuple(QRectF(x, y, 4, 4.7) for x in (0, 5) for y in (2.5, 8.3)),
    MarkKind.ACCEPTED_MOD: (QRectF(0, 8, 9, 5), QRectF(2.5, 2.5, 4, 6)),
    MarkKind.ACCEPTED_CACHE: tuple(QRectF(0, y, 9, 2.7) for y in (2.5, 6.4, 10.3)),
}
"""What is left of a cell, 9 wide and 13 high, by the source that looked a token up."""


class Chart(QWidget):
    """Something painted in the theme's colours."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = LIGHT

    def set_theme(self, theme: Theme) -> None:
        self.theme = theme
        self.update()


class CardChart(Chart):
    """One that stands on a card and paints its ground too: so nothing behind it is painted anew with it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def begin(self, event: QPaintEvent) -> QPainter:
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(self.theme.card))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        return painter


class Sparkline(CardChart):
    """Tokens per second as they came, with a dashed line where plain decoding stands."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rates: deque[float] = deque(maxlen=_SPARK_POINTS)
        self._baseline: float | None = None
        self.setFixedHeight(46)
        self.setAccessibleName(self.tr("Tokens per second over time"))

    def reset(self) -> None:
        self._rates.clear()
        self.update()

    def add(self, rate: float) -> None:
        self._rates.append(rate)
        self.update()

    def set_baseline(self, rate: float | None) -> None:
        self._baseline = rate
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.begin(event)
        highest = max([*self._rates, self._baseline or 0.0, 1e-9]) * 1.15
        room = QRectF(self.rect()).adjusted(1, 3, -1, -3)
        if self._baseline:
            pen = QPen(QColor(self.theme.muted), 1)
            pen.setDashPattern([3, 4])
            painter.setPen(pen)
            y = round(room.bottom() - room.height() * self._baseline / highest) + 0.5
            painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
        if len(self._rates) > 1:
            # A young line is drawn as if it had some length already, so that it grows from the left.
            pace = room.width() / (max(len(self._rates), 30) - 1)
            points = [
                QPointF(room.left() + i * pace, room.bottom() - room.height() * rate / highest)
                for i, rate in enumerate(self._rates)
            ]
            pen = QPen(QColor(self.theme.accepted_model.line), 2)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            painter.drawPolyline(QPolygonF(points))
        elif not self._baseline:
            painter.setPen(QPen(QColor(self.theme.line), 1))
            painter.drawLine(room.bottomLeft(), room.bottomRight())
        painter.end()


def draw_bar_label(painter: QPainter, words: str, middle: float, top: float, room: float) -> None:
    """Write a bar's label centred on `middle`, or as near to it as a chart `room` pixels wide lets it stand whole."""
    wide = float(painter.fontMetrics().horizontalAdvance(words)) + 2
    left = max(0.0, min(middle - wide / 2, room - wide))
    painter.drawText(QRectF(left, top, wide, 14), Qt.AlignmentFlag.AlignHCenter, words)


class PositionBars(CardChart):
    """How often the first, second, third ... token of a draft was accepted, in percent."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rates: tuple[float, ...] = ()
        self._accepted: tuple[tuple[tuple[MarkKind, int], ...], ...] = ()
        self.setFixedHeight(84)
        self.set_rates(())

    def set_rates(self, rates: Sequence[float], accepted: Sequence[Mapping[MarkKind, int]] = ()) -> None:
        """Shares between 0 and 1, by position; how many tokens of each kind were accepted there colours the bars."""
        kinds = tuple(tuple((kind, place[kind]) for kind in MarkKind if place.get(kind)) for place in accepted)
        if self._rates == tuple(rates) and self._accepted == kinds and self._rates:
            return
        self._rates, self._accepted = tuple(rates), kinds
        words = ", ".join(f"{rate:.0%}" for rate in rates)
        name = (
            self.tr("Accepted by position: {0}").format(words)
            if words
            else self.tr("Accepted by position: no drafts yet")
        )
        self.setAccessibleName(name)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.begin(event)
        painter.setFont(ui_font(11))
        count = len(self._rates)
        if not count:
            painter.setPen(QColor(self.theme.muted))
            painter.setFont(ui_font(CAPTION_PIXELS + 1))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, self.tr("No drafts tested yet."))
            painter.end()
            return
        gap = 7.0 if count <= 8 else 3.0
        width = min((self.width() - gap * (count - 1)) / count, 56.0)
        base = self.height() - 16.0
        tall = base - 18
        # Labels never touch: where bars are narrow, each second or third has one.
        every = math.ceil((painter.fontMetrics().horizontalAdvance("100") + 4) / (width + gap))
        for number, rate in enumerate(self._rates):
            x = number * (width + gap)
            height = max(tall * rate, 2.0)
            self._paint_bar(painter, QRectF(x, base - height, width, height), number)
            if number % every:
                continue
            painter.setPen(QColor(self.theme.muted))
            middle = x + width / 2
            draw_bar_label(painter, f"{rate * 100:.0f}", middle, base - height - 16, self.width())
            draw_bar_label(painter, f"{number + 1}", middle, base + 2, self.width())
        painter.end()

    def _paint_bar(self, painter: QPainter, bar: QRectF, number: int) -> None:
        """From the bottom: what each source got accepted at that position, in its colour."""
        if not self._rates[number]:
            painter.fillRect(bar, QColor(self.theme.control_line))
            return
        parts = self._accepted[number] if number < len(self._accepted) else ()
        parts = parts or ((MarkKind.ACCEPTED_MODEL, 1),)
        total = sum(count for _, count in parts)
        shape = QPainterPath()
        shape.addRoundedRect(bar, min(4.0, bar.height() / 2), min(4.0, bar.height() / 2))
        bottom = bar.bottom()
        for kind, count in parts:
            part = QRectF(bar.left(), bottom - bar.height() * count / total, bar.width(), bar.height() * count / total)
            path = QPainterPath()
            path.addRect(part)
            painter.fillPath(shape.intersected(path), QColor(self.theme.mark(kind).line))
            bottom = part.top()


class StepsStrip(CardChart):
    """Every step as a group of small blocks: accepted, then the correction or bonus, then what was rejected."""

    _CELL, _ROW, _HIGH = 11.0, 17.0, 13.0

    def __init__(self, rows: int = 7, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = rows
        self._steps: deque[tuple[MarkKind | None, ...]] = deque(maxlen=_KEPT_STEPS)
        self._placed: deque[list[tuple[float, tuple[MarkKind | None, ...]]]] = deque([[]], maxlen=_KEPT_ROWS)
        """Rows of steps with their left edges."""
        self._right = 0.0
        self.setFixedHeight(int(rows * self._ROW))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.reset()

    def set_rows(self, rows: int) -> None:
        self._rows = rows
        self.setFixedHeight(int(rows * self._ROW))

    def reset(self) -> None:
        self._steps.clear()
        self._place_all()
        self.setAccessibleName(self.tr("No steps yet"))
        self.update()

    def add(self, steps: Sequence[Step]) -> None:
        row = self._placed[-1]
        for step in steps:
            kinds = [mark_kind(token.origin, token.source) for token in step.emitted]
            kept = (*kinds, *(MarkKind.REJECTED for _ in step.rejected))
            self._steps.append(kept)
            self._place(kept)
        if steps:
            last = steps[-1]
            words = self.tr("Newest step: {0} accepted, {1} rejected")
            self.setAccessibleName(words.format(last.accepted_count, len(last.rejected)))
        if row is self._placed[-1] and len(self._steps) > len(steps):
            # What is placed stays where it is.
            self.update(0, self._row_top(min(len(self._placed), self._rows) - 1), self.width(), int(self._ROW))
        else:
            self.update()

    def _row_top(self, row: int) -> int:
        return int(row * self._ROW)

    def _place(self, kinds: tuple[MarkKind | None, ...]) -> None:
        """Behind the last step, or at the beginning of a new row. What is placed stays where it is."""
        shown = kinds[: max(int((self.width() + 2) / self._CELL), 1)]
        wide = len(shown) * self._CELL
        if self._right and self._right + wide - 2 > self.width():
            self._placed.append([])
            self._right = 0.0
        self._placed[-1].append((self._right, shown))
        self._right += wide + 5

    def _place_all(self) -> None:
        self._placed = deque([[]], maxlen=_KEPT_ROWS)
        self._right = 0.0
        for kinds in self._steps:
            self._place(kinds)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.begin(event)
        if not self._steps:
            painter.setPen(QColor(self.theme.muted))
            painter.setFont(ui_font(CAPTION_PIXELS + 1))
            painter.drawText(QRectF(0, 0, self.width(), 20), Qt.AlignmentFlag.AlignVCenter, self.tr("No steps yet."))
            painter.end()
            return
        brushes = {kind: QColor(self.theme.mark(kind).line) for kind in MarkKind}
        plain = QColor(self.theme.control_line)
        for number, row in enumerate(list(self._placed)[-self._rows :]):
            y = number * self._ROW + 1
            if not event.rect().intersects(QRect(0, self._row_top(number), self.width(), int(self._ROW))):
                continue
            for x, kinds in row:
                for place, kind in enumerate(kinds):
                    cell = QRectF(x + place * self._CELL, y, 9, self._HIGH)
                    self._paint_cell(painter, cell, kind, plain if kind is None else brushes[kind])
        painter.end()

    @staticmethod
    def _paint_cell(painter: QPainter, cell: QRectF, kind: MarkKind | None, colour: QColor) -> None:
        """Filled: emitted. Hollow: rejected. A notch or a slot tells corrections and bonuses apart without colour."""
        if kind is MarkKind.REJECTED:
            painter.setPen(QPen(colour, 1.4))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(cell.adjusted(0.7, 0.7, -0.7, -0.7), 2, 2)
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        if kind is None:
            painter.drawRoundedRect(cell.adjusted(2.5, 4.5, -2.5, -4.5), 2, 2)
        elif kind is MarkKind.CORRECTED:
            painter.drawRoundedRect(cell.adjusted(0, 0, 0, -5), 2, 2)
            painter.drawEllipse(QRectF(cell.left() + 3, cell.bottom() - 3.5, 3, 3))
        elif kind is MarkKind.BONUS:
            painter.drawRoundedRect(cell.adjusted(0, 0, 0, -7.5), 2, 2)
            painter.drawRoundedRect(cell.adjusted(0, 7.5, 0, 0), 2, 2)
        elif kind.looks_up:
            # Lower than a model's, and cut differently for each source.
            for part in _CUT[kind]:
                painter.drawRoundedRect(part.translated(cell.topLeft()), 1.5, 1.5)
        else:
            painter.drawRoundedRect(cell, 2, 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            self._place_all()
        super().resizeEvent(event)


class ContextMeter(Chart):
    """How much of the context is in use; shows a warning's colour when little is left."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._used = self._total = 0
        self.setFixedSize(QSize(110, 6))
        self.set_use(0, 0)

    def set_use(self, used: int, total: int) -> None:
        """Tokens in the cache, and how many fit."""
        self._used, self._total = used, total
        words = self.tr("Context: {0} of {1} tokens").format(f"{used:,}", f"{total:,}")
        self.setAccessibleName(words)
        self.setToolTip(words)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.theme.line))
        track = QRectF(self.rect())
        painter.drawRoundedRect(track, 3, 3)
        share = self._used / self._total if self._total else 0.0
        if share:
            painter.setBrush(QColor(self.theme.danger if share > 0.9 else self.theme.muted))
            painter.drawRoundedRect(QRectF(0, 0, max(track.width() * min(share, 1.0), 6.0), track.height()), 3, 3)
        painter.end()
