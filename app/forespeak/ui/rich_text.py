"""Text with a look and an origin: what a reply is made of before it is laid out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


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
