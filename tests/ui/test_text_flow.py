from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from forespeak.ui.rich_text import RichText, SourceRun, Style, StyleRun
from forespeak.ui.text_flow import TextFlow
from forespeak.ui.text_look import FlowFont, Look, MarkRun
from forespeak.ui.theme import DARK, LIGHT, MarkKind, MarkStyle, ui_font

WORDS = ["word ", "and ", "京都", "🍁", "👩‍👩‍👧", "a", " ", "\n", "longest ", "é", "שלום "]


def flow_of(
    text: str, width: float = 300, marks: tuple[MarkRun, ...] = (), styles: tuple[StyleRun, ...] = ()
) -> TextFlow:
    flow = TextFlow(RichText(text, styles, (SourceRun(0, 0, len(text)),)), marks, FlowFont(ui_font(15), 1.7))
    flow.layout(width, LIGHT)
    return flow


def picture(flow: TextFlow, look: Look | None = None, selection: tuple[int, int] | None = None) -> QImage:
    image = QImage(420, max(int(flow.height), 1) + 4, QImage.Format.Format_RGB32)
    image.fill(QColor(LIGHT.window))
    painter = QPainter(image)
    flow.paint(painter, QPointF(), QRectF(image.rect()), look or Look(LIGHT), selection)
    painter.end()
    return image


def colours(image: QImage) -> set[str]:
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_text_breaks_into_lines_of_even_height(qapp: QApplication) -> None:
    flow = flow_of("many words " * 40)
    assert flow.height > 5 * flow.line_height
    assert flow.height % flow.line_height == 0
    assert flow.natural_width <= 300


def test_no_text_still_takes_a_line(qapp: QApplication) -> None:
    assert flow_of("").height == flow_of("a").height


def test_tall_fallback_fonts_do_not_move_the_lines(qapp: QApplication) -> None:
    assert flow_of("京都三日 🍁").height == flow_of("Kyoto").height


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(WORDS), max_size=120), st.integers(1, 30))
def test_text_that_arrives_in_pieces_is_laid_out_as_in_one(qapp: QApplication, words: list[str], cut: int) -> None:
    whole = flow_of("".join(words))
    grown = flow_of("")
    at = 0
    for start in range(0, len(words), cut):
        piece = "".join(words[start : start + cut])
        grown.append(piece, [SourceRun(at, at, len(piece))], [])
        at += len(piece)
    assert grown.text == whole.text
    assert grown.height == whole.height
    for position in range(0, len(whole.text), 7):
        assert grown.rects(position, position + 1) == whole.rects(position, position + 1)


def test_a_paragraph_longer_than_a_chunk_breaks_like_a_short_one(qapp: QApplication) -> None:
    """Every line but the last is full: no line ends early where a chunk ended."""
    flow = flow_of("word " * 2000, width=500)
    rights = [max(rect.right() for rect in flow.rects(n, n + 80)) for n in range(0, 9000, 80)]
    assert min(rights) > 500 - 60


@pytest.mark.parametrize("text", ["plain text here", "京都三日 🍁🍁 and more", "abc שלום עולם def"])
def test_a_click_on_a_character_finds_it(qapp: QApplication, text: str) -> None:
    flow = flow_of(text, width=1000)
    for position, character in enumerate(text):
        (rect,) = flow.rects(position, position + 1) or [QRectF()]
        if rect.width() > 1:
            assert flow.character_at(rect.center()) == position, character


def test_beside_the_text_there_is_no_character(qapp: QApplication) -> None:
    flow = flow_of("short")
    assert flow.character_at(QPointF(290, 10)) is None
    assert flow.character_at(QPointF(5, 500)) is None
    assert flow.character_at(QPointF(290, 10), between=True) == 5


def test_characters_know_their_source_and_the_other_way(qapp: QApplication) -> None:
    flow = TextFlow(RichText("ab cd", (), (SourceRun(0, 10, 2), SourceRun(3, 15, 2))), (), FlowFont(ui_font(15), 1.7))
    assert [flow.source_at(n) for n in range(5)] == [10, 11, None, 15, 16]
    assert flow.range_of_source(11, 16) == (1, 4)
    assert flow.range_of_source(12, 15) is None


def test_marks_are_painted_as_lines_and_fills(qapp: QApplication) -> None:
    flow = flow_of("marked text", marks=(MarkRun(0, 6, MarkKind.ACCEPTED_MODEL),))
    mark = LIGHT.accepted_model
    assert {mark.fill.lower(), mark.line.lower()} <= colours(picture(flow))
    subtle = colours(picture(flow, Look(LIGHT, MarkStyle.SUBTLE)))
    assert mark.line.lower() in subtle
    assert mark.fill.lower() not in subtle
    off = colours(picture(flow, Look(LIGHT, MarkStyle.OFF)))
    assert not {mark.fill.lower(), mark.line.lower()} & off


def test_a_mark_covers_its_characters_and_no_others(qapp: QApplication) -> None:
    text = "aa 🍁🍁 bb"
    flow = flow_of(text, marks=(MarkRun(3, 5, MarkKind.BONUS),))
    image = picture(flow)
    fill = QColor(LIGHT.bonus.fill).name()
    marked = {x for x in range(image.width()) for y in range(image.height()) if image.pixelColor(x, y).name() == fill}
    (rect,) = flow.rects(3, 5)
    assert rect.left() - 2 <= min(marked)
    assert max(marked) <= rect.right() + 2
    assert max(marked) - min(marked) > rect.width() - 6


def test_marks_that_grow_are_joined(qapp: QApplication) -> None:
    flow = flow_of("")
    for start in range(0, 30, 3):
        flow.append("abc", [SourceRun(start, start, 3)], [MarkRun(start, start + 3, MarkKind.BONUS)])
    assert len(flow.sources) == 1
    assert flow.rects(0, 30)[0].width() == pytest.approx(flow.natural_width, abs=1)


def test_a_selection_is_seen(qapp: QApplication) -> None:
    flow = flow_of("some selected text")
    assert colours(picture(flow, selection=(0, 10))) != colours(picture(flow))


def test_another_theme_changes_the_colours_of_styled_text(qapp: QApplication) -> None:
    flow = flow_of("link", styles=(StyleRun(0, 4, Style.LINK, link="http://x.y"),))
    assert QColor(LIGHT.accent).name() in colours(picture(flow))
    flow.layout(300, DARK)
    assert QColor(DARK.accent).name() in colours(picture(flow, Look(DARK)))
    assert flow.link_at(2) == "http://x.y"
    assert flow.link_at(4) is None


def test_words_are_found_around_a_character(qapp: QApplication) -> None:
    flow = flow_of("one two_three, four")
    assert flow.word_at(6) == (4, 13)
    assert flow.word_at(13) == (13, 14)
