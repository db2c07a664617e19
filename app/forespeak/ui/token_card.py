"""What happened at one token: a small card beside it."""

from __future__ import annotations

import html

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from forespeak.speculation.trace import Alternative, Origin, Source, Step
from forespeak.ui.draft_sources import short_name
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.provenance import TokenRef
from forespeak.ui.theme import CAPTION_PIXELS, LIGHT, Theme, source_kind, ui_font

_WIDTH = 312
_MARGIN = 14
_SHOWN = 28
_ROW = 22
_SHADOW = 10


def visible_text(text: str, limit: int = _SHOWN) -> str:
    """A token's text for reading: spaces and line ends made visible, a long one cut in the middle."""
    if not text:
        return "no text"
    shown = text.replace("\r", "␍").replace("\n", "↵").replace("\t", "⇥")
    if not text.strip():
        shown = shown.replace(" ", "␣")
    elif shown[0] == " ":
        shown = shown[1:]
    if len(shown) > limit:
        half = (limit - 1) // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return shown


def place_words(ref: TokenRef) -> str:
    """The round and the position in it; the token that comes with the prompt belongs to no round."""
    if ref.step.index == 0:
        return "from the prompt"
    return f"round {ref.step.index} · position {ref.index + 1}"


def story(ref: TokenRef, theme: Theme) -> str:
    """What happened, as rich text."""
    step, token = ref.step, ref.token

    def bold(text: str) -> str:
        return f"<b>{html.escape(visible_text(text))}</b>"

    def struck(text: str) -> str:
        mark = theme.rejected
        look = f"color:{mark.line};background-color:{mark.fill};text-decoration:line-through"
        return f'<span style="{look}">&nbsp;{html.escape(visible_text(text))}&nbsp;</span>'

    def named(source: Source) -> str:
        """In the colour that its tokens wear."""
        fill = theme.mark(source_kind(source)).fill
        return f'<span style="background-color:{fill}">{html.escape(short_name(source))}</span>'

    match token.origin:
        case Origin.ACCEPTED:
            if token.source is None:
                return "Accepted from a draft."
            name = named(token.source)
            if token.source.uses_model:
                return f"Accepted from the {name}."
            return f"Accepted from {name}: it has followed the same words before."
        case Origin.CORRECTED:
            if step.rejected:
                return f"The draft proposed {struck(step.rejected[0].text)}; the target chose {bold(token.text)}."
            return f"The draft proposed something else; the target chose {bold(token.text)}."
        case Origin.BONUS:
            count = step.accepted_count
            drafted = "The drafted token was" if count == 1 else f"All {count} drafted tokens were"
            return f"Bonus: {drafted[0].lower()}{drafted[1:]} accepted and the target added its own."
        case Origin.TARGET:
            return "The target chose it. Nothing was drafted here."
        case _:
            return "The engine does not say where this token came from."


def facts(ref: TokenRef) -> str:
    """Probabilities, source and times, in one line or two."""
    step, token = ref.step, ref.token
    parts = []
    if token.probability is not None:
        parts.append(f"target's p {token.probability:.2f}")
    if token.draft_probability is not None:
        parts.append(f"draft's q {token.draft_probability:.2f}")
    if token.origin is Origin.CORRECTED and step.rejected:
        rejected = step.rejected[0]
        if rejected.draft_probability is not None:
            parts.append(f"draft's q of its own guess {rejected.draft_probability:.2f}")
    if step.source is not None:
        parts.append(short_name(step.source))
    parts.append(_times(step))
    return " · ".join(part for part in parts if part)


def _times(step: Step) -> str:
    if not step.target_seconds:
        return ""
    check = f"check {step.target_seconds * 1e3:.1f} ms"
    return f"draft {step.draft_seconds * 1e3:.1f} ms, {check}" if step.draft_seconds else check


class AlternativeBars(QWidget):
    """The most probable tokens of a place, with the target's p of each."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows: list[tuple[str, float, bool]] = []
        self._theme = LIGHT

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def show_ref(self, ref: TokenRef) -> None:
        step, token = ref.step, ref.token
        rejected = step.rejected[0] if token.origin is Origin.CORRECTED and step.rejected else None
        found = {alternative.id: alternative for alternative in token.alternatives}
        if token.probability is not None and token.id not in found:
            found[token.id] = Alternative(token.id, token.text, token.probability)
        if rejected is not None and rejected.probability is not None and rejected.id not in found:
            found[rejected.id] = Alternative(rejected.id, rejected.text, rejected.probability)
        ranked = sorted(found.values(), key=lambda a: -a.probability)
        self._rows = [
            (visible_text(a.text, 14), a.probability, rejected is not None and a.id == rejected.id) for a in ranked[:6]
        ]
        words = ", ".join(f"{text} {p:.2f}" for text, p, _ in self._rows)
        self.setAccessibleName(f"Probabilities: {words}" if words else "")
        self.setFixedHeight(_ROW * len(self._rows))
        self.setVisible(bool(self._rows))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme
        for number, (text, probability, struck) in enumerate(self._rows):
            row = QRectF(0, number * _ROW, self.width(), _ROW)
            font = ui_font(CAPTION_PIXELS + 1)
            if struck:
                font = type(font)(font)
                font.setStrikeOut(True)
            painter.setFont(font)
            painter.setPen(QColor(theme.rejected.line if struck else theme.ink))
            name = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, 92)
            painter.drawText(row.adjusted(0, 0, -190, 0), Qt.AlignmentFlag.AlignVCenter, name)
            track = QRectF(100, row.center().y() - 3.5, self.width() - 148, 7)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.line))
            painter.drawRoundedRect(track, 3.5, 3.5)
            track.setWidth(max(track.width() * probability, 4.0))
            painter.setBrush(QColor(theme.rejected.line if struck else theme.accent))
            painter.drawRoundedRect(track, 3.5, 3.5)
            painter.setPen(QColor(theme.ink))
            painter.setFont(ui_font(CAPTION_PIXELS + 1))
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(row, align, f"{probability:.2f}")
        painter.end()


class TokenCard(QWidget):
    """Floats inside its window, below the token or above it. It never takes the focus."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column = self._column = QVBoxLayout(self)
        edge = _MARGIN + _SHADOW
        column.setContentsMargins(edge, edge - 2, edge, edge - 2)
        column.setSpacing(6)
        head = QHBoxLayout()
        self._token = PlainLabel(self)
        self._place = PlainLabel(self)
        head.addWidget(self._token, 1)
        head.addWidget(self._place)
        column.addLayout(head)
        self._story = PlainLabel(self)
        self._story.setTextFormat(Qt.TextFormat.RichText)
        self._story.setWordWrap(True)
        column.addWidget(self._story)
        self._bars = AlternativeBars(self)
        column.addWidget(self._bars)
        self._facts = PlainLabel(self)
        self._facts.setWordWrap(True)
        column.addWidget(self._facts)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._bars.set_theme(theme)
        size = f"font-size: {CAPTION_PIXELS + 1}px;"
        self._token.setStyleSheet(f"color: {theme.ink}; font-weight: 600; {size}")
        self._place.setStyleSheet(f"color: {theme.muted}; {size}")
        self._story.setStyleSheet(f"color: {theme.ink}; {size}")
        self._facts.setStyleSheet(f"color: {theme.muted}; {size}")
        self.update()

    def show_token(self, ref: TokenRef, place: QRect) -> None:
        """Tell about a token that stands at `place`, in global coordinates."""
        self._token.setText(f"“{visible_text(ref.token.text)}”" if ref.token.text else "no text")
        self._place.setText(place_words(ref))
        self._story.setText(story(ref, self._theme))
        self._facts.setText(facts(ref))
        self._bars.show_ref(ref)
        self.setAccessibleName(f"{self._token.text()}, {self._place.text()}")
        self.setAccessibleDescription(self._facts.text())
        parent = self.parentWidget()
        window = (parent or self).window()
        if parent is not window:
            self.setParent(window)
        width = min(_WIDTH + 2 * _SHADOW, window.width())
        self.setFixedWidth(width)
        self.setFixedHeight(self._column.totalHeightForWidth(width))
        at = window.mapFromGlobal(place.topLeft())
        x = min(max(at.x() - 60, 4 - _SHADOW), window.width() - width + _SHADOW - 4)
        y = at.y() + place.height() + 4 - _SHADOW
        if y + self.height() > window.height():
            y = max(at.y() - self.height() - 4 + _SHADOW, 0)
        self.move(QPoint(x, y))
        self.raise_()
        self.show()

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, 160)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card = QRectF(self.rect()).adjusted(_SHADOW + 0.5, _SHADOW + 0.5, -_SHADOW - 0.5, -_SHADOW - 0.5)
        painter.setPen(Qt.PenStyle.NoPen)
        for spread in range(_SHADOW, 0, -1):
            painter.setBrush(QColor(0, 0, 0, 5 if self._theme.dark else 3))
            painter.drawRoundedRect(card.adjusted(-spread, -spread + 3, spread, min(spread + 3, _SHADOW)), 12, 12)
        painter.setPen(QColor(self._theme.line))
        painter.setBrush(QColor(self._theme.card))
        painter.drawRoundedRect(card, 11, 11)
        painter.end()
