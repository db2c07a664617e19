"""Colours, type and the style sheet of the whole application. The values live in resources/themes."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette, QTextCharFormat

from forespeak.resource_files import resource_path
from forespeak.speculation.trace import Origin, Source
from forespeak.ui.draft_sources import short_name

TEXT_PIXELS = 14
REPLY_PIXELS = 15
CAPTION_PIXELS = 12
REPLY_LINE_HEIGHT = 1.7
REPLY_WIDTH = 760
CARD_RADIUS = 12

_FALLBACKS = (
    "Noto Sans CJK TC",
    "PingFang TC",
    "Microsoft JhengHei UI",
    "Noto Color Emoji",
    "Apple Color Emoji",
    "Segoe UI Emoji",
)


class MarkStyle(Enum):
    """How loudly the origin of a token is shown."""

    OFF = "off"
    SUBTLE = "subtle"
    """The underline alone."""
    STRONG = "strong"
    """The underline and the fill."""


class MarkKind(Enum):
    """What a mark says. A plain token of the target has none; an accepted one has that of its draft source."""

    ACCEPTED_MODEL = "accepted_model"
    ACCEPTED_LOOKUP = "accepted_lookup"
    ACCEPTED_SIMPLE = "accepted_simple"
    ACCEPTED_MAP_K = "accepted_map_k"
    ACCEPTED_MAP_K4V = "accepted_map_k4v"
    ACCEPTED_MOD = "accepted_mod"
    ACCEPTED_CACHE = "accepted_cache"
    CORRECTED = "corrected"
    BONUS = "bonus"
    REJECTED = "rejected"

    @property
    def pen_style(self) -> Qt.PenStyle:
        """The line differs as well as the colour, so that nobody has to tell hues apart."""
        if self is MarkKind.CORRECTED:
            return Qt.PenStyle.DotLine
        if self is MarkKind.BONUS:
            return Qt.PenStyle.DashLine
        return Qt.PenStyle.SolidLine

    @property
    def source(self) -> Source | None:
        """Of an accepted token."""
        return _SOURCE_OF.get(self)

    @property
    def looks_up(self) -> bool:
        """Whether it was accepted from a source that looks the text up: two lines, in place of a model's one."""
        source = self.source
        return source is not None and not source.uses_model

    @property
    def label(self) -> str:
        source = self.source
        return self.value if source is None else short_name(source)


_KIND_OF = {
    Source.DRAFT_MODEL: MarkKind.ACCEPTED_MODEL,
    Source.PROMPT_LOOKUP: MarkKind.ACCEPTED_LOOKUP,
    Source.NGRAM_SIMPLE: MarkKind.ACCEPTED_SIMPLE,
    Source.NGRAM_MAP_K: MarkKind.ACCEPTED_MAP_K,
    Source.NGRAM_MAP_K4V: MarkKind.ACCEPTED_MAP_K4V,
    Source.NGRAM_MOD: MarkKind.ACCEPTED_MOD,
    Source.NGRAM_CACHE: MarkKind.ACCEPTED_CACHE,
}
_SOURCE_OF = {kind: source for source, kind in _KIND_OF.items()}


def source_kind(source: Source) -> MarkKind:
    """The mark of what a source gets accepted."""
    return _KIND_OF[source]


def mark_kind(origin: Origin, source: Source | None) -> MarkKind | None:
    """The mark of an emitted token; None where there is nothing to say, or nothing certain."""
    if origin is Origin.ACCEPTED and source is not None:
        return _KIND_OF[source]
    if origin is Origin.CORRECTED:
        return MarkKind.CORRECTED
    if origin is Origin.BONUS:
        return MarkKind.BONUS
    return None


@dataclass(frozen=True, slots=True)
class Mark:
    """Colours of one kind of mark, as #RRGGBB."""

    fill: str
    line: str


@dataclass(frozen=True)
class Theme:
    """All colours, as #RRGGBB, by what they are for."""

    name: str
    dark: bool
    window: str
    side: str
    card: str
    bubble: str
    line: str
    control_line: str
    """The outline of switches and check boxes, which must be seen without any fill: 3:1 on every surface."""
    ink: str
    muted: str
    accent: str
    accent_soft: str
    on_accent: str
    success: str
    danger: str
    accepted_model: Mark
    accepted_lookup: Mark
    accepted_simple: Mark
    accepted_map_k: Mark
    accepted_map_k4v: Mark
    accepted_mod: Mark
    accepted_cache: Mark
    corrected: Mark
    bonus: Mark
    rejected: Mark
    code_keyword: str
    code_string: str
    code_comment: str
    code_number: str
    code_name: str

    def mark(self, kind: MarkKind) -> Mark:
        mark: Mark = getattr(self, kind.value)
        return mark

    def palette(self) -> QPalette:
        """For what Qt paints without a style sheet."""
        palette = QPalette()
        role = QPalette.ColorRole
        for where, colour in (
            (role.Window, self.window),
            (role.WindowText, self.ink),
            (role.Base, self.card),
            (role.AlternateBase, self.side),
            (role.Text, self.ink),
            (role.Button, self.card),
            (role.ButtonText, self.ink),
            (role.BrightText, self.danger),
            (role.PlaceholderText, self.muted),
            (role.ToolTipBase, self.card),
            (role.ToolTipText, self.ink),
            (role.Highlight, self.accent),
            (role.HighlightedText, self.on_accent),
            (role.Link, self.accent),
            (role.LinkVisited, self.accent),
            (role.Light, self.card),
            (role.Midlight, self.side),
            (role.Mid, self.line),
            (role.Dark, self.muted),
            (role.Shadow, self.ink),
        ):
            palette.setColor(where, QColor(colour))
        for where in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(self.muted))
        return palette


def load_theme(name: str) -> Theme:
    """The theme in resources/themes/<name>.toml. Raises OSError, tomllib.TOMLDecodeError, KeyError, TypeError."""
    with resource_path("themes", f"{name}.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)
    marks: dict[str, Any] = {kind.value: Mark(**table["mark"][kind.value]) for kind in MarkKind}
    code = {f"code_{key}": value for key, value in table["code"].items()}
    return Theme(name=table["name"], dark=table["dark"], **table["surface"], **table["text"], **marks, **code)


LIGHT = load_theme("light")
DARK = load_theme("dark")
LIGHT_COLOUR_BLIND = load_theme("light-colour-blind")
DARK_COLOUR_BLIND = load_theme("dark-colour-blind")


def theme_for(*, dark: bool, colour_blind: bool = False) -> Theme:
    if colour_blind:
        return DARK_COLOUR_BLIND if dark else LIGHT_COLOUR_BLIND
    return DARK if dark else LIGHT


_UNDERLINES = {
    Qt.PenStyle.SolidLine: QTextCharFormat.UnderlineStyle.SingleUnderline,
    Qt.PenStyle.DotLine: QTextCharFormat.UnderlineStyle.DotLine,
    Qt.PenStyle.DashLine: QTextCharFormat.UnderlineStyle.DashUnderline,
}


def kind_format(theme: Theme, kind: MarkKind | None, style: MarkStyle) -> QTextCharFormat:
    """The look of a kind of mark for a text document."""
    text = QTextCharFormat()
    if kind is None or style is MarkStyle.OFF:
        return text
    mark = theme.mark(kind)
    if style is MarkStyle.STRONG:
        text.setBackground(QColor(mark.fill))
    if kind is MarkKind.REJECTED:
        text.setForeground(QColor(mark.line))
        text.setFontStrikeOut(True)
        return text
    text.setUnderlineStyle(_UNDERLINES[kind.pen_style])
    text.setUnderlineColor(QColor(mark.line))
    return text


def mark_format(theme: Theme, origin: Origin, source: Source | None, style: MarkStyle) -> QTextCharFormat:
    """The look of an emitted token for a text document: plain for the target's own."""
    return kind_format(theme, mark_kind(origin, source), style)


def _system_font(kind: QFontDatabase.SystemFont) -> QFont:
    font = QFontDatabase.systemFont(kind)
    # The name may be a generic one, which in a list of families would lose to the fallbacks.
    families = [family if QFontDatabase.hasFamily(family) else QFontInfo(font).family() for family in font.families()]
    font.setFamilies([*families, *_FALLBACKS])
    return font


@cache
def ui_font(pixels: int = TEXT_PIXELS, weight: int = QFont.Weight.Normal.value) -> QFont:
    """The system's font with fallbacks for CJK and emoji. Needs a running QGuiApplication; do not change the result."""
    font = _system_font(QFontDatabase.SystemFont.GeneralFont)
    font.setPixelSize(pixels)
    font.setWeight(QFont.Weight(weight))
    return font


@cache
def code_font(pixels: int = 13) -> QFont:
    """The system's monospaced font with the same fallbacks. Do not change the result."""
    font = _system_font(QFontDatabase.SystemFont.FixedFont)
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setPixelSize(pixels)
    return font


def style_sheet(theme: Theme) -> str:
    """The style sheet of the application.

    Dynamic properties choose a variant: buttons take `primary`, `danger` or `flat`; labels `muted`, `caption`,
    `title` or `heading`; a QFrame `card`, `side` or `toolbar`; a QCheckBox `switch`; a QListView `plain`.
    """
    text = resource_path("themes", "application.qss").read_text("utf-8")
    icons = resource_path("icons").as_posix()
    values = {
        "window": theme.window,
        "side": theme.side,
        "card": theme.card,
        "bubble": theme.bubble,
        "control_line": theme.control_line,
        "line": theme.line,
        "ink": theme.ink,
        "muted": theme.muted,
        "accent_soft": theme.accent_soft,
        "on_accent": theme.on_accent,
        "accent": theme.accent,
        "success": theme.success,
        "danger_soft": theme.rejected.fill,
        "danger": theme.danger,
        "text_pixels": f"{TEXT_PIXELS}px",
        "caption_pixels": f"{CAPTION_PIXELS}px",
        "radius": f"{CARD_RADIUS}px",
        "icons": icons,
        "check": "check-dark.svg" if theme.dark else "check-light.svg",
    }
    # Longest names first: $accent is the beginning of $accent_soft.
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${name}", values[name])
    return text
