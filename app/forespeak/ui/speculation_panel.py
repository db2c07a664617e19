"""What speculation does and what it buys, while it happens: the panel on the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from forespeak.speculation.trace import GenerationStats, SpeculationState, Step, StepCounter
from forespeak.ui.charts import Chart, LegendMark, PositionBars, Sparkline, StepsStrip
from forespeak.ui.theme import LIGHT, MarkKind, Theme

PANEL_WIDTH = 316
_TALL = 870
"""Pixels from which on there is room for more steps."""
_RATE_SECONDS = 0.25
"""How often the line of speeds gets a point."""


class _StateDot(Chart):
    """Filled while drafting, hollow while not."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._active = False
        self.setFixedSize(10, 20)

    def set_active(self, active: bool) -> None:
        self._active = active
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(self.theme.accepted_model.line if self._active else self.theme.control_line)
        pen = painter.pen()
        pen.setColor(colour)
        pen.setWidthF(1.5)
        painter.setPen(pen)
        painter.setBrush(colour if self._active else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(5, 10), 3.7, 3.7)
        painter.end()


class _Wrap(QLayout):
    """Widgets in rows, as many in each as fit."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        margins = self.contentsMargins()
        inside = QRect(0, 0, width - margins.left() - margins.right(), 0)
        return self._arrange(inside, move=False) + margins.top() + margins.bottom()

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect.marginsRemoved(self.contentsMargins()), move=True)

    def sizeHint(self) -> QSize:
        return QSize(PANEL_WIDTH, self.heightForWidth(PANEL_WIDTH))

    def minimumSize(self) -> QSize:
        return QSize(60, self.heightForWidth(PANEL_WIDTH))

    def _arrange(self, rect: QRect, *, move: bool) -> int:
        x, y, tallest = rect.x(), rect.y(), 0
        for item in self._items:
            size = item.sizeHint()
            if x > rect.x() and x + size.width() > rect.right() + 1:
                x, y, tallest = rect.x(), y + tallest + 6, 0
            if move:
                item.setGeometry(QRect(x, y, size.width(), size.height()))
            x += size.width() + 8
            tallest = max(tallest, size.height())
        return y + tallest - rect.y()


class SpeculationPanel(QWidget):
    """State and reason, speed, acceptance by position, steps and counts, with the legend of the marks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counter = StepCounter()
        self._theme = LIGHT
        self._seconds = 0.0
        self._point_at = 0.0
        self._tokens_at_point = 0
        self._plain: float | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(260)
        self.setMaximumWidth(PANEL_WIDTH)
        self.setAccessibleName(self.tr("Speculation"))

        inside = QWidget()
        inside.setObjectName("speculationPanel")
        self._inside = inside
        column = QVBoxLayout(inside)
        column.setContentsMargins(16, 14, 16, 8)
        column.setSpacing(10)
        scroll = QScrollArea(self)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inside)
        self._scroll = scroll
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(scroll, 1)

        self._headings: list[QLabel] = []
        self._cards: list[QFrame] = []

        state = self._card(column, self.tr("SPECULATION"))
        row = QHBoxLayout()
        row.setSpacing(8)
        self._dot = _StateDot(inside)
        row.addWidget(self._dot, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        self._state = QLabel(inside)
        self._state.setWordWrap(True)
        self._reason = QLabel(inside)
        self._reason.setWordWrap(True)
        self._reason.setTextFormat(Qt.TextFormat.PlainText)
        words.addWidget(self._state)
        words.addWidget(self._reason)
        row.addLayout(words, 1)
        state.addLayout(row)

        speed = self._card(column, self.tr("TOKENS PER SECOND"))
        row = QHBoxLayout()
        row.setSpacing(8)
        self._rate = QLabel(inside)
        self._baseline = QLabel(inside)
        row.addWidget(self._rate)
        row.addWidget(self._baseline, 1, Qt.AlignmentFlag.AlignBottom)
        speed.addLayout(row)
        self._sparkline = Sparkline(inside)
        speed.addWidget(self._sparkline)
        self._first_token = QLabel(inside)
        speed.addWidget(self._first_token)

        self._bars = PositionBars(inside)
        self._card(column, self.tr("ACCEPTED BY POSITION, IN %")).addWidget(self._bars)
        self._strip = StepsStrip(parent=inside)
        self._card(column, self.tr("STEPS, NEWEST LAST")).addWidget(self._strip)

        counts = self._card(column, self.tr("COUNTS"))
        grid = QGridLayout()
        grid.setVerticalSpacing(3)
        self._names: list[QLabel] = []
        self._values: dict[str, QLabel] = {}
        for number, (key, text) in enumerate(
            (
                ("rate", self.tr("Acceptance rate")),
                ("tested", self.tr("Drafted and tested")),
                ("accepted", self.tr("Accepted")),
                ("rejected", self.tr("Rejected")),
                ("ignored", self.tr("Ignored, never tested")),
                ("length", self.tr("Mean acceptance length")),
                ("share", self.tr("Time spent drafting")),
            )
        ):
            name, value = QLabel(text, inside), QLabel("–", inside)
            name.setBuddy(value)
            self._names.append(name)
            self._values[key] = value
            grid.addWidget(name, number, 0)
            grid.addWidget(value, number, 1, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(0, 1)
        counts.addLayout(grid)

        column.addStretch(1)
        legend = QWidget(self)
        legend.setAccessibleName(self.tr("Legend: what the marks under the text mean"))
        wrap = _Wrap(legend)
        wrap.setContentsMargins(16, 8, 16, 12)
        self._legend = [LegendMark(kind, legend) for kind in MarkKind]
        for mark in self._legend:
            wrap.addWidget(mark)
        outer.addWidget(legend)
        self.set_theme(LIGHT)
        self.reset()

    def _card(self, column: QVBoxLayout, heading: str) -> QVBoxLayout:
        card = QFrame(self._inside)
        card.setObjectName("panelCard")
        inner = QVBoxLayout(card)
        inner.setContentsMargins(14, 10, 14, 11)
        inner.setSpacing(6)
        label = QLabel(heading, card)
        self._headings.append(label)
        self._cards.append(card)
        inner.addWidget(label)
        column.addWidget(card)
        return inner

    def sizeHint(self) -> QSize:
        return QSize(PANEL_WIDTH, 700)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(f"SpeculationPanel, #speculationPanel {{ background: {theme.side}; }}")
        for card in self._cards:
            card.setStyleSheet(
                f"#panelCard {{ background: {theme.card}; border: 1px solid {theme.line}; border-radius: 12px; }}"
            )
        muted = f"color: {theme.muted}; font-size: 12px;"
        for label in self._headings:
            label.setStyleSheet(f"{muted} font-weight: 600;")
        for label in (self._reason, self._baseline, self._first_token, *self._names):
            label.setStyleSheet(f"color: {theme.muted}; font-size: 13px;")
        for label in self._values.values():
            label.setStyleSheet(f"color: {theme.ink}; font-size: 13px;")
        self._state.setStyleSheet(f"color: {theme.ink}; font-weight: 600;")
        self._colour_rate()
        for chart in (self._dot, self._sparkline, self._bars, self._strip, *self._legend):
            chart.set_theme(theme)

    def _colour_rate(self) -> None:
        colour = self._theme.muted if self._rate.text() == "–" else self._theme.ink
        sheet = f"color: {colour}; font-size: 34px; font-weight: 650;"
        if self._rate.styleSheet() != sheet:
            self._rate.setStyleSheet(sheet)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._strip.set_rows(7 if self.height() >= _TALL else 5)
        super().resizeEvent(event)

    # What happens

    def reset(self) -> None:
        """Before a generation: nothing is known yet. The baseline stays."""
        self._counter = StepCounter()
        self._seconds = self._point_at = 0.0
        self._tokens_at_point = 0
        self._sparkline.reset()
        self._strip.reset()
        self._bars.set_rates(())
        self._show_rate(0.0)
        self._first_token.setText(self.tr("No reply yet."))
        for value in self._values.values():
            value.setText("–")
        self.set_state(None)

    def set_state(self, state: SpeculationState | None) -> None:
        """What drafting does and why; None: nothing is known."""
        self._dot.set_active(state is not None and state.active)
        if state is None:
            self._state.setText(self.tr("Ready"))
            self._reason.setText(self.tr("What is drafted and what it buys appears here."))
            return
        if not state.active:
            headline = self.tr("Off for now")
        elif state.draft_length == 1:
            headline = self.tr("Drafting 1 token at a time")
        elif state.draft_length:
            headline = self.tr("Drafting {0} tokens at a time").format(state.draft_length)
        else:
            headline = self.tr("Drafting")
        self._state.setText(headline)
        self._reason.setText(state.reason)

    def add_steps(self, steps: Sequence[Step], seconds_since_first_token: float) -> None:
        """Steps that arrived by then, in order."""
        for step in steps:
            self._counter.add(step)
        self._strip.add(steps)
        self._seconds = seconds_since_first_token
        elapsed = self._seconds - self._point_at
        if elapsed >= _RATE_SECONDS:
            rate = (self._counter.generated - self._tokens_at_point) / elapsed
            self._sparkline.add(rate)
            self._point_at, self._tokens_at_point = self._seconds, self._counter.generated
            self._show_counts(self._summary())

    def _summary(self) -> GenerationStats:
        return self._counter.summary(
            prompt_tokens=0,
            reused_prompt_tokens=0,
            time_to_first_token_seconds=0.0,
            decode_seconds=self._seconds,
            speculation=None,
        )

    def set_stats(self, stats: GenerationStats) -> None:
        """The final figures of a generation."""
        self._show_counts(stats)
        self._show_rate(stats.tokens_per_second)
        if stats.speculation is not None:
            self.set_state(stats.speculation)
        if stats.time_to_first_token_seconds:
            words = self.tr("First token after {0} s").format(f"{stats.time_to_first_token_seconds:.2f}")
            self._first_token.setText(words)

    def _show_counts(self, stats: GenerationStats) -> None:
        tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
        self._bars.set_rates(stats.acceptance_rate_per_position)
        rate, length = stats.acceptance_rate, stats.mean_acceptance_length
        for key, text in (
            ("rate", "–" if rate is None else f"{rate * 100:.0f} %"),
            ("tested", f"{tested:,}"),
            ("accepted", f"{stats.accepted_draft_tokens_count:,}"),
            ("rejected", f"{stats.rejected_draft_tokens_count:,}"),
            ("ignored", f"{stats.ignored_draft_tokens_count:,}"),
            ("length", "–" if length is None else f"{length:.1f}"),
            ("share", f"{stats.draft_time_share * 100:.0f} %"),
        ):
            self._values[key].setText(text)
        for name, value in zip(self._names, self._values.values(), strict=True):
            value.setAccessibleName(f"{name.text()}: {value.text()}")

    def set_plain_baseline(self, tokens_per_second: float | None) -> None:
        """The speed without speculation on this machine, if it has been measured."""
        self._plain = tokens_per_second
        self._sparkline.set_baseline(tokens_per_second)
        text = "" if tokens_per_second is None else self.tr("plain {0}").format(f"{tokens_per_second:.1f}")
        self._baseline.setText(text)

    def set_live_rate(self, tokens_per_second: float) -> None:
        """The speed right now."""
        self._show_rate(tokens_per_second)

    def set_first_token(self, seconds: float) -> None:
        """The time to the first token, as soon as it is there."""
        self._first_token.setText(self.tr("First token after {0} s").format(f"{seconds:.2f}"))

    def _show_rate(self, rate: float) -> None:
        text = f"{rate:,.1f}" if rate else "–"
        self._rate.setText(text)
        self._colour_rate()
        self._rate.setAccessibleName(self.tr("{0} tokens per second").format(text))
