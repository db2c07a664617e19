"""Words in the rows of lists that are painted: cut where there is no room, one below the other."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter

from forespeak.ui.theme import CAPTION_PIXELS, TEXT_PIXELS, ui_font

LEFT = Qt.AlignmentFlag.AlignLeft


def paint_words(
    painter: QPainter,
    words: str,
    place: QRect,
    font: QFont,
    colour: str,
    side: Qt.AlignmentFlag = LEFT,
    *,
    sentence: bool = False,
) -> None:
    """In the middle of the place's height; `font` is one of `ui_font`.

    What does not fit is cut in its middle, where names differ least; a sentence at its end.
    """
    painter.setFont(font)
    painter.setPen(QColor(colour))
    cut = _cut(words, font.pixelSize(), font.weight().value, place.width(), sentence)
    painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter, cut)


def paint_two_lines(
    painter: QPainter, room: QRect, name: str, ink: str, caption: str, caption_ink: str, *, sentence: bool = False
) -> None:
    """A name, and small words below it, which may be a sentence."""
    name_font, caption_font = ui_font(TEXT_PIXELS, QFont.Weight.DemiBold.value), ui_font(CAPTION_PIXELS)
    high, low = QFontMetrics(name_font).height(), QFontMetrics(caption_font).height()
    top = room.center().y() - (high + low + 2) // 2
    paint_words(painter, name, QRect(room.left(), top, room.width(), high), name_font, ink)
    below = QRect(room.left(), top + high + 2, room.width(), low)
    paint_words(painter, caption, below, caption_font, caption_ink, sentence=sentence)


@lru_cache(maxsize=4096)
def _cut(words: str, pixels: int, weight: int, width: int, sentence: bool) -> str:
    """The same words are painted again and again, at the same width."""
    mode = Qt.TextElideMode.ElideRight if sentence else Qt.TextElideMode.ElideMiddle
    return QFontMetrics(ui_font(pixels, weight)).elidedText(words, mode, width)
