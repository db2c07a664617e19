"""Inline Markdown as rendered text, each of whose characters knows its place in the source, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from forespeak.ui.rich_text import RichText, SourceRun, Style, StyleRun

if TYPE_CHECKING:
    from markdown_it.token import Token as MarkdownToken


class _MisalignedError(Exception):
    """The parser's result and the source do not agree."""


def aligned_text(token: MarkdownToken, pieces: Sequence[SourceRun]) -> RichText:
    """The rendered text of an inline token. `pieces` say where its content's characters stand in the source.

    Where the parser's result and the content do not agree letter by letter, no character gets a source.
    """
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
            from markdown_it.helpers import parseLinkDestination, parseLinkTitle

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
