"""A model's card as plain Markdown: HTML turned into what it says, nothing left that could be fetched or run.

Cards are strangers' texts. What a tag would fetch or execute is dropped; what it says in words is kept, and links stay
links, for the reader to decide about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from forespeak.ui.sections import FENCE

LONGEST = 300_000
"""Characters of a card that are shown."""

_TOKEN = re.compile(
    r"<!--(?:.|\n)*?(?:-->|\Z)|</?([A-Za-z][A-Za-z0-9]{0,15})((?:\s[^<>]{0,4000})?)/?>|(`+)",
)
_ATTRIBUTE = r"""(?:^|\s){0}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_HREF = re.compile(_ATTRIBUTE.format("href"), re.IGNORECASE)
_ALT = re.compile(_ATTRIBUTE.format("alt"), re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://|mailto:|/|\./|#|[\w-]+(?:[./]|$))[^\s<>]*$", re.IGNORECASE)
_DROPPED = frozenset({"script", "style", "iframe", "svg", "video", "audio", "object", "canvas", "noscript", "form"})
"""Tags that go together with what is inside them."""
_BLOCKS = frozenset(
    {
        *("p", "div", "center", "table", "thead", "tbody", "tfoot", "ul", "ol", "dl", "dd", "dt", "details", "section"),
        *("article", "header", "footer", "figure", "figcaption", "blockquote", "pre", "main", "nav"),
    }
)
_SILENT = frozenset(
    {
        *("span", "font", "small", "big", "u", "sup", "sub", "kbd", "samp", "var", "mark", "abbr", "picture", "source"),
        *("colgroup", "col", "label", "body", "html", "head", "meta", "link", "title", "embed", "input", "button"),
        *("select", "option", "ins", "del", "time", "wbr"),
    }
)
_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "tt": "`", "s": "~~", "strike": "~~"}
_KNOWN = _DROPPED | _BLOCKS | _SILENT | set(_EMPHASIS) | {"a", "img", "br", "hr", "li", "tr", "td", "th", "summary"}


def card_markdown(text: str) -> str:
    """The card for our own Markdown renderer."""
    cut = len(text) > LONGEST
    text = text[:LONGEST].replace("\r\n", "\n")
    parts = [part if is_code else _without_html(part) for is_code, part in _fenced(text)]
    result = re.sub(r"\n[ \t]*\n(?:[ \t]*\n)+", "\n\n", "".join(parts)).strip("\n")
    return f"{result}\n\n…" if cut else result


def _fenced(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces: fenced code, and what is not."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\n")
        if fence:
            lines.append(line)
            mark = bare.strip()
            if len(mark) >= len(fence) and set(mark) == {fence[0]}:
                yield True, "".join(lines)
                lines, fence = [], ""
            continue
        opening = FENCE.match(bare)
        if opening:
            yield False, "".join(lines)
            lines, fence = [line], opening.group(1)
        else:
            lines.append(line)
    yield bool(fence), "".join(lines)


def _without_html(text: str) -> str:
    out = _Writer()
    closing = _closing_runs(text)
    at = 0
    skip_until = 0
    for token in _TOKEN.finditer(text):
        if token.start() < skip_until:
            continue
        start, end = token.span()
        if token.group(3):
            after = closing.get(start)
            if after is not None:
                # Code says what it says, tags included.
                out.add(text[at:after], verbatim_from=start - at)
                at = skip_until = after
            continue
        name = (token.group(1) or "").lower()
        if name and name not in _KNOWN and not re.fullmatch(r"h[1-6]", name):
            continue
        out.add(text[at:start])
        at = end
        if not name:
            continue
        closes = token.group().startswith("</")
        if name in _DROPPED:
            if not closes and not token.group().endswith("/>"):
                finish = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, end)
                at = skip_until = finish.end() if finish else len(text)
            continue
        out.tag(name, token.group(2) or "", closes=closes)
    out.add(text[at:])
    return out.text()


def _closing_runs(text: str) -> dict[int, int]:
    """Where each run of backticks that opens code is closed: its start to the end of the closing run."""
    found: dict[int, int] = {}
    nearest: dict[int, re.Match[str]] = {}
    blank = len(text)
    for run in reversed(list(re.finditer(r"`+|\n[ \t]*\n", text))):
        if run.group()[0] == "\n":
            # Code ends with its paragraph.
            nearest.clear()
            blank = run.start()
            continue
        length = len(run.group())
        other = nearest.get(length)
        if other is not None and other.end() <= blank:
            found[run.start()] = other.end()
        nearest[length] = run
    return found


class _Writer:
    def __init__(self) -> None:
        self._parts: list[str] = []
        self._links: list[tuple[int, str]] = []
        """Open links: which part they begin with, and their address."""
        self._indented = False
        """Inside of HTML that is indented, which in Markdown would be code."""

    def text(self) -> str:
        while self._links:
            self._close_link()
        return "".join(self._parts)

    def add(self, text: str, verbatim_from: int | None = None) -> None:
        if not text:
            return
        if self._indented:
            head = text if verbatim_from is None else text[:verbatim_from]
            rest = "" if verbatim_from is None else text[verbatim_from:]
            blank = re.search(r"\n[ \t]*\n(?=\S)", head)
            stop = blank.start() if blank else len(head)
            text = re.sub(r"\n[ \t]+", "\n", head[:stop]) + head[stop:] + rest
            if blank:
                self._indented = False
        self._parts.append(text)

    def tag(self, name: str, attributes: str, *, closes: bool) -> None:
        if name in _BLOCKS or name in {"li", "tr", "summary"} or name[0] == "h":
            self._unindent()
        if name in _EMPHASIS:
            self._parts.append(_EMPHASIS[name])
        elif name == "a":
            self._close_link() if closes else self._open_link(_value(_HREF, attributes))
        elif name == "img":
            self._parts.append(_plain(_value(_ALT, attributes)))
        elif name == "br":
            self._parts.append("  \n")
        elif name == "hr":
            self._parts.append("\n\n---\n\n")
        elif name in {"td", "th"}:
            self._parts.append(" · " if closes else "")
        elif name in {"li", "tr"}:
            self._parts.append("\n" if closes else ("\n- " if name == "li" else "\n"))
        elif name == "summary":
            self._parts.append("**\n\n" if closes else "\n\n**")
        elif name[0] == "h" and name[1:].isdigit():
            self._parts.append("\n\n" if closes else f"\n\n{'#' * int(name[1])} ")
        elif name in _BLOCKS:
            self._parts.append("\n\n")

    def _unindent(self) -> None:
        self._indented = True
        if self._parts and (last := re.search(r"(?:^|\n)[ \t]+$", self._parts[-1])):
            self._parts[-1] = self._parts[-1][: last.start()] + last.group().rstrip(" \t")

    def _open_link(self, address: str) -> None:
        while self._links:
            self._close_link()
        self._links.append((len(self._parts), address if _ADDRESS.match(address) else ""))

    def _close_link(self) -> None:
        if not self._links:
            return
        first, address = self._links.pop()
        words = " ".join("".join(self._parts[first:]).split())
        # A link that holds a heading or a list is none in Markdown.
        words = re.sub(r"^(#+|-) ", "", words)
        del self._parts[first:]
        if words and address and "[" not in words:
            self._parts.append(f"[{words}](<{address}>)")
        else:
            self._parts.append(words)


def _value(attribute: re.Pattern[str], attributes: str) -> str:
    found = attribute.search(attributes)
    if not found:
        return ""
    return unescape(next((group for group in found.groups() if group is not None), "")).strip()


def _plain(words: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(words.split()))
