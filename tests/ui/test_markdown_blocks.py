from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.ui.markdown_blocks import Block, CodeBlock, RuleBlock, TableBlock, TextBlock, parse
from forespeak.ui.rich_text import RichText, Style

PIECES = [
    *(
        "word",
        " ",
        "  ",
        "\n",
        "\n\n",
        "**",
        "*",
        "_",
        "`",
        "``",
        "~~",
        "# ",
        "## ",
        "- ",
        "1. ",
        "12) ",
        "> ",
        "| ",
        "|",
        "\\*",
        "\\",
    ),
    *(
        "&amp;",
        "&",
        "[",
        "](http://a.b)",
        "]",
        "![",
        "<http://x.y>",
        "<b>",
        "```\n",
        "```python\n",
        "    ",
        "---\n",
        "|---|---|\n",
    ),
    *("京都", "🍁", "\t", "\r\n", "===\n", "a|b\n", "[x]: http://y\n", "(", ")", '"'),
]


def texts(blocks: tuple[Block, ...]) -> Iterator[RichText]:
    for block in blocks:
        match block:
            case TextBlock():
                yield block.content
                if block.marker is not None:
                    yield block.marker
            case CodeBlock():
                yield block.content
            case TableBlock():
                yield from (cell for row in block.rows for cell in row)


def covered(text: RichText) -> str:
    return "".join(text.text[run.start : run.start + run.length] for run in text.sources)


def check_sources(source: str, offset: int) -> None:
    last = -1
    for text in texts(parse(source, offset)):
        end = 0
        for run in text.sources:
            shown = text.text[run.start : run.start + run.length]
            written = source[run.source - offset : run.source - offset + run.length]
            assert run.length > 0
            assert run.start >= end, "runs are in order and apart"
            # In code between backticks a line break is shown as a space.
            assert shown == written.replace("\n", " ") or shown == written, (shown, written)
            end = run.start + run.length
        if text.sources:
            last = max(last, text.sources[-1].source)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from([0, 100]))
def test_a_character_with_a_source_is_that_character(source: str, offset: int) -> None:
    check_sources(source, offset)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_character_of_the_source_is_shown_twice(source: str) -> None:
    used: set[int] = set()
    for text in texts(parse(source)):
        for run in text.sources:
            places = set(range(run.source, run.source + run.length))
            assert not places & used
            used |= places


def test_markup_is_left_out_and_the_rest_keeps_its_place() -> None:
    (block,) = parse("a **b** `c` \\* d")
    assert isinstance(block, TextBlock)
    assert block.content.text == "a b c * d"
    assert covered(block.content) == "a b c * d"
    assert [(run.style, block.content.text[run.start : run.start + run.length]) for run in block.content.styles] == [
        (Style.BOLD, "b"),
        (Style.CODE, "c"),
    ]


def test_an_entity_has_no_source_because_it_is_written_otherwise() -> None:
    (block,) = parse("a &amp; b")
    assert isinstance(block, TextBlock)
    assert block.content.text == "a & b"
    assert covered(block.content) == "a  b"


def test_headings_lists_quotes_and_rules_are_told_apart() -> None:
    blocks = parse("# Title #\n\n1. one\n   - two\n\n> said\n\n---\n")
    assert isinstance(blocks[0], TextBlock)
    assert (blocks[0].level, blocks[0].content.text, covered(blocks[0].content)) == (1, "Title", "Title")
    assert isinstance(blocks[1], TextBlock)
    assert blocks[1].marker is not None
    assert (blocks[1].nesting, blocks[1].marker.text, covered(blocks[1].marker)) == (("list",), "1.", "1.")
    assert isinstance(blocks[2], TextBlock)
    assert blocks[2].nesting == ("list", "list")
    assert blocks[2].marker == RichText("•")
    assert isinstance(blocks[3], TextBlock)
    assert (blocks[3].nesting, covered(blocks[3].content)) == (("quote",), "said")
    assert blocks[4] == RuleBlock()


def test_a_list_number_is_not_taken_for_its_text() -> None:
    # The text of the item is the second 1.
    (block,) = parse("1. 1")
    assert isinstance(block, TextBlock)
    assert block.content.sources[0].source == 3


def test_code_keeps_its_lines_and_their_places() -> None:
    source = "- item\n\n  ```python\n  def f():\n\n      return 1\n  ```\n"
    code = next(block for block in parse(source) if isinstance(block, CodeBlock))
    assert code.language == "python"
    assert code.content.text == "def f():\n\n    return 1"
    assert covered(code.content) == "def f():    return 1"


def test_an_open_fence_is_code_to_the_end() -> None:
    (code,) = parse("```\nabc")
    assert isinstance(code, CodeBlock)
    assert (code.content.text, covered(code.content)) == ("abc", "abc")


def test_tables_have_rows_alignments_and_places() -> None:
    (table,) = parse("| a | a |\n|---|--:|\n| x | **y** |\n")
    assert isinstance(table, TableBlock)
    assert table.alignments == ("left", "right")
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "a"], ["x", "y"]]
    assert [cell.sources[0].source for cell in table.rows[0]] == [2, 6]
    assert covered(table.rows[1][1]) == "y"


def test_html_is_text() -> None:
    (block,) = parse("<script>alert(1)</script>")
    assert isinstance(block, TextBlock)
    assert block.content.text == "<script>alert(1)</script>"


def test_windows_line_ends_do_not_shift_anything() -> None:
    check_sources("one\r\n\r\n- two\r\n- three **x**\r\n", 0)
    blocks = parse("one\r\n\r\n- two\r\n")
    assert covered(next(texts(blocks))) == "one"
