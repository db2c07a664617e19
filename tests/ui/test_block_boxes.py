from __future__ import annotations

from PySide6.QtWidgets import QApplication

from forespeak.ui.block_boxes import Box, CodeBox, RuleBox, TableBox, TextBox, boxes_of, raw_boxes
from forespeak.ui.markdown_blocks import parse
from forespeak.ui.provenance import Provenance
from forespeak.ui.theme import LIGHT


def boxes(source: str, width: float = 500) -> list[Box]:
    made = list(boxes_of(parse(source), Provenance().marks))
    for box in made:
        box.layout(width, LIGHT)
    return made


def test_each_block_gets_its_box(qapp: QApplication) -> None:
    kinds = [type(box) for box in boxes("text\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n\n---\n")]
    assert kinds == [TextBox, CodeBox, TableBox, RuleBox]


def test_a_nested_item_stands_further_right_than_its_parent(qapp: QApplication) -> None:
    outer, inner, quoted = boxes("- a\n  - b\n    > c\n")
    assert outer.indent < inner.indent < quoted.indent


def test_markers_stand_left_of_their_text(qapp: QApplication) -> None:
    for source in ("10. ten", "100000. a hundred thousand", "- a\n  1234567. b"):
        marker, text = boxes(source)[-1].flows()
        assert marker.at.x() >= 0
        assert marker.at.x() + marker.flow.natural_width < text.at.x()


def test_headings_are_larger(qapp: QApplication) -> None:
    heading, text = boxes("# Title\n\ntext")
    assert heading.height > text.height


def test_tight_items_stand_closer_than_paragraphs(qapp: QApplication) -> None:
    assert boxes("- a\n- b")[1].gap < boxes("a\n\nb")[1].gap


def test_a_table_fits_its_room_and_narrow_columns_stay_whole(qapp: QApplication) -> None:
    (box,) = boxes(f"| id | text |\n|---|---|\n| 7 | {'many words ' * 40} |\n", width=400)
    placed = box.flows()
    assert max(p.at.x() + p.flow.natural_width for p in placed) <= 400
    by_text = {p.flow.text.strip(): p.flow for p in placed}
    assert by_text["7"].height == by_text["7"].line_height
    assert box.height > 5 * by_text["7"].line_height


def test_columns_are_aligned(qapp: QApplication) -> None:
    (box,) = boxes("| wide heading |\n|---:|\n| 1 |\n")
    heading, cell = box.flows()
    assert abs(heading.at.x() + heading.flow.natural_width - cell.at.x() - cell.flow.natural_width) < 3


def test_code_can_be_copied_as_written(qapp: QApplication) -> None:
    (box,) = boxes("```js\na\n\n  b\n```\n")
    assert isinstance(box, CodeBox)
    assert (box.language, box.code) == ("js", "a\n\n  b")


def test_long_lines_of_code_wrap_instead_of_being_lost(qapp: QApplication) -> None:
    (box,) = boxes(f"```\n{'x' * 400}\n```\n", width=300)
    assert box.flows()[0].flow.natural_width <= 300


def test_the_source_shows_its_line_ends(qapp: QApplication) -> None:
    made = list(raw_boxes("a\n\n**b**", 0, Provenance().marks))
    assert [box.flows()[0].flow.text for box in made] == ["a↵", "↵", "**b**"]
    assert made[1].flows()[0].flow.source_at(0) == 2
