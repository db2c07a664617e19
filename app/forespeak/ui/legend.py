"""What the marks under a reply's text mean: no more of them than the reply has."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from forespeak.ui.charts import Chart
from forespeak.ui.draft_sources import what_it_does
from forespeak.ui.flow_row import FlowLayout
from forespeak.ui.text_look import paint_underline
from forespeak.ui.theme import CAPTION_PIXELS, MarkKind, Theme, ui_font

_WIDTH = 316


class _Lines(FlowLayout):
    """As high as it has to be in the panel, whose width is known before it is laid out."""

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, self.heightForWidth(_WIDTH))

    def minimumSize(self) -> QSize:
        return QSize(60, self.heightForWidth(_WIDTH))


def explained(kind: MarkKind) -> str:
    """What a kind of mark says, in a sentence or two."""
    match kind:
        case MarkKind.CORRECTED:
            return _tr("The draft proposed something else; the target put this in its place.")
        case MarkKind.BONUS:
            return _tr("The whole draft was accepted; the target added its own next token.")
        case MarkKind.REJECTED:
            return _tr("Proposed by the draft, refused by the target.")
        case MarkKind.ACCEPTED_MODEL:
            return _tr("Proposed by the draft model, accepted by the target.")
        case _:
            assert kind.source is not None
            return f"{_tr('Found in the text before, accepted by the target.')} {what_it_does(kind.source)}"


def _tr(words: str) -> str:
    return QCoreApplication.translate("Legend", words)


class LegendMark(Chart):
    """A word with the very mark it explains: fill and line style."""

    def __init__(self, kind: MarkKind, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = kind
        self.setAccessibleName(kind.label)
        self.setToolTip(explained(kind))
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(ui_font(CAPTION_PIXELS))
        return QSize(metrics.horizontalAdvance(self._kind.label) + 8, metrics.height() + 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mark = self.theme.mark(self._kind)
        rect = QRectF(self.rect()).adjusted(0.5, 1, -0.5, -1)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(mark.fill))
        painter.drawRoundedRect(rect, 3, 3)
        painter.setFont(ui_font(CAPTION_PIXELS))
        painter.setPen(QColor(mark.line if self._kind is MarkKind.REJECTED else self.theme.ink))
        painter.drawText(rect.adjusted(0, -1, 0, -1), Qt.AlignmentFlag.AlignCenter, self._kind.label)
        paint_underline(painter, rect.adjusted(2, 0, -2, 0), self._kind, mark.line)
        painter.end()


class Legend(QWidget):
    """The marks of the kinds it is told of, in the order of the enumeration."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Legend: what the marks under the text mean"))
        lines = _Lines(self, line_gap=6)
        lines.setContentsMargins(16, 8, 16, 12)
        self._marks = {kind: LegendMark(kind, self) for kind in MarkKind}
        for mark in self._marks.values():
            lines.addWidget(mark)

    def set_theme(self, theme: Theme) -> None:
        for mark in self._marks.values():
            mark.set_theme(theme)

    def set_kinds(self, kinds: Collection[MarkKind]) -> None:
        for kind, mark in self._marks.items():
            mark.setVisible(kind in kinds)
