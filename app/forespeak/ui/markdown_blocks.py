"""A reply's Markdown as plain data: blocks of text in which every character knows its place in the source, or nothing.

A character gets a source position only where the parser's result and the source agree letter by letter. Nothing is
fetched: pictures are their alternative text, links are addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from forespeak.ui.markdown_inline import aligned_text
from forespeak.ui.rich_text import RichText, SourceRun

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token as MarkdownToken


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph (`level` 0), a heading, or an item of a list with its `marker`.

    `nesting` names what it stands in, from the outside in: "list" or "quote". `tight`: close to the block above.
    """

    content: RichText
    level: int = 0
    nesting: tuple[str, ...] = ()
    marker: RichText | None = None
    tight: bool = False


@dataclass(frozen=True, slots=True)
class CodeBlock:
    content: RichText
    language: str = ""
    nesting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableBlock:
    """`rows` of equal length, the first one being the header. `alignments` by column: "left", "center", "right"."""

    rows: tuple[tuple[RichText, ...], ...]
    alignments: tuple[str, ...]
    nesting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleBlock:
    nesting: tuple[str, ...] = ()


Block = TextBlock | CodeBlock | TableBlock | RuleBlock


@cache
def parser() -> MarkdownIt:
    """The parser, loaded when it is first needed: the window must be up before it."""
    from markdown_it import MarkdownIt

    commonmark = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # Joined text would hide which characters were escaped in the source.
    return commonmark.disable("text_join")


_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r"[ \t>*+\-\d.)]*?#{1,6}[ \t]+")
_ITEM_PREFIX = re.compile(r"[ \t>*+\-\d.)]*")
_CELL = re.compile(r"(?:\\.|[^|\\])*")


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str


def _lines(source: str, offset: int) -> list[_Line]:
    lines: list[_Line] = []
    at = 0
    for end in _LINE_END.finditer(source):
        lines.append(_Line(offset + at, source[at : end.start()]))
        at = end.end()
    lines.append(_Line(offset + at, source[at:]))
    return lines


def parse(source: str, offset: int = 0) -> tuple[Block, ...]:
    """The blocks of `source`, which begins at `offset` of the whole reply: source positions count from there."""
    return tuple(_Reader(source, offset).blocks())


class _Reader:
    """Walks over the parser's flat list of tokens."""

    def __init__(self, source: str, offset: int) -> None:
        self._lines = _lines(source, offset)
        self._tokens = parser().parse(source)
        self._nesting: list[str] = []
        self._marker: RichText | None = None

    def blocks(self) -> Iterator[Block]:
        at = 0
        tokens = self._tokens
        while at < len(tokens):
            token = tokens[at]
            match token.type:
                case "blockquote_open":
                    self._nesting.append("quote")
                case "list_item_open":
                    self._nesting.append("list")
                    self._marker = self._marker_of(token)
                case "blockquote_close" | "list_item_close":
                    self._nesting.pop()
                    self._marker = None
                case "paragraph_open" | "heading_open":
                    yield self._text_block(token, tokens[at + 1])
                    at += 2
                case "fence" | "code_block":
                    yield self._code_block(token)
                case "hr":
                    yield RuleBlock(tuple(self._nesting))
                case "table_open":
                    end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close")
                    yield self._table(tokens[at:end])
                    at = end
                case _:
                    pass
            at += 1

    def _take_marker(self) -> RichText | None:
        marker, self._marker = self._marker, None
        return marker

    def _marker_of(self, token: MarkdownToken) -> RichText:
        if not token.info:
            return RichText("•")
        text = token.info + token.markup
        if token.map is not None:
            line = self._lines[token.map[0]]
            prefix = _ITEM_PREFIX.match(line.text)
            places = [m.start() for m in re.finditer(re.escape(text), prefix.group())] if prefix else []
            if len(places) == 1:
                return RichText(text, sources=(SourceRun(0, line.start + places[0], len(text)),))
        return RichText(text)

    def _text_block(self, opening: MarkdownToken, inline: MarkdownToken) -> TextBlock:
        level = int(opening.tag[1]) if opening.type == "heading_open" else 0
        pieces = self._heading_pieces(opening, inline) if opening.markup.startswith("#") else self._pieces(inline)
        marker = self._take_marker()
        return TextBlock(aligned_text(inline, pieces), level, tuple(self._nesting), marker, opening.hidden)

    def _pieces(self, token: MarkdownToken, skip: int = 0) -> list[SourceRun]:
        """Where each line of a token's content stands: it is the end of its line, behind any prefixes."""
        if token.map is None:
            return []
        pieces: list[SourceRun] = []
        at = 0
        for content, line in zip(
            token.content.split("\n"), self._lines[token.map[0] + skip : token.map[1]], strict=False
        ):
            kept, there = content.rstrip(), line.text.rstrip()
            if kept and there.endswith(kept):
                pieces.append(SourceRun(at, line.start + len(there) - len(kept), len(kept)))
            at += len(content) + 1
        return pieces

    def _heading_pieces(self, opening: MarkdownToken, inline: MarkdownToken) -> list[SourceRun]:
        if opening.map is None:
            return []
        line = self._lines[opening.map[0]]
        start = _HEADING.match(line.text)
        if start is None or not line.text.startswith(inline.content, start.end()):
            return []
        return [SourceRun(0, line.start + start.end(), len(inline.content))]

    def _code_block(self, token: MarkdownToken) -> CodeBlock:
        pieces = self._pieces(token, skip=1 if token.type == "fence" else 0)
        text = token.content.removesuffix("\n")
        self._take_marker()
        language = token.info.split()[0] if token.info.strip() else ""
        return CodeBlock(RichText(text, sources=tuple(pieces)), language, tuple(self._nesting))

    def _table(self, tokens: Sequence[MarkdownToken]) -> TableBlock:
        rows: list[tuple[RichText, ...]] = []
        alignments: list[str] = []
        cells: list[RichText] = []
        places: list[SourceRun] = []
        for at, token in enumerate(tokens):
            if token.type == "tr_open":
                cells, places = [], self._cell_places(token)
            elif token.type in {"th_open", "td_open"}:
                inline = tokens[at + 1]
                cells.append(aligned_text(inline, self._cell_pieces(inline.content, places)))
                if token.type == "th_open":
                    style = str(token.attrGet("style") or "")
                    alignments.append(style.removeprefix("text-align:") or "left")
            elif token.type == "tr_close":
                rows.append(tuple(cells))
        self._take_marker()
        return TableBlock(tuple(rows), tuple(alignments), tuple(self._nesting))

    def _cell_places(self, row: MarkdownToken) -> list[SourceRun]:
        if row.map is None:
            return []
        line = self._lines[row.map[0]]
        places = []
        for cell in _CELL.finditer(line.text):
            lead = len(cell.group()) - len(cell.group().lstrip())
            places.append(SourceRun(0, line.start + cell.start() + lead, len(cell.group().strip())))
        return [place for place in places if place.length]

    def _cell_pieces(self, content: str, places: list[SourceRun]) -> list[SourceRun]:
        """Cells come in the order of their row, so the first place that reads the same is the one."""
        if not content:
            return []
        while places:
            place = places.pop(0)
            if place.length == len(content) and self._read(place) == content:
                return [place]
        return []

    def _read(self, place: SourceRun) -> str:
        line = next(line for line in reversed(self._lines) if line.start <= place.source)
        at = place.source - line.start
        return line.text[at : at + place.length]
