"""The charts of a result: speeds by kind of work, acceptance, tokens over time, the draft's share of the time.

pyqtgraph draws those with axes. It takes half a second to import, so that happens when a result is first shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from forespeak.ui.charts import CardChart, Chart, PositionBars
from forespeak.ui.compare_parts import SideBySide, card
from forespeak.ui.compare_values import LaneFigures
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.replay import LaneRecording
from forespeak.ui.theme import CAPTION_PIXELS, LIGHT, Theme, ui_font

_PLOT_HEIGHT = 230
_SYMBOLS = ("o", "s", "t", "d", "+", "x")
_DASHES: tuple[list[float] | None, ...] = (None, [5, 3], [1.5, 2.5], [6, 2, 1.5, 2], [9, 3], [3, 3])
"""Lanes differ by their lines and points as well as by their colours."""
MOST_LANES = len(_SYMBOLS)


def lane_colours(theme: Theme, plain: Sequence[bool]) -> list[str]:
    """`plain`: which lanes draft nothing. They are grey, whatever their temperature; the others take the colours of
    sources, which stay apart for colour-blind eyes.
    """
    others = (
        theme.accepted_model.line,
        theme.accent,
        theme.accepted_lookup.line,
        theme.corrected.line,
        theme.accepted_map_k.line,
    )
    free = cycle(others)
    return [theme.muted if is_plain else next(free) for is_plain in plain]


class LaneKey(Chart):
    """A short piece of a lane's line, before its name. `plain`: which lanes draft nothing."""

    def __init__(self, number: int, plain: Sequence[bool], name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._number, self._plain = number, tuple(plain)
        self.setFixedSize(34, 16)
        self.setAccessibleName(name)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(lane_colours(self.theme, self._plain)[self._number])
        pen = QPen(colour, 2)
        dashes = _DASHES[self._number % MOST_LANES]
        if dashes is not None:
            pen.setDashPattern(dashes)
        painter.setPen(pen)
        painter.drawLine(1, 8, 33, 8)
        painter.setPen(QPen(colour, 1.5))
        painter.setBrush(QColor(self.theme.card) if self._plain[self._number] else colour)
        _paint_symbol(painter, _SYMBOLS[self._number % MOST_LANES], QRectF(13, 4, 8, 8))
        painter.end()


def _paint_symbol(painter: QPainter, symbol: str, box: QRectF) -> None:
    centre = box.center()
    match symbol:
        case "o":
            painter.drawEllipse(box)
        case "s":
            painter.drawRect(box)
        case "t":
            painter.drawPolygon([box.topLeft(), box.topRight(), (box.bottomLeft() + box.bottomRight()) / 2])
        case "d":
            middle = (box.topLeft() + box.topRight()) / 2, (box.bottomLeft() + box.bottomRight()) / 2
            left, right = (box.topLeft() + box.bottomLeft()) / 2, (box.topRight() + box.bottomRight()) / 2
            painter.drawPolygon([middle[0], right, middle[1], left])
        case "+":
            painter.drawLine(int(box.left()), int(centre.y()), int(box.right()), int(centre.y()))
            painter.drawLine(int(centre.x()), int(box.top()), int(centre.x()), int(box.bottom()))
        case _:
            painter.drawLine(box.topLeft(), box.bottomRight())
            painter.drawLine(box.topRight(), box.bottomLeft())


class ShareBars(CardChart):
    """How much of the time each lane spent on drafting, as a part of a bar; the rest is the target's."""

    _ROW = 30

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lanes: tuple[tuple[str, float], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_lanes(self, lanes: Sequence[tuple[str, float]]) -> None:
        """(name, share from 0 to 1)"""
        self._lanes = tuple(lanes)
        self.setFixedHeight(max(len(lanes), 1) * self._ROW)
        words = ", ".join(f"{name} {share:.0%}" for name, share in lanes)
        self.setAccessibleName(self.tr("Share of the time that drafting took: {0}").format(words))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.begin(event)
        painter.setFont(ui_font(CAPTION_PIXELS + 1))
        label = min(self.width() * 0.36, 190.0)
        track = QRectF(label + 10, 0, max(self.width() - label - 10 - 48, 30), 12)
        middle = Qt.AlignmentFlag.AlignVCenter
        for number, (name, share) in enumerate(self._lanes):
            y = number * self._ROW
            painter.setPen(QColor(self.theme.ink))
            shown = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, int(label))
            painter.drawText(QRectF(0, y, label, self._ROW), middle, shown)
            bar = track.translated(0, y + (self._ROW - track.height()) / 2)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.theme.line))
            painter.drawRoundedRect(bar, 4, 4)
            painter.setBrush(QColor(self.theme.accepted_model.line))
            if share > 0:
                painter.drawRoundedRect(QRectF(bar.left(), bar.top(), max(bar.width() * share, 4), bar.height()), 4, 4)
            painter.setPen(QColor(self.theme.ink))
            right = QRectF(self.width() - 44, y, 44, self._ROW)
            painter.drawText(right, middle | Qt.AlignmentFlag.AlignRight, f"{share * 100:.0f} %")
        painter.end()


class _Plot(QWidget):
    """A pyqtgraph plot in the theme's colours that takes no mouse: no zoom, no menu, and the wheel scrolls the page."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        import pyqtgraph  # type: ignore[import-untyped]

        self.graph: Any = pyqtgraph
        self.plot: Any = pyqtgraph.PlotWidget(self)
        self.plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.setFrameShape(self.plot.Shape.NoFrame)
        self.plot.setMouseEnabled(x=False, y=False)
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        # Half of an axis' last number stands beyond the axis.
        self.plot.getPlotItem().setContentsMargins(0, 6, 6, 0)
        self.plot.setAntialiasing(True)
        self.plot.showGrid(x=True, y=False, alpha=0.15)
        self.setFixedHeight(_PLOT_HEIGHT)
        self.setAccessibleName(name)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.plot)

    def wear(self, theme: Theme) -> None:
        self.plot.setBackground(QColor(theme.card))
        for side in ("left", "bottom"):
            axis = self.plot.getAxis(side)
            axis.setPen(QColor(theme.line))
            axis.setTextPen(QColor(theme.muted))
            axis.setTickFont(ui_font(CAPTION_PIXELS))
            axis.setStyle(tickLength=-4)

    def clear(self) -> None:
        self.plot.clear()

    def pen(self, colour: str, number: int, width: float = 2.0) -> QPen:
        pen = QPen(QColor(colour), width)
        pen.setCosmetic(True)
        dashes = _DASHES[number % MOST_LANES]
        if dashes is not None:
            pen.setDashPattern(dashes)
        return pen

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class ResultCharts(QWidget):
    """All charts of one result; lines and points by the lane's place, colours by its place among those that draft."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._lanes: tuple[LaneFigures, ...] = ()
        self._recorded: tuple[LaneRecording, ...] = ()
        self._keys: list[LaneKey] = []
        self._bars: list[PositionBars] = []
        self._legend = FlowRow()
        self._entries: list[QWidget] = []
        self.rates = _Plot(self.tr("Tokens per second by kind of work"))
        self.tokens = _Plot(self.tr("Tokens over time"))
        self.shares = ShareBars()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(16)
        column.addWidget(self._legend)
        upper, lower = SideBySide(), SideBySide()
        self.rates_card = self._in_card(self.tr("TOKENS PER SECOND BY KIND OF WORK"), self.rates, upper)
        self.tokens_card = self._in_card(self.tr("TOKENS OVER TIME, IN SECONDS"), self.tokens, upper)
        frame, self._positions = card(self.tr("ACCEPTED BY POSITION IN THE DRAFT, IN PER CENT"))
        self._positions.addStretch(1)
        lower.add(frame)
        self.positions_card = frame
        self.shares_card = self._in_card(self.tr("TIME SPENT ON DRAFTING"), self.shares, lower)
        column.addWidget(upper)
        column.addWidget(lower)

    @staticmethod
    def _in_card(heading: str, chart: QWidget, row: SideBySide) -> QWidget:
        frame, column = card(heading)
        column.addWidget(chart)
        column.addStretch(1)
        row.add(frame)
        return frame

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for chart in (*self._keys, *self._bars, self.shares):
            chart.set_theme(theme)
        self._draw()

    def show_lanes(self, lanes: Sequence[LaneFigures]) -> None:
        self._lanes = tuple(lanes)
        for old in self._entries:
            old.hide()
            old.deleteLater()
        self._keys, self._entries = [], []
        plain = [lane.is_plain for lane in self._lanes]
        for number, lane in enumerate(self._lanes):
            key, name, entry = LaneKey(number, plain, lane.name), ElidedLabel(), QWidget()
            name.set_words(lane.name)
            row = QHBoxLayout(entry)
            row.setContentsMargins(4, 0, 12, 0)
            row.setSpacing(8)
            row.addWidget(key)
            row.addWidget(name)
            self._keys.append(key)
            self._entries.append(entry)
            self._legend.add(entry)
            entry.show()
        self._show_positions()
        shares = [(lane.name, lane.draft_share) for lane in self._lanes if lane.draft_share is not None]
        self.shares.set_lanes([(name, share) for name, share in shares if share is not None])
        self.shares_card.setVisible(bool(shares))
        self.set_theme(self._theme)

    def show_replies(self, recorded: Sequence[LaneRecording]) -> None:
        """The replies whose tokens are drawn over time, in the lanes' order."""
        self._recorded = tuple(recorded)
        self.tokens_card.setVisible(bool(recorded))
        self._draw()

    def _show_positions(self) -> None:
        while self._positions.count() > 1 and (item := self._positions.takeAt(1)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        self._bars = []
        for lane in self._lanes:
            if not lane.by_position:
                continue
            name = ElidedLabel()
            name.set_words(lane.name)
            name.setProperty("caption", True)
            bars = PositionBars()
            bars.set_rates(lane.by_position)
            self._bars.append(bars)
            self._positions.addWidget(name)
            self._positions.addWidget(bars)
            for widget in (name, bars):
                widget.show()
        self._positions.addStretch(1)
        self.positions_card.setVisible(bool(self._bars))

    def _draw(self) -> None:
        self._draw_rates()
        self._draw_tokens()

    def _draw_rates(self) -> None:
        """Kinds of work from top to bottom, so that their names have room."""
        plot, graph = self.rates, self.rates.graph
        plot.clear()
        plot.wear(self._theme)
        categories = list(dict.fromkeys(rate.category for lane in self._lanes for rate in lane.rates))
        lanes = max(len(self._lanes), 1)
        colours = lane_colours(self._theme, [lane.is_plain for lane in self._lanes])
        spread = min(0.62 / lanes, 0.24)
        highest = 0.0
        words = []
        for number, lane in enumerate(self._lanes):
            x, y, left, right = [], [], [], []
            for rate in lane.rates:
                x.append(rate.value)
                y.append(-categories.index(rate.category) - (number - (lanes - 1) / 2) * spread)
                right.append((rate.high if rate.high is not None else rate.value) - rate.value)
                left.append(rate.value - (rate.low if rate.low is not None else rate.value))
                highest = max(highest, rate.value + right[-1])
                words.append(f"{lane.name}, {rate.category}: {rate.value:.1f}")
            if not x:
                continue
            pen = QPen(QColor(colours[number]), 2)
            pen.setCosmetic(True)
            bars = graph.ErrorBarItem(
                x=_array(x), y=_array(y), left=_array(left), right=_array(right), beam=0.12, pen=pen
            )
            plot.plot.addItem(bars)
            fill = QColor(self._theme.card) if lane.is_plain else QColor(colours[number])
            plot.plot.addItem(
                graph.ScatterPlotItem(x=x, y=y, symbol=_SYMBOLS[number % MOST_LANES], size=11, pen=pen, brush=fill)
            )
        plot.plot.getAxis("left").setTicks([[(-place, name) for place, name in enumerate(categories)]])
        plot.plot.getAxis("left").setWidth(_widest(categories) + 14)
        plot.setFixedHeight(max(_PLOT_HEIGHT, 44 + len(categories) * max(26, 14 * lanes)))
        if categories:
            plot.plot.setXRange(0, max(highest * 1.06, 1.0), padding=0)
            plot.plot.setYRange(-len(categories) + 0.4, 0.6, padding=0)
        plot.setAccessibleDescription("; ".join(words))
        self.rates_card.setVisible(bool(words))

    def _draw_tokens(self) -> None:
        plot = self.tokens
        plot.clear()
        plot.wear(self._theme)
        plain = [lane.is_plain for lane in self._lanes] + [lane.is_plain for lane in self._recorded]
        colours = lane_colours(self._theme, plain)
        longest, most = 0.0, 1
        words = []
        names = [lane.name for lane in self._lanes]
        for place, lane in enumerate(self._recorded):
            # A lane whose run failed was not recorded: the others keep their colours.
            number = names.index(lane.name) if lane.name in names else len(names) + place
            x, y, tokens = [0.0], [0], 0
            for end, step in zip(lane.ends, lane.steps, strict=True):
                tokens += len(step.emitted)
                x.append(end)
                y.append(tokens)
            plot.plot.plot(x, y, pen=plot.pen(colours[number], number, 2.0))
            longest, most = max(longest, lane.seconds), max(most, tokens)
            words.append(self.tr("{0}: {1} tokens in {2} s").format(lane.name, tokens, f"{lane.seconds:.1f}"))
        if self._recorded:
            plot.plot.setXRange(0, longest * 1.02 or 1.0, padding=0)
            plot.plot.setYRange(0, most * 1.05, padding=0)
        plot.setAccessibleDescription("; ".join(words))


def _array(values: Sequence[float]) -> object:
    import numpy as np

    return np.asarray(values, dtype=float)


def _widest(names: Sequence[str]) -> int:
    metrics = QFontMetrics(ui_font(CAPTION_PIXELS))
    return max((metrics.horizontalAdvance(name) for name in names), default=20)
