from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forespeak.ui.sections import SectionSplitter, reads_as_written

LINES = [
    "text",
    "",
    "",
    "```",
    "```python",
    "- item",
    "  more",
    "    code",
    "> quote",
    "| a | b |",
    "# head",
    "~~~",
    "\r",
]


def sections(text: str, sizes: list[int] | None = None) -> list[str]:
    """The sections found when the text arrives in pieces of these sizes."""
    splitter = SectionSplitter()
    found: list[tuple[int, int]] = []
    at = 0
    for size in sizes or [len(text)]:
        at = min(at + size, len(text))
        found += splitter.advance(text[:at])
    found += splitter.advance(text)
    return [text[start:end] for start, end in (*found, (splitter.start, len(text)))]


def test_paragraphs_are_sections_and_keep_their_blank_lines() -> None:
    assert sections("one\ntwo\n\nthree") == ["one\ntwo\n\n", "three"]


def test_a_fence_is_one_section_whatever_it_holds_and_ends_at_once() -> None:
    assert sections("```\na\n\nb\n```\nafter\n") == ["```\na\n\nb\n```\n", "after\n"]


def test_a_shorter_fence_inside_does_not_close() -> None:
    assert sections("````\n```\n\nx\n````\ny") == ["````\n```\n\nx\n````\n", "y"]


def test_what_is_indented_stays_with_its_list() -> None:
    assert sections("- a\n\n  b\n\n- c\n\nd") == ["- a\n\n  b\n\n", "- c\n\n", "d"]


def test_endless_lines_are_cut() -> None:
    parts = sections("a line of words\n" * 2000)
    assert max(len(part) for part in parts) < 6000


@given(st.lists(st.sampled_from(LINES), max_size=25).map("\n".join), st.lists(st.integers(1, 9), max_size=40))
def test_sections_add_up_and_do_not_depend_on_how_the_text_arrives(text: str, sizes: list[int]) -> None:
    assert "".join(sections(text, sizes)) == text
    assert sections(text, sizes) == sections(text)


def test_plain_paragraphs_read_as_written() -> None:
    assert reads_as_written("Just words, and more: 3.5 of them.\n\n")
    assert reads_as_written(" A space before.")
    for section in (
        "a *b*",
        "# a",
        "- a",
        "1. a",
        "a\nb",
        "a `b`",
        "    a",
        " # a",
        "",
        "\n",
        "a  ",
        "<b>",
        "a &amp; b",
        "[a](b)",
    ):
        assert not reads_as_written(section), section
