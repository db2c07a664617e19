"""One run of text laid out in lines, with marks under it; it grows cheaply at its end.

Long text is laid out in chunks that end where a line ends, so that neither a new token nor a very long paragraph costs
more than one chunk. Offsets are characters (code points); Qt's UTF-16 units stay in here.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from forespeak.ui.rich_text import RichText, SourceRun, Style
from forespeak.ui.text_look import FlowFont, Look, MarkRun, char_format, colour_of, paint_underline
from forespeak.ui.theme import MarkKind, MarkStyle, Theme

_CHUNK = 1500
_SETTLED = 8
"""Characters behind a line's beginning that may have a say in whether it is one: "(" may be a number's, or an emoji may
not be whole yet."""
_LINE_SEPARATOR = "\u2028"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


@dataclass(slots=True)
class _Chunk:
    start: int
    layout: QTextLayout
    units: list[int] | None
    """UTF-16 offset of each character, if any lies beyond the basic plane."""

    def to_units(self, at: int) -> int:
        return at - self.start if self.units is None else self.units[at - self.start]

    def to_character(self, units: int) -> int:
        return self.start + (units if self.units is None else bisect_right(self.units, units) - 1)


@dataclass(slots=True)
class _Line:
    chunk: _Chunk
    line: QTextLine
    start: int
    end: int
    top: float
    marks: list[tuple[QRectF, MarkKind]] | None = None
    code: list[QRectF] = field(default_factory=list)


class TextFlow:
    """Text, its look and its marks, laid out for one width."""

    def __init__(self, content: RichText, marks: Sequence[MarkRun], font: FlowFont) -> None:
        self.text = content.text.replace("\n", _LINE_SEPARATOR)
        self._styles = list(content.styles)
        self.sources = list(content.sources)
        self._marks = list(marks)
        self._font = font
        self._ascent, self._descent, self._tab = _measures(font.font)
        self.line_height = float(round(font.font.pixelSize() * font.line_height))
        self._lines: list[_Line] = []
        self._width = -1.0
        self._formats_of: Theme | None = None
        self._format_ranges: list[tuple[int, int, QTextCharFormat]] = []
        self.fresh_from = 0
        """The first line that the last `append` may have changed."""
        self._direction = _direction(self.text)
        self._mixed = _RIGHT_TO_LEFT.search(self.text) is not None

    @property
    def height(self) -> float:
        return max(len(self._lines), 1) * self.line_height

    @property
    def natural_width(self) -> float:
        return max((line.line.naturalTextWidth() for line in self._lines), default=0.0)

    def layout(self, width: float, theme: Theme) -> None:
        """Break into lines of at most `width` pixels. Does nothing where nothing changed."""
        if width == self._width and theme is self._formats_of:
            return
        self._width = width
        if theme is not self._formats_of:
            self._formats_of = theme
            self._format_ranges = [(s.start, s.start + s.length, char_format(s, theme)) for s in self._styles]
        self._lines.clear()
        self._continue()

    def append(self, text: str, sources: Sequence[SourceRun], marks: Sequence[MarkRun]) -> None:
        """Add plain text at the end. Offsets of `sources` and `marks` count from the start of the whole flow."""
        text = text.replace("\n", _LINE_SEPARATOR)
        self.text += text
        if self._direction is None:
            self._direction = _direction(self.text)
        self._mixed = self._mixed or _RIGHT_TO_LEFT.search(text) is not None
        for source in sources:
            last = self.sources[-1] if self.sources else None
            if last and last.start + last.length == source.start and last.source + last.length == source.source:
                self.sources[-1] = SourceRun(last.start, last.source, last.length + source.length)
            else:
                self.sources.append(source)
        for mark in marks:
            if self._marks and self._marks[-1].end == mark.start and self._marks[-1].kind is mark.kind:
                self._marks[-1] = MarkRun(self._marks[-1].start, mark.end, mark.kind)
            else:
                self._marks.append(mark)
        if self._formats_of is not None:
            self._lay_out_end()

    def _lay_out_end(self) -> None:
        """Lay out the last line anew, and the one above while the break between them may still move."""
        if self._mixed:
            # Where writing directions mix, a line's order depends on the text around it.
            chunk = self._lines[-1].chunk
            kept = len(self._lines)
            while kept and self._lines[kept - 1].chunk is chunk:
                kept -= 1
        else:
            kept = max(len(self._lines) - (1 if len(self.text) - self._lines[-1].start > _SETTLED else 2), 0)
        old = self._lines[kept:]
        # Where text was added, the last of them differs.
        del self._lines[kept:]
        self._continue()
        self.fresh_from = kept
        for before, after in zip(old[:-1], self._lines[kept:], strict=False):
            if before.end != after.end or before.start != after.start:
                break
            self.fresh_from += 1

    def _continue(self) -> None:
        """Lay out what follows the last complete line."""
        at = self._lines[-1].end if self._lines else 0
        size = _CHUNK
        while at < len(self.text) or not self._lines:
            lines = self._chunk_lines(at, min(at + size, len(self.text)))
            complete = at + size >= len(self.text)
            if not complete:
                # The last line may go on in the next chunk.
                lines.pop()
                if not lines:
                    size *= 2
                    continue
            size = _CHUNK
            self._lines += lines
            at = lines[-1].end
            if complete:
                return

    def _chunk_lines(self, start: int, end: int) -> list[_Line]:
        text = self.text[start:end]
        units: list[int] | None = None
        if not text.isascii() and max(text) > "\uffff":
            units, total = [], 0
            for character in text:
                units.append(total)
                total += 2 if character > "\uffff" else 1
            units.append(total)
        layout = QTextLayout(text, self._font.font)
        # What is laid out is about to be painted: without it the text would be shaped a second time for that.
        layout.setCacheEnabled(True)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(self._tab)
        option.setTextDirection(self._direction or Qt.LayoutDirection.LeftToRight)
        layout.setTextOption(option)
        chunk = _Chunk(start, layout, units)
        ranges = []
        for first, last, look in self._format_ranges:
            if first < end and last > start:
                piece = QTextLayout.FormatRange()
                piece.start = chunk.to_units(max(first, start))
                piece.length = chunk.to_units(min(last, end)) - piece.start
                piece.format = look
                ranges.append(piece)
        if ranges:
            layout.setFormats(ranges)
        lines: list[_Line] = []
        top = len(self._lines) * self.line_height
        baseline = (self.line_height - self._ascent - self._descent) / 2 + self._ascent
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(self._width)
            # Fallback fonts are taller: keep every line's baseline in its place.
            line.setPosition(QPointF(0, top + baseline - line.ascent()))
            first = chunk.to_character(line.textStart())
            last = chunk.to_character(line.textStart() + line.textLength())
            lines.append(_Line(chunk, line, first, last, top))
            top += self.line_height
        layout.endLayout()
        return lines

    def paint(
        self, painter: QPainter, origin: QPointF, clip: QRectF, look: Look, selection: tuple[int, int] | None = None
    ) -> None:
        """Paint the lines that meet `clip`, the text's corner being at `origin`. Both in the painter's coordinates."""
        theme = look.theme
        first = max(int((clip.top() - origin.y()) / self.line_height), 0)
        last = min(int((clip.bottom() - origin.y()) / self.line_height) + 1, len(self._lines))
        if first >= last:
            return
        visible = self._lines[first:last]
        painter.save()
        painter.translate(origin)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for line in visible:
            if line.marks is None:
                self._find_marks(line)
            if line.code:
                painter.setBrush(QColor(theme.bubble))
                for rect in line.code:
                    painter.drawRoundedRect(rect, 4, 4)
        if look.marks is not MarkStyle.OFF:
            for line in visible:
                self._paint_marks(painter, line, look)
        if selection is not None and selection[0] < selection[1]:
            colour = QColor(theme.accent)
            colour.setAlphaF(0.28)
            painter.setPen(Qt.PenStyle.NoPen)
            for rect in self.rects(*selection, lines=visible):
                painter.fillRect(rect, colour)
        painter.setPen(QColor(getattr(theme, self._font.colour)))
        zero = QPointF(0, 0)
        for line in visible:
            line.line.draw(painter, zero)
        painter.restore()

    @staticmethod
    def _paint_marks(painter: QPainter, line: _Line, look: Look) -> None:
        fills = look.marks is MarkStyle.STRONG
        for rect, kind in line.marks or ():
            mark = look.theme.mark(kind)
            if fills:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(colour_of(mark.fill))
                painter.drawRoundedRect(rect, 3, 3)
            paint_underline(painter, rect, kind, mark.line)

    def _find_marks(self, line: _Line) -> None:
        """Where the marks of a line are. Kept until the line is laid out anew."""
        line.marks = []
        at = bisect_right(self._marks, line.start, key=lambda mark: mark.end)
        while at < len(self._marks) and self._marks[at].start < line.end:
            mark = self._marks[at]
            line.marks += [(rect, mark.kind) for rect in self._line_rects(line, mark.start, mark.end)]
            at += 1
        line.code = []
        for style in self._styles:
            if style.style & Style.CODE and style.start < line.end and style.start + style.length > line.start:
                rects = self._line_rects(line, style.start, style.start + style.length)
                line.code += [rect.adjusted(-2, 0, 2, 0) for rect in rects]

    def _line_rects(self, line: _Line, start: int, end: int) -> list[QRectF]:
        start, end = max(start, line.start), min(end, line.end)
        if self.text[end - 1 : end] == _LINE_SEPARATOR:
            end -= 1
        if start >= end:
            return []
        # Whole pixels: the underline is two of them.
        top = float(round(line.top + (self.line_height - self._ascent - self._descent) / 2 - 1))
        height = float(round(self._ascent + self._descent + 3))
        spans = list(self._bidi_spans(line, start, end)) if self._mixed else [self._span(line, start, end)]
        natural = line.line.naturalTextRect()
        rects = []
        for span in spans:
            left, right = max(span[0], natural.left()), min(span[1], natural.right())
            if right > left:
                rects.append(QRectF(left, top, right - left, height))
        return rects

    @staticmethod
    def _span(line: _Line, start: int, end: int) -> tuple[float, float]:
        x1 = _x(line.line, line.chunk.to_units(start))
        x2 = _x(line.line, line.chunk.to_units(end))
        return (x1, x2) if x1 <= x2 else (x2, x1)

    def _bidi_spans(self, line: _Line, start: int, end: int) -> Iterator[tuple[float, float]]:
        """Where writing directions mix, neighbours in the text need not be neighbours on the line."""
        spans: list[tuple[float, float]] = []
        for at in range(start, end):
            units = line.chunk.to_units(at)
            for run in line.line.glyphRuns(units, line.chunk.to_units(at + 1) - units):
                advances = run.rawFont().advancesForGlyphIndexes(run.glyphIndexes())
                for position, advance in zip(run.positions(), advances, strict=True):
                    spans.append((position.x(), position.x() + advance.x()))
        if not spans:
            return
        spans.sort()
        left, right = spans[0]
        for next_left, next_right in spans[1:]:
            if next_left <= right + 0.5:
                right = max(right, next_right)
            else:
                yield left, right
                left, right = next_left, next_right
        yield left, right

    def rects(self, start: int, end: int, lines: Sequence[_Line] | None = None) -> list[QRectF]:
        """Where characters `start` to `end` stand, one rectangle for each line or more, from the flow's corner."""
        result = []
        for line in self._lines if lines is None else lines:
            if line.start < end and line.end > start:
                result += self._line_rects(line, start, end)
        return result

    def character_at(self, point: QPointF, *, between: bool = False) -> int | None:
        """The character under a point, from the flow's corner; None beside the text.

        `between`: the nearest gap between characters instead, as for a text cursor.
        """
        if not self._lines:
            return 0 if between else None
        row = int(point.y() // self.line_height)
        if not between and not 0 <= row < len(self._lines):
            return None
        line = self._lines[min(max(row, 0), len(self._lines) - 1)]
        if between:
            if row < 0:
                return line.start
            at = line.chunk.to_character(line.line.xToCursor(point.x()))
            return min(at, line.end)
        natural = line.line.naturalTextRect()
        if not natural.left() <= point.x() < natural.right():
            return None
        found = line.chunk.to_character(line.line.xToCursor(point.x(), QTextLine.CursorPosition.CursorOnCharacter))
        return found if found < line.end else None

    def link_at(self, character: int) -> str | None:
        for style in self._styles:
            if style.link and style.start <= character < style.start + style.length:
                return style.link
        return None

    def source_at(self, character: int) -> int | None:
        """The source position of a character, if it is known."""
        at = bisect_right(self.sources, character, key=lambda run: run.start) - 1
        if at < 0:
            return None
        run = self.sources[at]
        return run.source + character - run.start if character < run.start + run.length else None

    def range_of_source(self, start: int, end: int) -> tuple[int, int] | None:
        """The characters that came from the source between `start` and `end`; None if there are none."""
        at = bisect_right(self.sources, start, key=lambda run: run.source + run.length)
        first = last = -1
        while at < len(self.sources) and self.sources[at].source < end:
            run = self.sources[at]
            left, right = max(start, run.source), min(end, run.source + run.length)
            if left < right:
                if first < 0:
                    first = run.start + left - run.source
                last = run.start + right - run.source
            at += 1
        return None if first < 0 else (first, last)

    def word_at(self, character: int) -> tuple[int, int]:
        """The word around a character, for a double click."""

        def in_word(at: int) -> bool:
            return self.text[at].isalnum() or self.text[at] == "_"

        if not 0 <= character < len(self.text) or not in_word(character):
            return character, min(character + 1, len(self.text))
        start = end = character
        while start > 0 and in_word(start - 1):
            start -= 1
        while end < len(self.text) and in_word(end):
            end += 1
        return start, end


@cache
def _measures(font: QFont) -> tuple[float, float, float]:
    """Ascent, descent and the distance of tab stops, in pixels."""
    metrics = QFontMetricsF(font)
    return metrics.ascent(), metrics.descent(), metrics.horizontalAdvance(" ") * 4


def _direction(text: str) -> Qt.LayoutDirection | None:
    """That of the first letter; None where there is none yet."""
    for character in text[:_CHUNK]:
        match unicodedata.bidirectional(character):
            case "L":
                return Qt.LayoutDirection.LeftToRight
            case "R" | "AL":
                return Qt.LayoutDirection.RightToLeft
    return None


def _x(line: QTextLine, units: int, edge: QTextLine.Edge = QTextLine.Edge.Leading) -> float:
    found: Any = line.cursorToX(units, edge)
    return float(found[0])
