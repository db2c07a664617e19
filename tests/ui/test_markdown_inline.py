from __future__ import annotations

import pytest

from forespeak.ui.markdown_blocks import TextBlock, parse
from forespeak.ui.rich_text import RichText, Style


def inline(source: str) -> RichText:
    (block,) = parse(source)
    assert isinstance(block, TextBlock)
    return block.content


def covered(text: RichText) -> str:
    return "".join(text.text[run.start : run.start + run.length] for run in text.sources)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a [link **b**](http://x.y 'title') c", "a link b c"),
        ("<http://x.y> and", "http://x.y and"),
        ("a ![picture](http://x/y.png) b", "a picture b"),
        ("`` a`b `` c", "a`b c"),
        ("` a ` b", "a b"),
        ("~~gone~~ __bold__ ***both***", "gone bold both"),
        ("5 * 3 = 15 and a_b_c", "5 * 3 = 15 and a_b_c"),
        ("[not a link] (here)", "[not a link] (here)"),
        ("[a](b [c](http://d)", "[a](b c"),
        ("京都 **三日** 🍁", "京都 三日 🍁"),
    ],
)
def test_every_shown_character_knows_its_place(source: str, shown: str) -> None:
    text = inline(source)
    assert text.text == shown
    assert covered(text) == shown
    for run in text.sources:
        assert source[run.source : run.source + run.length] == shown[run.start : run.start + run.length]


def test_links_carry_their_address_and_pictures_do_not() -> None:
    text = inline("[here](http://x.y) ![there](http://z)")
    links = [run for run in text.styles if run.style & Style.LINK]
    assert [(run.link, text.text[run.start : run.start + run.length]) for run in links] == [("http://x.y", "here")]
    assert "http://z" not in str(text)


def test_reference_links_keep_the_rest_aligned() -> None:
    (block,) = parse("see [this][ref] and that\n\n[ref]: http://x.y\n")
    assert isinstance(block, TextBlock)
    assert covered(block.content) == "see this and that"


def test_line_breaks_become_spaces_or_stay() -> None:
    assert inline("one\ntwo").text == "one two"
    assert inline("one  \ntwo").text == "one\u2028two"
    assert covered(inline("one  \ntwo")) == "onetwo"
