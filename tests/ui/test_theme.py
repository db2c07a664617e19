from __future__ import annotations

import math
import re
from itertools import combinations

import pytest
from PySide6.QtGui import QColor, QTextCharFormat
from PySide6.QtWidgets import QApplication, QCheckBox, QLineEdit
from pytestqt.qtbot import QtBot

from forespeak.resource_files import resource_path
from forespeak.speculation.trace import Origin, Source
from forespeak.ui.theme import (
    DARK,
    DARK_COLOUR_BLIND,
    LIGHT,
    LIGHT_COLOUR_BLIND,
    MarkKind,
    MarkStyle,
    Theme,
    code_font,
    kind_format,
    mark_format,
    mark_kind,
    source_kind,
    style_sheet,
    theme_for,
    ui_font,
)

THEMES = [LIGHT, DARK, LIGHT_COLOUR_BLIND, DARK_COLOUR_BLIND]
every_theme = pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_of_known_colours() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@every_theme
def test_text_can_be_read_everywhere(theme: Theme) -> None:
    surfaces = (theme.window, theme.side, theme.card, theme.bubble)
    for surface in surfaces:
        assert contrast(theme.ink, surface) >= 7.0
        assert contrast(theme.muted, surface) >= 4.5
        assert contrast(theme.control_line, surface) >= 3.0 or surface == theme.bubble
    for surface in (theme.window, theme.side, theme.card):
        assert contrast(theme.accent, surface) >= 4.5
        assert contrast(theme.danger, surface) >= 4.5
        assert contrast(theme.success, surface) >= 4.5
    assert contrast(theme.accent, theme.accent_soft) >= 4.5
    assert contrast(theme.on_accent, theme.accent) >= 4.5


@every_theme
def test_text_on_marks_can_be_read(theme: Theme) -> None:
    for kind in MarkKind:
        mark = theme.mark(kind)
        assert contrast(theme.ink, mark.fill) >= 7.0, kind
        assert contrast(mark.line, theme.card) >= 3.0, kind
        assert contrast(mark.line, theme.window) >= 3.0, kind
        for name in ("keyword", "string", "comment", "number", "name"):
            assert contrast(getattr(theme, f"code_{name}"), mark.fill) >= 4.5, (kind, name)
    assert contrast(theme.rejected.line, theme.rejected.fill) >= 7.0


# Machado, Oliveira and Fernandes 2009, severity 1, on linear light.
SIGHTS = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
}
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.072175), (0.0193339, 0.119192, 0.9503041))


def seen(colour: str, sight: str) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of a colour as it is seen."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    light = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, light, strict=True)))) for row in SIGHTS[sight]]
    x, y, z = (sum(a * b for a, b in zip(row, light, strict=True)) for row in TO_XYZ)
    fx, fy, fz = (
        v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in (x / 0.95047, y, z / 1.08883)
    )
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize(("sight", "least"), [("usual", 20.0), ("protanopia", 9.0), ("deuteranopia", 9.0)])
@every_theme
def test_every_kind_of_mark_has_its_own_colour_for_every_eye(theme: Theme, sight: str, least: float) -> None:
    for one, other in combinations(MarkKind, 2):
        if MarkKind.REJECTED in (one, other):
            # Struck out, not underlined.
            continue
        distance = math.dist(seen(theme.mark(one).line, sight), seen(theme.mark(other).line, sight))
        assert distance >= least, (one, other, distance)


def test_every_source_has_a_mark_and_a_name_of_its_own() -> None:
    kinds = [source_kind(source) for source in Source]
    assert len(set(kinds)) == len({kind.label for kind in kinds}) == len(Source)
    assert [kind.source for kind in kinds] == list(Source)
    assert [kind for kind in MarkKind if kind.looks_up] == kinds[1:]
    for source, kind in zip(Source, kinds, strict=True):
        assert mark_kind(Origin.ACCEPTED, source) is kind


def test_palettes_are_chosen_by_what_is_wanted() -> None:
    assert theme_for(dark=False) is LIGHT
    assert theme_for(dark=True) is DARK
    assert theme_for(dark=False, colour_blind=True) is LIGHT_COLOUR_BLIND
    assert theme_for(dark=True, colour_blind=True) is DARK_COLOUR_BLIND


def test_lines_tell_origins_apart_without_colour(qapp: QApplication) -> None:
    strong = MarkStyle.STRONG
    accepted = mark_format(LIGHT, Origin.ACCEPTED, Source.DRAFT_MODEL, strong)
    corrected = mark_format(LIGHT, Origin.CORRECTED, None, strong)
    bonus = mark_format(LIGHT, Origin.BONUS, None, strong)
    styles = {accepted.underlineStyle(), corrected.underlineStyle(), bonus.underlineStyle()}
    assert styles == {
        QTextCharFormat.UnderlineStyle.SingleUnderline,
        QTextCharFormat.UnderlineStyle.DotLine,
        QTextCharFormat.UnderlineStyle.DashUnderline,
    }
    assert kind_format(LIGHT, MarkKind.REJECTED, strong).fontStrikeOut()


def test_a_draft_model_and_ngrams_differ_in_hue(qapp: QApplication) -> None:
    model = mark_format(LIGHT, Origin.ACCEPTED, Source.DRAFT_MODEL, MarkStyle.STRONG)
    lookup = mark_format(LIGHT, Origin.ACCEPTED, Source.PROMPT_LOOKUP, MarkStyle.STRONG)
    assert model.underlineStyle() == lookup.underlineStyle()
    assert model.underlineColor() != lookup.underlineColor()


def test_subtle_marks_have_lines_only_and_none_have_nothing(qapp: QApplication) -> None:
    subtle = mark_format(LIGHT, Origin.BONUS, None, MarkStyle.SUBTLE)
    assert subtle.background().color() != QColor(LIGHT.bonus.fill)
    assert subtle.underlineColor() == QColor(LIGHT.bonus.line)
    assert mark_format(LIGHT, Origin.BONUS, None, MarkStyle.OFF) == QTextCharFormat()


@pytest.mark.parametrize("origin", [Origin.TARGET, Origin.UNKNOWN])
def test_what_nobody_drafted_has_no_mark(qapp: QApplication, origin: Origin) -> None:
    assert mark_format(LIGHT, origin, None, MarkStyle.STRONG) == QTextCharFormat()


def test_an_accepted_token_of_an_unknown_source_has_no_mark(qapp: QApplication) -> None:
    assert mark_format(LIGHT, Origin.ACCEPTED, None, MarkStyle.STRONG) == QTextCharFormat()


@every_theme
def test_the_style_sheet_is_filled_in(theme: Theme) -> None:
    sheet = style_sheet(theme)
    assert "$" not in sheet
    for path in re.findall(r"url\(([^)]*)\)", sheet):
        assert resource_path("icons", path.rsplit("/", 1)[-1]).is_file()


def test_the_style_sheet_is_understood_by_qt(qtbot: QtBot) -> None:
    field, switch = QLineEdit(), QCheckBox("On")
    switch.setProperty("switch", True)
    for widget in (field, switch):
        qtbot.addWidget(widget)
        widget.setStyleSheet(style_sheet(DARK))
        widget.show()
    assert field.grab().toImage().pixelColor(field.width() // 2, 4) == QColor(DARK.card)


def test_fonts_have_fallbacks_for_cjk_and_emoji(qapp: QApplication) -> None:
    for font in (ui_font(15), code_font(13)):
        assert any("CJK" in family or "PingFang" in family for family in font.families())
        assert any("Emoji" in family for family in font.families())
    assert ui_font(15).pixelSize() == 15
