"""One lane of a comparison: its reply in the chat's colours as it grows, its speed and its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from PySide6.QtCore import QRect, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from forespeak.speculation.trace import Step, StepCounter
from forespeak.ui.charts import StepsStrip
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.message_body import MessageBody
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.provenance import TokenRef
from forespeak.ui.text_look import Look
from forespeak.ui.theme import LIGHT, MarkStyle, Theme
from forespeak.ui.token_card import TokenCard

_TEXT_HEIGHT = 142
_STRIP_ROWS = 3


@cache
def _on_card(theme: Theme) -> Theme:
    """Texts paint the ground that they stand on: here it is a card's."""
    return replace(theme, window=theme.card)


class _Text(QScrollArea):
    """A reply that is followed to its end while it grows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFixedHeight(_TEXT_HEIGHT)
        self.body = MessageBody(Look(_on_card(LIGHT)))
        self.body.selectionMoved.connect(self._bring_into_view)
        self.setWidget(self.body)

    def settle(self, *, to_end: bool) -> None:
        document = self.body.document
        width = float(max(self.viewport().width() - 4, 60))
        document.set_width(width)
        self.body.ensure(0.0, max(document.height, float(self.height())) * 2 + 400)
        tall = max(int(document.height + 1), self.viewport().height())
        self.body.resize(self.viewport().width(), tall)
        bar = self.verticalScrollBar()
        if to_end:
            bar.setValue(bar.maximum())

    def resizeEvent(self, event: QResizeEvent) -> None:
        bar = self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        super().resizeEvent(event)
        self.settle(to_end=at_end)

    @Slot(QRect)
    def _bring_into_view(self, place: QRect) -> None:
        self.ensureVisible(place.center().x(), place.center().y(), 10, 30)


class LaneView(QFrame):
    """Steps are appended as they come; `show_steps` shows any beginning of a recorded reply."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = LIGHT
        self._look = Look(_on_card(LIGHT))
        self._counter = StepCounter()
        self._shown = 0
        """Recorded steps on show."""
        self._steps: tuple[Step, ...] = ()
        self.name = ElidedLabel(self)
        self.name.setProperty("heading", True)
        self.rate = PlainLabel(self)
        self.text = _Text(self)
        self.strip = StepsStrip(_STRIP_ROWS, self)
        # Lanes keep their widths while these words grow.
        self.facts = ElidedLabel(self)
        self.facts.setProperty("caption", True)
        self.card = TokenCard(self)
        self.card.hide()
        self.text.body.tokenPointed.connect(self._show_card)
        self.text.body.focusMoved.connect(self.update)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self.name, 1)
        head.addWidget(self.rate)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 14, 14)
        column.setSpacing(10)
        column.addLayout(head)
        column.addWidget(self.text)
        column.addWidget(self.strip)
        column.addWidget(self.facts)
        self._is_plain = True
        self.set_rate(None)
        self._show_facts()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._look = Look(_on_card(theme), self._look.marks)
        self.text.body.set_look(self._look)
        self.text.setStyleSheet(f"QScrollArea {{ background: {theme.card}; border: none; }}")
        self.strip.set_theme(theme)
        self.card.set_theme(theme)
        self._paint_rate()
        self.text.settle(to_end=False)

    def set_mark_style(self, style: MarkStyle) -> None:
        self._look = Look(self._look.theme, style)
        self.text.body.set_look(self._look)

    def set_name(self, name: str, *, is_plain: bool) -> None:
        self._is_plain = is_plain
        self.name.set_words(name)
        self.setAccessibleName(self.tr("Lane: {0}").format(name))
        self._paint_rate()

    def set_rate(self, rate: float | None) -> None:
        """Tokens per second; None while nothing can be said."""
        self.rate.setText("" if rate is None else self.tr("{0} tokens/s").format(f"{rate:,.1f}"))

    def _paint_rate(self) -> None:
        colour = self._theme.muted if self._is_plain else self._theme.success
        weight = 400 if self._is_plain else 600
        self.rate.setStyleSheet(f"color: {colour}; font-weight: {weight};")

    # -- what grows

    def clear(self) -> None:
        self._steps, self._shown = (), 0
        self._empty()
        self.set_rate(None)

    def append(self, steps: Sequence[Step]) -> None:
        """More of a reply that is being written."""
        if not steps:
            return
        self.text.body.document.append(steps)
        for step in steps:
            self._counter.add(step)
        self.strip.add(steps)
        self.text.settle(to_end=True)
        self._show_facts()

    def show_steps(self, steps: tuple[Step, ...], count: int) -> None:
        """The first `count` of a recorded reply's steps."""
        if steps is not self._steps or count < self._shown:
            self._steps, self._shown = steps, 0
            self._empty()
        self.append(steps[self._shown : count])
        self._shown = count

    def _empty(self) -> None:
        self._counter = StepCounter()
        self.card.hide()
        self.text.body.document.begin("", ())
        self.text.body.content_changed()
        self.strip.reset()
        self.text.settle(to_end=True)
        self._show_facts()

    @property
    def words(self) -> str:
        """The reply as far as it is shown."""
        return self.text.body.document.text

    def _show_facts(self) -> None:
        counter = self._counter
        tokens = self.tr("1 token") if counter.generated == 1 else self.tr("{0} tokens").format(counter.generated)
        parts = [tokens]
        tested = counter.accepted + counter.rejected
        if tested:
            share = f"{100 * counter.accepted / tested:.0f}"
            parts.append(self.tr("{0} % of drafts accepted").format(share))
        if counter.speculated_steps:
            length = counter.speculated_emitted / counter.speculated_steps
            parts.append(self.tr("{0} tokens from each check").format(f"{length:.1f}"))
        self.facts.set_words(" · ".join(parts) if counter.generated else self.tr("Waiting for the first token"))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.text.body.focused_by_keyboard:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self._theme.accent), 2))
            painter.drawRoundedRect(self.rect().toRectF().adjusted(1, 1, -1, -1), 11, 11)
            painter.end()

    @Slot(object, QRect)
    def _show_card(self, ref: TokenRef | None, place: QRect) -> None:
        if ref is None:
            self.card.hide()
        else:
            self.card.show_token(ref, place)
