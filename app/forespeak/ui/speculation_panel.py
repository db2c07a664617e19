"""What speculation does and what it buys, while it happens: the panel on the right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from forespeak.speculation.trace import GenerationStats, Source, SpeculationState, Step, StepCounter
from forespeak.ui.charts import Chart, PositionBars, Sparkline, StepsStrip
from forespeak.ui.draft_sources import reason_lines, short_name
from forespeak.ui.legend import Legend
from forespeak.ui.length_bars import LengthBars
from forespeak.ui.parity_card import ParityCard
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import LIGHT, MarkKind, Theme, mark_kind, source_kind

PANEL_WIDTH = 316
_TALL = 870
"""Pixels from which on there is room for more steps."""
_RATE_SECONDS = 0.25
"""How often the line of speeds gets a point."""


class _StateDot(Chart):
    """Filled while drafting, two bars while paused, hollow while off."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._active = self._paused = False
        self.setFixedSize(10, 20)

    def set_state(self, active: bool, paused: bool) -> None:
        self._active, self._paused = active, paused
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(self.theme.accepted_model.line if self._active else self.theme.control_line)
        if self._paused:
            for x in (1.5, 6.0):
                painter.fillRect(QRectF(x, 6, 2.5, 8), QColor(self.theme.muted))
        else:
            pen = painter.pen()
            pen.setColor(colour)
            pen.setWidthF(1.5)
            painter.setPen(pen)
            painter.setBrush(colour if self._active else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(5, 10), 3.7, 3.7)
        painter.end()


def is_paused(state: SpeculationState) -> bool:
    """Whether drafting rests because it was found not to pay; else it is off, or cannot be."""
    return not state.active and (state.costs is not None or state.reason.startswith("Paused"))


class SpeculationPanel(QWidget):
    """State and reason, speed, acceptance by position, steps and counts, with the legend of the marks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counter = StepCounter()
        self._kinds: set[MarkKind] = set()
        self._accepted_at: list[Counter[MarkKind]] = []
        """By position in the draft, whose tokens were accepted."""
        self._sources: tuple[Source, ...] = (Source.DRAFT_MODEL,)
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

        self._headings: list[PlainLabel] = []
        self._cards: list[QFrame] = []

        state = self._card(column, self.tr("SPECULATION"))
        row = QHBoxLayout()
        row.setSpacing(8)
        self._dot = _StateDot(inside)
        row.addWidget(self._dot, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        self._state = PlainLabel(inside)
        self._state.setWordWrap(True)
        self._reason = PlainLabel(inside)
        self._reason.setWordWrap(True)
        words.addWidget(self._state)
        words.addWidget(self._reason)
        row.addLayout(words, 1)
        state.addLayout(row)
        self._lengths_title = PlainLabel(self.tr("Steps by length of the draft"), inside)
        self._lengths = LengthBars(inside)
        self._lengths_title.setContentsMargins(0, 6, 0, 0)
        state.addWidget(self._lengths_title)
        state.addWidget(self._lengths)

        speed = self._card(column, self.tr("TOKENS PER SECOND"))
        row = QHBoxLayout()
        row.setSpacing(8)
        self._rate = PlainLabel(inside)
        self._baseline = PlainLabel(inside)
        row.addWidget(self._rate)
        row.addWidget(self._baseline, 1, Qt.AlignmentFlag.AlignBottom)
        speed.addLayout(row)
        self._sparkline = Sparkline(inside)
        speed.addWidget(self._sparkline)
        self._first_token = PlainLabel(inside)
        speed.addWidget(self._first_token)

        self._bars = PositionBars(inside)
        self._card(column, self.tr("ACCEPTED BY POSITION, IN %")).addWidget(self._bars)
        self._strip = StepsStrip(parent=inside)
        self._card(column, self.tr("STEPS, NEWEST LAST")).addWidget(self._strip)

        counts = self._card(column, self.tr("COUNTS"))
        grid = QGridLayout()
        grid.setVerticalSpacing(3)
        self._names: list[PlainLabel] = []
        self._values: dict[str, PlainLabel] = {}
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
            name, value = PlainLabel(text, inside), PlainLabel("–", inside)
            name.setBuddy(value)
            self._names.append(name)
            self._values[key] = value
            grid.addWidget(name, number, 0)
            grid.addWidget(value, number, 1, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(0, 1)
        counts.addLayout(grid)
        self._by_source = PlainLabel(inside)
        self._by_source.setWordWrap(True)
        self._by_source.setAccessibleName(self.tr("Accepted by source"))
        counts.addWidget(self._by_source)

        self.parity = ParityCard(inside)
        column.addWidget(self.parity)
        column.addStretch(1)
        self._legend = Legend(self)
        outer.addWidget(self._legend)
        self.set_theme(LIGHT)
        self.reset()

    def _card(self, column: QVBoxLayout, heading: str) -> QVBoxLayout:
        card = QFrame(self._inside)
        card.setObjectName("panelCard")
        inner = QVBoxLayout(card)
        inner.setContentsMargins(14, 10, 14, 11)
        inner.setSpacing(6)
        label = PlainLabel(heading, card)
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
        for label in (self._reason, self._lengths_title):
            label.setStyleSheet(f"color: {theme.muted}; font-size: 12px;")
        for label in (self._baseline, self._first_token, self._by_source, *self._names):
            label.setStyleSheet(f"color: {theme.muted}; font-size: 13px;")
        for label in self._values.values():
            label.setStyleSheet(f"color: {theme.ink}; font-size: 13px;")
        self._state.setStyleSheet(f"color: {theme.ink}; font-weight: 600;")
        self._colour_rate()
        self.parity.set_theme(theme)
        for chart in (self._dot, self._sparkline, self._bars, self._lengths, self._strip, self._legend):
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
        self._kinds.clear()
        self._accepted_at.clear()
        self._seconds = self._point_at = 0.0
        self._tokens_at_point = 0
        self._sparkline.reset()
        self._strip.reset()
        self._bars.set_rates(())
        self._show_lengths({})
        self._by_source.hide()
        self._show_legend()
        self._show_rate(0.0)
        self._first_token.setText(self.tr("No reply yet."))
        for value in self._values.values():
            value.setText("–")
        self.set_state(None)

    def set_state(self, state: SpeculationState | None) -> None:
        """What drafting does and why; None: nothing is known."""
        paused = state is not None and is_paused(state)
        self._dot.set_state(state is not None and state.active, paused)
        if state is None:
            self._state.setText(self.tr("Ready"))
            self._reason.setText(self.tr("What is drafted and what it buys appears here."))
            return
        if paused:
            headline = self.tr("Paused")
        elif not state.active:
            headline = self.tr("Off")
        elif state.draft_length == 1:
            headline = self.tr("Drafting 1 token at a time")
        elif state.draft_length:
            headline = self.tr("Drafting {0} tokens at a time").format(state.draft_length)
        else:
            headline = self.tr("Drafting")
        self._state.setText(headline)
        # The headline has said so already.
        self._reason.setText(reason_lines(state.reason.removeprefix("Paused: ").removeprefix(f"{headline}, ")))

    def set_sources(self, sources: tuple[Source, ...]) -> None:
        """What drafts for the next reply: the legend has them while there is nothing to explain yet."""
        if sources != self._sources:
            self._sources = sources
            self._show_legend()

    def _show_legend(self) -> None:
        accepted = {kind for kind in self._kinds if kind.source is not None}
        expected = {source_kind(source) for source in self._sources or (Source.DRAFT_MODEL,)}
        self._legend.set_kinds((accepted or expected) | {MarkKind.CORRECTED, MarkKind.BONUS, MarkKind.REJECTED})

    def add_steps(self, steps: Sequence[Step], seconds_since_first_token: float) -> None:
        """Steps that arrived by then, in order."""
        known = len(self._kinds)
        for step in steps:
            self._counter.add(step)
            self._count_kinds(step)
        if len(self._kinds) > known:
            self._show_legend()
        self._strip.add(steps)
        self._seconds = seconds_since_first_token
        elapsed = self._seconds - self._point_at
        if elapsed >= _RATE_SECONDS:
            rate = (self._counter.generated - self._tokens_at_point) / elapsed
            self._sparkline.add(rate)
            self._point_at, self._tokens_at_point = self._seconds, self._counter.generated
            self._show_counts(self._summary())

    def _count_kinds(self, step: Step) -> None:
        for place, token in enumerate(step.emitted):
            kind = mark_kind(token.origin, token.source)
            if kind is None or kind.source is None:
                break
            if place == len(self._accepted_at):
                self._accepted_at.append(Counter())
            self._accepted_at[place][kind] += 1
            self._kinds.add(kind)

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
        found = {source_kind(Source(name)) for name, _ in stats.accepted_by_source}
        if not found <= self._kinds:
            self._kinds |= found
            self._show_legend()
        self._show_counts(stats)
        self._show_rate(stats.tokens_per_second)
        if stats.speculation is not None:
            self.set_state(stats.speculation)
        if stats.time_to_first_token_seconds:
            words = self.tr("First token after {0} s").format(f"{stats.time_to_first_token_seconds:.2f}")
            self._first_token.setText(words)

    def _show_counts(self, stats: GenerationStats) -> None:
        tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
        self._bars.set_rates(stats.acceptance_rate_per_position, self._accepted_at)
        # Steps that are not at hand are counted in the figures.
        chosen = () if stats.speculation is None else stats.speculation.chosen_lengths
        self._show_lengths(self._counter.lengths or dict(chosen))
        accepted = self._counter.accepted_from or {Source(name): count for name, count in stats.accepted_by_source}
        if len(accepted) > 1:
            self._by_source.setText(
                " · ".join(f"{short_name(source)} {accepted[source]:,}" for source in Source if source in accepted)
            )
        self._by_source.setVisible(len(accepted) > 1)
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

    def _show_lengths(self, lengths: Mapping[int, int]) -> None:
        self._lengths.set_lengths(lengths)
        drafted = any(lengths)
        self._lengths_title.setVisible(drafted)
        self._lengths.setVisible(drafted)

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
        if text == self._rate.text():
            return
        self._rate.setText(text)
        self._colour_rate()
        # A label of a fixed size does not have the whole panel laid out anew whenever its text changes.
        if self._rate.sizeHint() != self._rate.size():
            self._rate.setFixedSize(self._rate.sizeHint())
        self._rate.setAccessibleName(self.tr("{0} tokens per second").format(text))
