"""How text looks: its font, its styles, the marks under it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QTextCharFormat

from forespeak.ui.rich_text import Style, StyleRun
from forespeak.ui.theme import MarkKind, MarkStyle, Theme, code_font


@dataclass(frozen=True, slots=True)
class Look:
    """What decides how a text is painted."""

    theme: Theme
    marks: MarkStyle = MarkStyle.STRONG


@dataclass(frozen=True, slots=True)
class MarkRun:
    """Characters `start` to `end` (exclusive) were chosen so."""

    start: int
    end: int
    kind: MarkKind


@dataclass(frozen=True, slots=True)
class FlowFont:
    """`line_height` is a multiple of the font's pixel size."""

    font: QFont
    line_height: float
    colour: str = "ink"
    """A field of Theme."""


def char_format(run: StyleRun, theme: Theme) -> QTextCharFormat:
    """The format of a run of text, apart from its marks."""
    text = QTextCharFormat()
    if run.style & Style.CODE:
        text.setFont(code_font(), QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesSpecifiedOnly)
    if run.style & Style.BOLD:
        text.setFontWeight(QFont.Weight.DemiBold)
    if run.style & Style.ITALIC:
        text.setFontItalic(True)
    if run.style & Style.STRUCK:
        text.setFontStrikeOut(True)
    if run.style & Style.MUTED:
        text.setForeground(QColor(theme.muted))
    if run.style & Style.LINK:
        text.setForeground(QColor(theme.accent))
        text.setFontUnderline(True)
    if run.colour is not None:
        text.setForeground(QColor(getattr(theme, run.colour)))
    return text


_LOWER_LINES = {
    MarkKind.ACCEPTED_SIMPLE: [6.0, 2.0],
    MarkKind.ACCEPTED_MAP_K: [3.0, 2.0],
    MarkKind.ACCEPTED_MAP_K4V: [1.0, 1.0],
    MarkKind.ACCEPTED_MOD: [6.0, 2.0, 1.0, 2.0],
    MarkKind.ACCEPTED_CACHE: [1.0, 3.0],
}
"""Dashes and gaps of the second line, in pixels. That of prompt lookup is solid."""


@cache
def _pen(kind: MarkKind, colour: str) -> QPen:
    pen = QPen(QColor(colour), 1.0 if kind.looks_up else 1.4 if kind is MarkKind.REJECTED else 2.0)
    if kind.pen_style is Qt.PenStyle.DotLine:
        pen.setDashPattern([0.05, 1.75])
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    else:
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if kind.pen_style is Qt.PenStyle.DashLine:
            pen.setDashPattern([2.5, 1.5])
        elif kind in _LOWER_LINES:
            pen.setDashPattern(_LOWER_LINES[kind])
    return pen


@cache
def colour_of(name: str) -> QColor:
    """The colour #RRGGBB. Do not change the result."""
    return QColor(name)


def paint_underline(painter: QPainter, rect: QRectF, kind: MarkKind, colour: str) -> None:
    """The line at the bottom of a mark: solid, dotted or dashed by kind; through the middle for a rejected one.

    Two thin lines where the text was looked up: the upper one solid, the lower one with a rhythm for each source.
    """
    left, right, y = rect.left(), rect.right(), rect.bottom() - 1
    style = kind.pen_style
    if kind is MarkKind.REJECTED:
        y = rect.center().y() + 1
    elif kind.looks_up:
        # Whole pixels: a thin line between two of them would be a blur.
        low, wide = round(rect.bottom()) - 1.0, right - left - 1
        painter.fillRect(QRectF(left + 0.5, low - 2, wide, 1), colour_of(colour))
        if kind not in _LOWER_LINES:
            painter.fillRect(QRectF(left + 0.5, low, wide, 1), colour_of(colour))
            return
        left, right, y = left + 0.5, right - 0.5, low + 0.5
    elif style is Qt.PenStyle.SolidLine:
        # By far the most frequent one, and a filled rectangle is much cheaper than a stroke.
        painter.fillRect(QRectF(left + 0.5, y - 1, right - left - 1, 2), colour_of(colour))
        return
    elif style is Qt.PenStyle.DotLine:
        left, right = left + 1.5, right - 1
    painter.setPen(_pen(kind, colour))
    painter.drawLine(QPointF(left, y), QPointF(right, y))
