"""What drafts, to be ticked one by one: it stays open until the choice is made."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QGridLayout, QVBoxLayout, QWidget

from forespeak.speculation.trace import Source
from forespeak.ui.charts import Chart
from forespeak.ui.draft_sources import NAMES, in_order, what_it_does
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.text_look import paint_underline
from forespeak.ui.theme import Theme, source_kind

_WIDTH = 396
_EDGE = 8


class SourceSwatch(Chart):
    """The colour and the line that a source's accepted tokens wear."""

    def __init__(self, source: Source, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = source_kind(source)
        self.setFixedSize(30, 18)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mark = self.theme.mark(self._kind)
        rect = QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(mark.fill if self.isEnabled() else self.theme.line))
        painter.drawRoundedRect(rect, 3, 3)
        paint_underline(painter, rect, self._kind, mark.line if self.isEnabled() else self.theme.muted)
        painter.end()


class SourceMenu(QWidget):
    """A pop-up with a box for each source, and one for none. Arrow keys and Tab move, Space ticks, Escape closes."""

    chosen = Signal(object)
    """tuple of Sources in the order in which they are asked; empty: off"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        # A click on the button that opened it closes it, and must not open it again.
        self.setAttribute(Qt.WidgetAttribute.WA_NoMouseReplay)
        self.setAccessibleName(self.tr("Draft sources"))
        self.setFixedWidth(_WIDTH)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        frame = QFrame(self)
        frame.setObjectName("sourceMenu")
        outer.addWidget(frame)
        grid = QGridLayout(frame)
        grid.setContentsMargins(14, 12, 14, 10)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(0)
        grid.setColumnStretch(0, 1)
        heading = PlainLabel(self.tr("What drafts"), frame)
        heading.setProperty("heading", True)
        grid.addWidget(heading, 0, 0, 1, 3)
        words = self.tr(
            "Tick several for a chain: the text is looked up first, the draft model comes last, and the first that "
            "has a guess is taken."
        )
        grid.addWidget(self._caption(words, frame), 1, 0, 1, 3)
        grid.setRowMinimumHeight(2, 8)
        self.boxes: dict[Source, QCheckBox] = {}
        self._sentences: dict[Source, PlainLabel] = {}
        self._swatches: dict[Source, SourceSwatch] = {}
        self._places: dict[Source, PlainLabel] = {}
        row = 3
        for source in Source:
            box = QCheckBox(NAMES[source], frame)
            box.clicked.connect(self._ticked)
            sentence = self._caption(what_it_does(source), frame)
            sentence.setContentsMargins(29, 0, 0, 6)
            place, swatch = PlainLabel(frame), SourceSwatch(source, frame)
            place.setProperty("caption", True)
            self.boxes[source], self._sentences[source] = box, sentence
            self._places[source], self._swatches[source] = place, swatch
            grid.addWidget(box, row, 0)
            grid.addWidget(place, row, 1, Qt.AlignmentFlag.AlignRight)
            grid.addWidget(swatch, row, 2, Qt.AlignmentFlag.AlignRight)
            grid.addWidget(sentence, row + 1, 0, 1, 3)
            row += 2
        line = QFrame(frame)
        line.setObjectName("sourceMenuLine")
        line.setFixedHeight(1)
        grid.addWidget(line, row, 0, 1, 3)
        self.off = QCheckBox(self.tr("Off: the target writes alone"), frame)
        self.off.clicked.connect(self._off_ticked)
        grid.setRowMinimumHeight(row + 1, 6)
        grid.addWidget(self.off, row + 2, 0, 1, 3)
        self._on = True
        self._sources: tuple[Source, ...] = ()

    def _caption(self, words: str, parent: QWidget) -> PlainLabel:
        label = PlainLabel(words, parent)
        label.setProperty("caption", True)
        label.setWordWrap(True)
        return label

    def set_theme(self, theme: Theme) -> None:
        for swatch in self._swatches.values():
            swatch.set_theme(theme)

    def set_state(self, on: bool, sources: tuple[Source, ...], obstacle: str | None = None) -> None:
        """`obstacle`: why the draft model cannot be ticked, in a sentence."""
        self._on, self._sources = on, sources
        model = Source.DRAFT_MODEL
        for part in (self.boxes[model], self._swatches[model]):
            part.setEnabled(obstacle is None)
        self._sentences[model].setText(obstacle or what_it_does(model))
        asked = in_order(sources) if on else ()
        places = (
            self.tr("asked first"),
            self.tr("asked second"),
            self.tr("asked third"),
            self.tr("asked fourth"),
            self.tr("asked fifth"),
            self.tr("asked sixth"),
            self.tr("asked last"),
        )
        for source, box in self.boxes.items():
            box.setChecked(source in asked)
            in_chain = source in asked and len(asked) > 1
            self._places[source].setText(places[asked.index(source)] if in_chain else "")
            box.setAccessibleDescription(f"{self._sentences[source].text()} {self._places[source].text()}".strip())
        self.off.setChecked(not on)

    def open_below(self, widget: QWidget) -> None:
        """Right edges together, inside the screen."""
        self.adjustSize()
        corner = widget.mapToGlobal(QPoint(widget.width() - self.width(), widget.height() + 4))
        room = widget.screen().availableGeometry()
        x = min(max(corner.x(), room.left() + _EDGE), room.right() - self.width() - _EDGE)
        y = min(corner.y(), max(room.bottom() - self.height() - _EDGE, room.top()))
        self.move(x, y)
        self.show()
        first = next((box for box in self.boxes.values() if box.isChecked()), self.off)
        first.setFocus(Qt.FocusReason.PopupFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.close()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _ticked(self) -> None:
        # Nothing ticked is the same as off; what was chosen before comes back with the switch.
        self.chosen.emit(in_order(source for source, box in self.boxes.items() if box.isChecked()))

    @Slot(bool)
    def _off_ticked(self, off: bool) -> None:
        self.chosen.emit(() if off else self._sources)
