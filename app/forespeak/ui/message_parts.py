"""The parts messages are made of: what is known of one, its buttons, its figures, its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from forespeak.engines.engine import Role
from forespeak.speculation.trace import GenerationStats, Step
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.theme import CAPTION_PIXELS, REPLY_LINE_HEIGHT, REPLY_PIXELS, Theme, ui_font

_NOTE_ICONS = {"stopped": "stop", "interrupted": "interrupted", "failed": "warning"}
_NOTE_HEIGHT = 26
_GAP = 6


@dataclass(frozen=True, slots=True)
class MessageItem:
    """What the conversation shows of a message.

    `steps` may be a function, which is called when the reply is about to be seen. `state` is "complete",
    "generating", "stopped", "interrupted" or "failed"; `note` explains the last three. `version` counts from 1.
    `plain_tokens_per_second` is the speed without speculation, where it has been measured.
    """

    id: int
    role: Role
    text: str
    steps: tuple[Step, ...] | Callable[[], tuple[Step, ...]] = ()
    stats: GenerationStats | None = None
    state: str = "complete"
    note: str = ""
    version: int = 1
    versions: int = 1
    plain_tokens_per_second: float | None = None


def estimated_height(text: str, width: float) -> float:
    """Pixels that a text will take, roughly, before it is laid out."""
    lines = len(text) * 7.6 / max(width, 60.0) + text.count("\n") * 0.7 + 0.6
    return lines * REPLY_PIXELS * REPLY_LINE_HEIGHT


class QuietButton(QToolButton):
    """An action on a message. With `quiet_until_hovered` it shows only under the pointer or with the focus."""

    def __init__(self, name: str, text: str, parent: QWidget, *, quiet_until_hovered: bool = False) -> None:
        super().__init__(parent)
        self._name = name
        self._quiet = quiet_until_hovered
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.setIconSize(QSize(16, 16))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def set_theme(self, theme: Theme) -> None:
        self.setIcon(icon(self._name, theme.muted, theme.line))

    def set_icon_name(self, name: str, text: str, theme: Theme) -> None:
        self._name = name
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.set_theme(theme)

    def paintEvent(self, event: QPaintEvent) -> None:
        parent = self.parentWidget()
        if not self._quiet or self.hasFocus() or (parent is not None and parent.underMouse()):
            super().paintEvent(event)


class PromptProgressBar(QWidget):
    """How much of the prompt has been read, until the first token is there."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._done = self._total = 0
        self.setAccessibleName(self._words())

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_progress(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        self.setAccessibleName(self._words())
        self.update()

    def _words(self) -> str:
        if not self._total:
            return self.tr("Waiting for the first token")
        return self.tr("Reading {0} of {1} tokens").format(f"{self._done:,}", f"{self._total:,}")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(ui_font(CAPTION_PIXELS + 1))
        painter.setPen(QColor(self._theme.muted))
        text = self._words()
        painter.drawText(QRectF(0, 0, self.width(), 26), Qt.AlignmentFlag.AlignVCenter, text)
        if self._total:
            left = painter.fontMetrics().horizontalAdvance(text) + 12.0
            painter.setPen(Qt.PenStyle.NoPen)
            for share, colour in ((1.0, self._theme.line), (self._done / self._total, self._theme.accent)):
                painter.setBrush(QColor(colour))
                painter.drawRoundedRect(QRectF(left, 10.5, 120 * min(share, 1.0), 5), 2.5, 2.5)
        painter.end()


class ReplyFooter(QWidget):
    """A finished reply's figures and actions, and why it ended early if it did."""

    def __init__(self, item: MessageItem, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._item = item
        self._theme = theme
        self._note = self._note_icon = None
        self._measured: tuple[float, float] | None = None
        if item.state in _NOTE_ICONS:
            self._note = PlainLabel(item.note or self._default_note(), self)
            self._note.setWordWrap(True)
            self._note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._note_icon = PlainLabel(self)
        self._figures = PlainLabel(figures_of(item, theme), self)
        self._figures.setTextFormat(Qt.TextFormat.RichText)
        self._figures.setWordWrap(True)
        self._figures.setAccessibleName(self.tr("Figures of this reply"))
        self._figures.setToolTip(baseline_words(item))
        self._figures.setAccessibleDescription(self._figures.toolTip())
        self._actions = QWidget(self)
        self.copy = QuietButton("copy", self.tr("Copy this reply"), self._actions)
        self.regenerate = QuietButton("regenerate", self.tr("Write this reply again"), self._actions)
        self.raw = QuietButton("raw", self.tr("Show the tokens of the source"), self._actions)
        self.raw.setCheckable(True)
        self.compare = QuietButton("compare", self.tr("Compare on this prompt"), self._actions)

    def add_actions(self, versions: Sequence[QWidget], *, raw: bool) -> None:
        """Put the buttons in their row, behind those that choose a version."""
        row = QHBoxLayout(self._actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for widget in (*versions, self.copy, self.regenerate, self.raw, self.compare):
            row.addWidget(widget)
        self.show_raw(raw)
        self.set_theme(self._theme)

    def show_raw(self, raw: bool) -> None:
        self.raw.setChecked(raw)
        text = self.tr("Show the rendered text") if raw else self.tr("Show the tokens of the source")
        self.raw.set_icon_name("rendered" if raw else "raw", text, self._theme)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._figures.setText(figures_of(self._item, theme))
        self._measured = None
        for button in self.findChildren(QuietButton):
            button.set_theme(theme)
        if self._note_icon is not None:
            colour = theme.danger if self._item.state == "failed" else theme.muted
            self._note_icon.setPixmap(icon(_NOTE_ICONS[self._item.state], colour).pixmap(QSize(16, 16)))

    def _default_note(self) -> str:
        return {
            "stopped": self.tr("You stopped this reply."),
            "interrupted": self.tr("This reply was interrupted. What had arrived was kept."),
            "failed": self.tr("This reply failed."),
        }[self._item.state]

    def _figures_beside(self, width: float) -> bool:
        return self._figures_width() + self._actions.sizeHint().width() + 16 <= width

    def _figures_width(self) -> int:
        """What they take in one line."""
        self._figures.setWordWrap(False)
        width = self._figures.sizeHint().width() if self._figures.text() else 0
        self._figures.setWordWrap(True)
        return width

    def needed_height(self, width: float) -> float:
        if self._measured is None or self._measured[0] != width:
            self._measured = width, self._measure(width)
        return self._measured[1]

    def _measure(self, width: float) -> float:
        note = self._note_height(width)
        if self._figures_beside(width):
            return note + _GAP + 28
        return note + _GAP + self._figures.heightForWidth(int(width)) + 30

    def _note_height(self, width: float) -> float:
        if self._note is None:
            return 0.0
        return max(self._note.heightForWidth(int(width) - 24), _NOTE_HEIGHT - 6) + 8

    def resizeEvent(self, event: QResizeEvent) -> None:
        width = self.width()
        y = _GAP
        if self._note is not None and self._note_icon is not None:
            height = int(self._note_height(width))
            self._note_icon.setGeometry(0, y, 18, 20)
            self._note.setGeometry(24, y, width - 24, height - 8)
            y += height
        actions = self._actions.sizeHint()
        if self._figures_beside(width):
            figures = self._figures_width()
            self._figures.setGeometry(0, y, figures, 28)
            self._actions.setGeometry(figures + (12 if figures else -4), y, actions.width(), 28)
        else:
            height = self._figures.heightForWidth(width)
            self._figures.setGeometry(0, y, width, height)
            self._actions.setGeometry(-4, y + height + 2, actions.width(), 28)


def figures_of(item: MessageItem, theme: Theme) -> str:
    """A reply's figures as rich text: the speed, what it gained, and what became of the drafts."""
    stats = item.stats
    if stats is None or not stats.generated_tokens:
        return ""
    parts = []
    if stats.tokens_per_second:
        parts.append(_figure(f"{stats.tokens_per_second:,.1f}", "tokens/s", theme))
        gain = gain_of(item)
        if gain is not None:
            words = f"{gain:.2f}× faster" if gain >= 1.005 else f"{gain:.2f}× of plain speed"
            # Reckoned, not measured beside a plain reply.
            words = words if item.plain_tokens_per_second else f"≈ {words}"
            colour = theme.success if gain >= 1.005 else theme.muted
            parts.append(f'<span style="color:{colour};font-weight:600">{words}</span>')
    if stats.acceptance_rate is not None:
        parts.append(_figure(f"{stats.acceptance_rate:.0%}".replace("%", " %"), "of drafts accepted", theme))
    if stats.time_to_first_token_seconds:
        parts.append(f"first token {stats.time_to_first_token_seconds:.2f} s")
    tokens = "1 token" if stats.generated_tokens == 1 else f"{stats.generated_tokens:,} tokens"
    parts.append(tokens)
    joined = "&nbsp;&nbsp; ".join(part.replace(" ", "&nbsp;") if "<" not in part else part for part in parts)
    return f'<span style="color:{theme.muted};font-size:13px">{joined}</span>'


def gain_of(item: MessageItem) -> float | None:
    """How many times as fast as without speculation; None for a reply that was written without, and where nothing plain
    was measured to compare it with.
    """
    stats = item.stats
    if stats is None or not stats.tokens_per_second or not _tested(stats):
        return None
    if item.plain_tokens_per_second:
        return stats.tokens_per_second / item.plain_tokens_per_second
    seconds = _plain_step_seconds(stats)
    return None if seconds is None else stats.tokens_per_second * seconds


def plain_rate_of(item: MessageItem) -> float | None:
    """Tokens per second without speculation, as measured here for the model of a reply; None if it was not."""
    stats = item.stats
    if item.plain_tokens_per_second or stats is None:
        return item.plain_tokens_per_second
    if stats.tokens_per_second and stats.speculation is not None and not stats.total_draft_tokens_count:
        # It was written without a draft itself.
        return stats.tokens_per_second
    seconds = _plain_step_seconds(stats)
    return 1.0 / seconds if seconds else None


def _plain_step_seconds(stats: GenerationStats) -> float | None:
    """What a step without a draft takes, as timed on this machine; None where nothing was drafted."""
    costs = None if stats.speculation is None else stats.speculation.costs
    return costs.plain_seconds if costs is not None and costs.plain_seconds > 0 and _tested(stats) else None


def _tested(stats: GenerationStats) -> int:
    """How many drafted tokens the target has looked at."""
    return stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count


def baseline_words(item: MessageItem) -> str:
    """What the gain in a reply's figures is measured against, or that there is nothing to measure it against."""
    stats = item.stats
    if stats is None or not stats.tokens_per_second or not _tested(stats):
        return ""
    plain = item.plain_tokens_per_second
    if plain:
        return QCoreApplication.translate(
            "ReplyFooter",
            "Compared with {0} tokens/s: this model’s last reply without speculation on this machine.",
        ).format(f"{plain:,.1f}")
    seconds = _plain_step_seconds(stats)
    if seconds is not None:
        return QCoreApplication.translate(
            "ReplyFooter",
            "Estimated: without speculation a token takes this model {0} ms, as timed on this machine. “Compare on "
            "this prompt” measures it.",
        ).format(f"{seconds * 1e3:.1f}")
    return QCoreApplication.translate(
        "ReplyFooter",
        "No gain is shown: this model’s speed without speculation has not been measured here. “Compare on this "
        "prompt” does it.",
    )


def _figure(number: str, unit: str, theme: Theme) -> str:
    number, unit = number.replace(" ", "&nbsp;"), unit.replace(" ", "&nbsp;")
    return f'<span style="color:{theme.ink};font-weight:600">{number}</span>&nbsp;{unit}'
