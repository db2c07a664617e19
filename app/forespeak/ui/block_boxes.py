"""Blocks of Markdown as painted boxes of a given width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from forespeak.ui.code_colours import colour_code
from forespeak.ui.markdown_blocks import Block, CodeBlock, RuleBlock, TableBlock, TextBlock
from forespeak.ui.rich_text import RichText, SourceRun, Style, StyleRun
from forespeak.ui.text_flow import TextFlow
from forespeak.ui.text_look import FlowFont, Look, MarkRun
from forespeak.ui.theme import CAPTION_PIXELS, REPLY_LINE_HEIGHT, REPLY_PIXELS, Theme, code_font, ui_font

_LIST_INDENT = 30.0
_MARKER_GAP = 8.0
_QUOTE_INDENT = 18.0
_CODE_HEADER = 34.0
_CODE_PADDING = 14.0
_CELL_PADDING = 10.0
_HEADINGS = {1: 22, 2: 19, 3: 17, 4: 15, 5: 15, 6: 15}

MarksOf = Callable[[Sequence[SourceRun]], list[MarkRun]]
Selection = Callable[[TextFlow], tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class PlacedFlow:
    """A flow and its corner, from the box's corner."""

    flow: TextFlow
    at: QPointF


class Box:
    """Something with a height. Coordinates are from the box's own corner."""

    def __init__(self, gap: float, nesting: tuple[str, ...]) -> None:
        self.gap = gap
        """Space above, unless it is the first one."""
        self.top = 0.0
        self.height = 0.0
        self._nesting = nesting
        self.indent = sum(_LIST_INDENT if kind == "list" else _QUOTE_INDENT for kind in nesting)

    def layout(self, width: float, theme: Theme) -> None:
        raise NotImplementedError

    def flows(self) -> Sequence[PlacedFlow]:
        """The texts in reading order."""
        return ()

    def paint(self, painter: QPainter, clip: QRectF, look: Look, selection: Selection) -> None:
        """Paint what meets `clip`, the painter standing at the box's corner."""
        self._paint_quotes(painter, look.theme)
        for placed in self.flows():
            placed.flow.paint(painter, placed.at, clip, look, selection(placed.flow))

    def _paint_quotes(self, painter: QPainter, theme: Theme) -> None:
        x = 0.0
        for kind in self._nesting:
            if kind == "quote":
                painter.fillRect(QRectF(x + 2, 0, 3, self.height), QColor(theme.line))
            x += _LIST_INDENT if kind == "list" else _QUOTE_INDENT


def reply_font() -> FlowFont:
    return FlowFont(ui_font(REPLY_PIXELS), REPLY_LINE_HEIGHT)


class TextBox(Box):
    """A paragraph, a heading or an item of a list."""

    def __init__(
        self, block: TextBlock, marks_of: MarksOf, font: FlowFont | None = None, gap: float | None = None
    ) -> None:
        if font is None:
            font = reply_font()
            if block.level:
                font = FlowFont(ui_font(_HEADINGS[block.level], QFont.Weight.DemiBold.value), 1.4)
        if gap is None:
            gap = (20.0 if block.level < 3 else 16.0) if block.level else (4.0 if block.tight else 12.0)
        super().__init__(gap, block.nesting)
        self.flow = TextFlow(block.content, marks_of(block.content.sources), font)
        self._flows = [PlacedFlow(self.flow, QPointF(self.indent, 0))]
        self._marker: TextFlow | None = None
        if block.marker is not None:
            self._marker = TextFlow(block.marker, marks_of(block.marker.sources), replace(font, colour="muted"))

    def layout(self, width: float, theme: Theme) -> None:
        begin = self.indent
        if self._marker is not None:
            self._marker.layout(200.0, theme)
            # A number of many digits pushes its text to the right instead of standing outside.
            left = max(begin - self._marker.natural_width - _MARKER_GAP, begin - _LIST_INDENT)
            begin = left + self._marker.natural_width + _MARKER_GAP
            self._flows = [PlacedFlow(self._marker, QPointF(left, 0)), PlacedFlow(self.flow, QPointF(begin, 0))]
        self.flow.layout(max(width - begin, 60.0), theme)
        self.height = self.flow.height

    def flows(self) -> Sequence[PlacedFlow]:
        return self._flows


class CodeBox(Box):
    """A card with the language's name, a place for a copy button, and the code."""

    def __init__(self, block: CodeBlock, marks_of: MarksOf, *, coloured: bool = True) -> None:
        super().__init__(12.0, block.nesting)
        self.language = block.language
        content = block.content
        if coloured:
            content = replace(content, styles=tuple(colour_code(content.text, block.language)))
        self.flow = TextFlow(content, marks_of(content.sources), FlowFont(code_font(), 1.6))
        self._flows = [PlacedFlow(self.flow, QPointF(self.indent + _CODE_PADDING, _CODE_HEADER))]
        self._width = 0.0

    @property
    def code(self) -> str:
        return self.flow.text.replace("\u2028", "\n")

    @property
    def button_corner(self) -> QPointF:
        """The top right corner of the copy button."""
        return QPointF(self._width - 7, 4)

    def layout(self, width: float, theme: Theme) -> None:
        self._width = width
        self.flow.layout(max(width - self.indent - 2 * _CODE_PADDING, 60.0), theme)
        self.height = _CODE_HEADER + self.flow.height + _CODE_PADDING - 2

    def flows(self) -> Sequence[PlacedFlow]:
        return self._flows

    def paint(self, painter: QPainter, clip: QRectF, look: Look, selection: Selection) -> None:
        theme = look.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.setBrush(QColor(theme.card))
        painter.drawRoundedRect(QRectF(self.indent + 0.5, 0.5, self._width - self.indent - 1, self.height - 1), 10, 10)
        if clip.top() < _CODE_HEADER:
            self._paint_header(painter, theme)
        super().paint(painter, clip, look, selection)

    def _paint_header(self, painter: QPainter, theme: Theme) -> None:
        painter.setPen(QColor(theme.muted))
        painter.setFont(ui_font(CAPTION_PIXELS))
        header = QRectF(self.indent + _CODE_PADDING, 3, self._width - self.indent - 110, _CODE_HEADER - 6)
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(header, align, self.language or "text")


class TableBox(Box):
    """A table with lines between its rows."""

    def __init__(self, block: TableBlock, marks_of: MarksOf) -> None:
        super().__init__(12.0, block.nesting)
        self._alignments = block.alignments
        normal = FlowFont(ui_font(14), 1.6)
        header = FlowFont(ui_font(14, QFont.Weight.DemiBold.value), 1.6)
        self._rows = [
            [TextFlow(cell, marks_of(cell.sources), normal if number else header) for cell in row]
            for number, row in enumerate(block.rows)
        ]
        self._flows: list[PlacedFlow] = []
        self._edges: list[float] = []
        self._right = 0.0

    def layout(self, width: float, theme: Theme) -> None:
        columns = max((len(row) for row in self._rows), default=0)
        if not columns:
            return
        room = max(width - self.indent - 2 * _CELL_PADDING * columns, 30.0 * columns)
        for row in self._rows:
            for cell in row:
                cell.layout(100_000.0, theme)
        wanted = [max(row[i].natural_width if i < len(row) else 0 for row in self._rows) + 2 for i in range(columns)]
        widths = _share(wanted, room)
        self._flows.clear()
        self._edges = [0.5]
        y = 0.0
        for row in self._rows:
            x = self.indent + _CELL_PADDING
            tallest = 0.0
            for column, cell in enumerate(row):
                cell.layout(widths[column], theme)
                spare = widths[column] - cell.natural_width
                shift = {"right": spare, "center": spare / 2}.get(self._alignments[column], 0.0)
                self._flows.append(PlacedFlow(cell, QPointF(x + max(shift, 0.0), y + 5)))
                tallest = max(tallest, cell.height)
                x += widths[column] + 2 * _CELL_PADDING
            y += tallest + 10
            self._edges.append(y + 0.5)
        self._right = self.indent + sum(widths) + 2 * _CELL_PADDING * columns
        self.height = y + 1

    def flows(self) -> Sequence[PlacedFlow]:
        return self._flows

    def paint(self, painter: QPainter, clip: QRectF, look: Look, selection: Selection) -> None:
        theme = look.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.setBrush(QColor(theme.card))
        painter.drawRoundedRect(QRectF(self.indent + 0.5, 0.5, self._right - self.indent - 1, self.height - 1), 8, 8)
        for edge in self._edges[1:-1]:
            painter.drawLine(QPointF(self.indent, edge), QPointF(self._right, edge))
        super().paint(painter, clip, look, selection)


def _share(wanted: Sequence[float], room: float) -> list[float]:
    """Widths that fit `room`: narrow columns get what they want, the wide ones share the rest."""
    if sum(wanted) <= room:
        return list(wanted)
    widths = list(wanted)
    open_columns = set(range(len(wanted)))
    left = room
    while open_columns:
        fair = left / len(open_columns)
        small = {i for i in open_columns if wanted[i] <= fair}
        if not small:
            for i in open_columns:
                widths[i] = fair
            break
        left -= sum(wanted[i] for i in small)
        open_columns -= small
    return widths


class RuleBox(Box):
    """A line across."""

    def __init__(self, block: RuleBlock) -> None:
        super().__init__(14.0, block.nesting)
        self._width = 0.0

    def layout(self, width: float, theme: Theme) -> None:
        self._width, self.height = width, 15.0

    def paint(self, painter: QPainter, clip: QRectF, look: Look, selection: Selection) -> None:
        painter.fillRect(QRectF(self.indent, 7, self._width - self.indent, 1), QColor(look.theme.line))


def boxes_of(blocks: Sequence[Block], marks_of: MarksOf) -> Iterator[Box]:
    for block in blocks:
        match block:
            case TextBlock():
                yield TextBox(block, marks_of)
            case CodeBlock():
                yield CodeBox(block, marks_of)
            case TableBlock():
                yield TableBox(block, marks_of)
            case RuleBlock():
                yield RuleBox(block)


def raw_boxes(text: str, start: int, marks_of: MarksOf) -> Iterator[Box]:
    """One box for each line of the source, line ends made visible."""
    at = 0
    for line in text.split("\n"):
        ends = at + len(line) < len(text)
        shown = line + "↵" if ends else line
        content = RichText(
            shown,
            (StyleRun(len(line), 1, Style.MUTED),) if ends else (),
            (SourceRun(0, start + at, len(shown)),) if shown else (),
        )
        if shown:
            yield TextBox(TextBlock(content), marks_of, gap=0.0)
        at += len(line) + 1
