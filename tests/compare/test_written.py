"""Blocks of a report in a terminal."""

from __future__ import annotations

from forespeak.compare.document import Bullets, Chart, Heading, Quote, Table, Text
from forespeak.compare.table import WIDTH
from forespeak.compare.written import text_of


def test_a_terminal_gets_no_charts_and_no_quotes() -> None:
    blocks = (Heading(1, "Title"), Text("Words."), Chart("A chart", "<svg/>"), Quote("A prompt", "Secret."))
    assert text_of((*blocks, Bullets(("one", "two")))) == "Title\n\nWords.\n\n  one\n  two\n"


def test_wide_tables_are_split_and_keep_their_first_column() -> None:
    head = ("", *(f"a lane with a long name {number}" for number in range(6)))
    rows = (("coding", *map(str, range(6))), ("writing", *map(str, range(6, 12))))
    text = text_of((Table(head, rows),))
    assert max(map(len, text.splitlines())) <= WIDTH
    parts = text.strip("\n").split("\n\n")
    assert [len(part.splitlines()) for part in parts] == [3] * len(parts)
    assert len(parts) == 2
    shown = [word for part in parts for word in part.splitlines()[1].split()]
    assert shown == ["coding", "0", "1", "2", "coding", "3", "4", "5"]


def test_a_table_that_fits_stays_whole() -> None:
    assert text_of((Table(("", "b"), (("a", "1"),)),)) == "   b\na  1\n"
