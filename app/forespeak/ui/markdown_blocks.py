"""A reply's Markdown as plain data: blocks of text in which every character knows its place in the source, or nothing.

A character gets a source position only where the parser's result and the source agree letter by letter. Nothing is
fetched: pictures are their alternative text, links are addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.token import Token as MarkdownToken


class Style(IntFlag):
    PLAIN = 0
    BOLD = 1
    ITALIC = 2
    CODE = 4
    STRUCK = 8
    LINK = 16
    MUTED = 32


@dataclass(frozen=True, slots=True)
class StyleRun:
    """`length` characters from `start` look so. `colour` is a field of Theme."""

    start: int
    length: int
    style: Style = Style.PLAIN
    colour: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class SourceRun:
    """`length` characters from `start` are the same ones as those of the source from `source` on."""

    start: int
    source: int
    length: int


@dataclass(frozen=True, slots=True)
class RichText:
    """Text with its look and its origin. Offsets are in characters (code points)."""

    text: str
    styles: tuple[StyleRun, ...] = ()
    sources: tuple[SourceRun, ...] = ()


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


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # Joined text would hide which characters were escaped in the source.
    return parser.disable("text_join")


_MARKDOWN = _parser()
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
        self._tokens = _MARKDOWN.parse(source)
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
        return TextBlock(_inline(inline, pieces), level, tuple(self._nesting), marker, opening.hidden)

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
                cells.append(_inline(inline, self._cell_pieces(inline.content, places)))
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


class _MisalignedError(Exception):
    """The parser's result and the source do not agree."""


def _inline(token: MarkdownToken, pieces: Sequence[SourceRun]) -> RichText:
    builder = _InlineBuilder(token.content)
    try:
        builder.add_all(token.children or [])
        aligned = not token.content[builder.at :].strip()
    except _MisalignedError:
        aligned = False
    if not aligned:
        builder = _InlineBuilder(None)
        builder.add_all(token.children or [])
    return replace(builder.result(), sources=tuple(builder.sources(pieces)) if aligned else ())


class _InlineBuilder:
    """Puts the text of inline tokens together, following the source letter by letter unless it is None."""

    def __init__(self, content: str | None) -> None:
        self._content = content
        self.at = 0
        self._parts: list[str] = []
        self._length = 0
        self._styles: list[StyleRun] = []
        self._matches: list[SourceRun] = []
        self._open: list[tuple[Style, str | None]] = []
        self._autolink = False

    def result(self) -> RichText:
        return RichText("".join(self._parts), tuple(self._styles))

    def sources(self, pieces: Sequence[SourceRun]) -> Iterator[SourceRun]:
        """The matches with the content (rendered -> content), through where its lines stand (content -> source)."""
        first = 0
        for match in self._matches:
            while first < len(pieces) and pieces[first].start + pieces[first].length <= match.source:
                first += 1
            for piece in pieces[first:]:
                start = max(match.source, piece.start)
                end = min(match.source + match.length, piece.start + piece.length)
                if piece.start >= match.source + match.length:
                    break
                if start < end:
                    yield SourceRun(match.start + start - match.source, piece.source + start - piece.start, end - start)

    def add_all(self, tokens: Sequence[MarkdownToken]) -> None:
        for token in tokens:
            self._add(token)

    def _add(self, token: MarkdownToken) -> None:
        match token.type:
            case "text":
                self._emit(token.content, matches=True)
            case "text_special":
                self._special(token)
            case "code_inline":
                self._code(token)
            case "softbreak" | "hardbreak":
                self._break(hard=token.type == "hardbreak")
            case "strong_open" | "em_open" | "s_open":
                self._expect(token.markup)
                self._open.append((_STYLES[token.type], None))
            case "strong_close" | "em_close" | "s_close":
                self._expect(token.markup)
                self._open.pop()
            case "link_open":
                self._autolink = token.markup == "autolink"
                self._expect("<" if self._autolink else "[")
                self._open.append((Style.LINK, str(token.attrGet("href") or "")))
            case "link_close":
                if self._autolink:
                    self._expect(">")
                else:
                    self._link_tail()
                self._autolink = False
                self._open.pop()
            case "image":
                self._image(token)
            case _:
                raise _MisalignedError if self._content is not None else NotImplementedError(token.type)

    def _emit(self, text: str, *, matches: bool, style: Style = Style.PLAIN) -> None:
        """Add text; `matches`: it is the very text of the source here."""
        if matches and self._content is not None:
            if not self._content.startswith(text, self.at):
                raise _MisalignedError
            self._matches.append(SourceRun(self._length, self.at, len(text)))
            self.at += len(text)
        link = None
        for opened, address in self._open:
            style |= opened
            link = address or link
        if style and text:
            self._styles.append(StyleRun(self._length, len(text), style, link=link))
        self._parts.append(text)
        self._length += len(text)

    def _expect(self, markup: str) -> None:
        if self._content is None:
            return
        if not self._content.startswith(markup, self.at):
            raise _MisalignedError
        self.at += len(markup)

    def _special(self, token: MarkdownToken) -> None:
        if token.info == "escape" and token.markup[1:] == token.content:
            self._expect("\\")
            self._emit(token.content, matches=True)
        else:
            # An entity: several characters of the source for one, perhaps of several tokens.
            self._expect(token.markup)
            self._emit(token.content, matches=False)

    def _code(self, token: MarkdownToken) -> None:
        self._expect(token.markup)
        if self._content is not None:
            for space in ("", " "):
                start = self.at + len(space)
                raw = self._content[start : start + len(token.content)]
                rest = self._content[start + len(raw) :]
                if raw.replace("\n", " ") == token.content and rest.startswith(_padding(rest, space) + token.markup):
                    break
            else:
                raise _MisalignedError
            self.at = start + len(raw)
            self._matches.append(SourceRun(self._length, start, len(raw)))
            self._emit(token.content, matches=False, style=Style.CODE)
            self._expect(_padding(rest, space) + token.markup)
            return
        self._emit(token.content, matches=False, style=Style.CODE)

    def _break(self, *, hard: bool) -> None:
        if self._content is not None:
            found = _BREAK.match(self._content, self.at)
            if found is None:
                raise _MisalignedError
            self.at = found.end()
        # A line break inside a paragraph is a space: the newline's place would not be the same character.
        self._emit("\u2028" if hard else " ", matches=False)

    def _link_tail(self) -> None:
        if self._content is None:
            return
        self._expect("]")
        content, end = self._content, len(self._content)
        if content.startswith("(", self.at):
            at = _skip_space(content, self.at + 1)
            destination = parseLinkDestination(content, at, end)
            if destination.ok:
                at = _skip_space(content, destination.pos)
            title: Any = parseLinkTitle(content, at, end)
            if title.ok:
                at = _skip_space(content, title.pos)
            if content.startswith(")", at):
                self.at = at + 1
                return
        if content.startswith("[", self.at):
            close = content.find("]", self.at)
            self.at = close + 1 if close > 0 else self.at

    def _image(self, token: MarkdownToken) -> None:
        self._expect("![")
        self._emit(token.content, matches=True, style=Style.ITALIC | Style.MUTED)
        self._link_tail()


_STYLES = {"strong_open": Style.BOLD, "em_open": Style.ITALIC, "s_open": Style.STRUCK}
_BREAK = re.compile(r" *\\?\n[ \t]*")


def _padding(rest: str, space: str) -> str:
    """Inside backticks one space on both sides is dropped; it may be written as a line break."""
    return rest[:1] if space and rest[:1] in {" ", "\n"} else space


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n":
        at += 1
    return at
