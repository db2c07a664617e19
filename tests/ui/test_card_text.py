"""Cards: what strangers write becomes plain Markdown, and nothing in it can fetch or run anything."""

from __future__ import annotations

import random

import pytest

from forespeak.ui.card_text import LONGEST, card_markdown
from forespeak.ui.markdown_blocks import CodeBlock, TextBlock, parse


def words_of(card: str) -> str:
    return "\n".join(
        block.content.text for block in parse(card_markdown(card)) if isinstance(block, TextBlock | CodeBlock)
    )


def links_of(card: str) -> list[str]:
    return [
        run.link
        for block in parse(card_markdown(card))
        if isinstance(block, TextBlock)
        for run in block.content.styles
        if run.link
    ]


def test_html_says_its_words() -> None:
    card = (
        '<div align="center">\n    <h1>Small <b>model</b></h1>\n    <p>Made by <a href="https://x.example">us</a>.</p>\n'
        "</div>\n\nMore."
    )
    assert words_of(card) == "Small model\nMade by us.\nMore."
    assert links_of(card) == ["https://x.example"]


def test_pictures_are_their_words() -> None:
    assert words_of('<img src="https://evil.example/track.png" alt="A *chart*"> here') == "A *chart* here"
    assert words_of("![A chart](https://evil.example/track.png) here") == "A chart here"
    assert "evil" not in card_markdown('<img src="https://evil.example/track.png"> here')


@pytest.mark.parametrize("name", ["script", "style", "iframe", "svg", "object"])
def test_what_could_run_is_dropped(name: str) -> None:
    assert card_markdown(f"before <{name} x='1'>alert(1)</{name}> after") == "before  after"
    assert card_markdown(f"before <{name}>never closed").strip() == "before"


def test_comments_go() -> None:
    assert card_markdown("a <!-- hidden\n\nlines --> b") == "a  b"
    assert card_markdown("a <!-- never closed").strip() == "a"


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x"])
def test_links_lead_to_the_web_only(address: str) -> None:
    assert links_of(f'<a href="{address}">press</a> and [press]({address})') == []
    assert "press" in words_of(f'<a href="{address}">press</a>')


def test_code_keeps_its_tags() -> None:
    card = "Use `<b>` and:\n\n```html\n<div>x</div>\n<script>y</script>\n```\n\n<b>bold</b>"
    assert words_of(card) == "Use <b> and:\n<div>x</div>\n<script>y</script>\nbold"


def test_tags_that_are_none_stay() -> None:
    assert words_of("The model writes <think> first, then <|im_end|>; a < b > c.") == (
        "The model writes <think> first, then <|im_end|>; a < b > c."
    )


def test_lists_tables_and_lines() -> None:
    assert words_of("<ul><li>one</li><li>two</li></ul>") == "one\ntwo"
    assert words_of("<table><tr><td>a</td><td>b</td></tr></table>").startswith("a · b")
    assert words_of("one<br>two").split() == ["one", "two"]
    assert words_of("<details><summary>More</summary>\n\ninside\n\n</details>") == "More\ninside"


def test_a_long_card_is_cut() -> None:
    shown = card_markdown("word " * LONGEST)
    assert len(shown) <= LONGEST + 3
    assert shown.endswith("…")


def test_hostile_cards_end_soon_and_never_fail() -> None:
    chance = random.Random(7)
    pieces = ["<a href='", "<div", ">", "`", "``", "<!--", "-->", "\n\n", "</a>", "<script>", "[", "]("]
    pieces += ["---\n", "    ", "<"]
    for _ in range(300):
        card = "".join(chance.choice(pieces) for _ in range(chance.randrange(1, 60)))
        parse(card_markdown(card))
    for piece in pieces:
        # Would take minutes if anything were quadratic.
        card_markdown(piece * 40_000)
