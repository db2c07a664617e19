from __future__ import annotations

from PySide6.QtWidgets import QApplication

from forespeak.ui.block_boxes import CodeBox, TextBox
from forespeak.ui.open_section import OpenSection
from forespeak.ui.provenance import Provenance


def grown(text: str, sizes: int, *, raw: bool = False, in_fence: bool = False) -> OpenSection:
    section = OpenSection(0, Provenance().marks, raw=raw)
    for end in range(sizes, len(text), sizes):
        section.grow(text[:end], in_fence=in_fence and "\n" in text[:end])
    section.grow(text, in_fence=in_fence)
    return section


def test_each_line_gets_a_box(qapp: QApplication) -> None:
    for sizes in (1, 3, 100):
        section = grown("one\ntwo\nthree", sizes)
        assert [box.flows()[0].flow.text for box in section.boxes] == ["one", "two", "three"]


def test_a_fence_makes_a_card_however_it_arrives(qapp: QApplication) -> None:
    for sizes in (1, 2, 7, 100):
        section = grown("Here:\n```py\na = 1\n", sizes, in_fence=True)
        text, card = section.boxes
        assert isinstance(text, TextBox)
        assert isinstance(card, CodeBox)
        assert (card.language, card.code.rstrip()) == ("py", "a = 1")


def test_the_source_view_makes_no_cards(qapp: QApplication) -> None:
    section = grown("```py\na = 1\n", 1, raw=True, in_fence=True)
    assert [box.flows()[0].flow.text for box in section.boxes] == ["```py", "a = 1"]


def test_a_plain_paragraph_is_kept_as_it_is_laid_out(qapp: QApplication) -> None:
    section = grown("Some words", 3)
    boxes = section.as_paragraph("Some words and more.\n\n", 22)
    assert boxes is section.boxes
    assert section.boxes[0].flows()[0].flow.text == "Some words and more."
    assert grown("two\nlines", 3).as_paragraph("two\nlines\n\n", 11) is None
