"""Small coloured labels: whether a model fits this machine, and the like. The words say all; the colour repeats it."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from forespeak.ui.theme import CAPTION_PIXELS, LIGHT, Theme, ui_font

_SIDES = 9
_HEIGHT = 22


class BadgeTone(Enum):
    GOOD = "good"
    CAUTION = "caution"
    BAD = "bad"
    QUIET = "quiet"


def badge_colours(theme: Theme, tone: BadgeTone) -> tuple[str, str]:
    """Fill and text, as #RRGGBB."""
    match tone:
        case BadgeTone.GOOD:
            return theme.accepted_model.fill, theme.ink
        case BadgeTone.CAUTION:
            return theme.corrected.fill, theme.ink
        case BadgeTone.BAD:
            return theme.rejected.fill, theme.ink
        case BadgeTone.QUIET:
            return theme.bubble, theme.ink


def badge_size(words: str) -> QSize:
    return QSize(QFontMetrics(ui_font(CAPTION_PIXELS)).horizontalAdvance(words) + 2 * _SIDES + 2, _HEIGHT)


def paint_badge(painter: QPainter, area: QRect, words: str, tone: BadgeTone, theme: Theme) -> None:
    """At the left of `area`, in the middle of its height; cut where there is no room."""
    size = badge_size(words)
    width = min(size.width(), area.width())
    box = QRectF(area.left(), area.center().y() - _HEIGHT / 2 + 0.5, width, _HEIGHT)
    fill, text = badge_colours(theme, tone)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(fill))
    painter.drawRoundedRect(box, _HEIGHT / 2, _HEIGHT / 2)
    font = ui_font(CAPTION_PIXELS)
    painter.setFont(font)
    painter.setPen(QColor(text))
    room = width - 2 * _SIDES + 2
    cut = QFontMetrics(font).elidedText(words, Qt.TextElideMode.ElideRight, max(0, room))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, cut)
    painter.restore()


class Badge(QWidget):
    """One such label in a layout. Without words it takes no room."""

    def __init__(self, words: str = "", tone: BadgeTone = BadgeTone.QUIET, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_words(words, tone)

    @property
    def words(self) -> str:
        return self._words

    @property
    def tone(self) -> BadgeTone:
        return self._tone

    def set_words(self, words: str, tone: BadgeTone = BadgeTone.QUIET, tip: str = "") -> None:
        self._words, self._tone = words, tone
        self.setAccessibleName(words)
        self.setToolTip(tip)
        self.setVisible(bool(words))
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return badge_size(self._words)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(40, self.sizeHint().width()), _HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_badge(painter, self.rect(), self._words, self._tone, self._theme)
        painter.end()
