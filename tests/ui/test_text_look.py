from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QImage, QPainter
from PySide6.QtWidgets import QApplication

from forespeak.ui.rich_text import Style, StyleRun
from forespeak.ui.text_look import char_format, paint_underline
from forespeak.ui.theme import DARK, LIGHT, MarkKind


def line(kind: MarkKind) -> QImage:
    image = QImage(60, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint_underline(painter, QRectF(0, 0, 60, 20), kind, "#000000")
    painter.end()
    return image


def drawn(kind: MarkKind) -> list[bool]:
    """Where along its length the line has ink."""
    image = line(kind)
    return [any(image.pixelColor(x, y).lightness() < 160 for y in range(20)) for x in range(60)]


@pytest.mark.parametrize(
    ("kind", "gaps"),
    [
        (MarkKind.ACCEPTED_MODEL, 0),
        (MarkKind.ACCEPTED_LOOKUP, 0),
        (MarkKind.ACCEPTED_CACHE, 0),
        (MarkKind.REJECTED, 0),
        (MarkKind.BONUS, 5),
        (MarkKind.CORRECTED, 8),
    ],
)
def test_lines_are_solid_dashed_or_dotted(qapp: QApplication, kind: MarkKind, gaps: int) -> None:
    ink = drawn(kind)[4:56]
    starts = sum(not here and before for before, here in pairwise(ink))
    assert starts >= gaps
    assert gaps or starts == 0


def test_every_kind_has_a_line_of_its_own_without_its_colour(qapp: QApplication) -> None:
    lines = [line(kind) for kind in MarkKind]
    assert all(one != other for one, other in combinations(lines, 2))


def rows(kind: MarkKind) -> list[int]:
    """The rows that have ink somewhere."""
    image = line(kind)
    return [y for y in range(20) if any(image.pixelColor(x, y).lightness() < 160 for x in range(60))]


def test_what_was_looked_up_has_two_lines_and_a_model_one(qapp: QApplication) -> None:
    assert rows(MarkKind.ACCEPTED_MODEL) == [18, 19]
    for kind in MarkKind:
        if kind.looks_up:
            assert rows(kind) == [17, 19], kind


def test_styles_become_formats(qapp: QApplication) -> None:
    bold = char_format(StyleRun(0, 1, Style.BOLD | Style.ITALIC), LIGHT)
    assert bold.fontWeight() == QFont.Weight.DemiBold
    assert bold.fontItalic()
    assert char_format(StyleRun(0, 1, Style.STRUCK), LIGHT).fontStrikeOut()
    link = char_format(StyleRun(0, 1, Style.LINK), DARK)
    assert link.foreground().color() == QColor(DARK.accent)
    assert link.fontUnderline(), "a link is not told by its colour alone"
    keyword = char_format(StyleRun(0, 1, colour="code_keyword"), LIGHT)
    assert keyword.foreground().color() == QColor(LIGHT.code_keyword)
    assert char_format(StyleRun(0, 1, Style.CODE), LIGHT).font().pixelSize() == 13
