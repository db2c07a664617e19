from __future__ import annotations

import pytest

from forespeak.ui.provenance import Provenance
from forespeak.ui.rich_text import SourceRun
from forespeak.ui.theme import MarkKind
from ui.replies import EXAMPLE_TEXT, accepted, corrected, example, plain, step


def made() -> Provenance:
    provenance = Provenance()
    assert provenance.add(example()) == EXAMPLE_TEXT
    return provenance


def test_every_character_belongs_to_the_token_that_wrote_it() -> None:
    provenance = made()
    for position, character in enumerate(EXAMPLE_TEXT):
        ref = provenance.at(position)
        assert ref is not None
        assert ref.token.text[position - ref.start] == character
        assert ref.step.emitted[ref.index] is ref.token


def test_outside_of_the_text_there_is_no_token() -> None:
    provenance = made()
    assert provenance.at(-1) is None
    assert provenance.at(len(EXAMPLE_TEXT)) is None
    assert Provenance().at(0) is None


def test_tokens_are_numbered_through_the_reply() -> None:
    provenance = made()
    assert len(provenance) == sum(len(step.emitted) for step in example())
    assert [provenance.ref(n).number for n in range(len(provenance))] == list(range(len(provenance)))
    assert provenance.ref(4).token.text == "ld**"
    with pytest.raises(IndexError):
        provenance.ref(len(provenance))


def test_neighbours_of_one_kind_are_one_mark() -> None:
    provenance = Provenance()
    provenance.add(
        [step(0, plain("a")), step(1, accepted("bb"), accepted("cc"), corrected("d")), step(2, plain(""), plain("e"))]
    )
    marks = provenance.marks([SourceRun(0, 0, 7)])
    assert [(mark.start, mark.end, mark.kind) for mark in marks] == [
        (1, 5, MarkKind.ACCEPTED_MODEL),
        (5, 6, MarkKind.CORRECTED),
    ]


def test_marks_follow_the_source_to_where_it_is_shown() -> None:
    """The rendered text "cd" came from the source "c**d", written by two tokens of one kind and one of another."""
    provenance = Provenance()
    provenance.add([step(1, accepted("c*"), accepted("*"), corrected("d"))])
    marks = provenance.marks([SourceRun(0, 0, 1), SourceRun(1, 3, 1)])
    assert [(mark.start, mark.end, mark.kind) for mark in marks] == [
        (0, 1, MarkKind.ACCEPTED_MODEL),
        (1, 2, MarkKind.CORRECTED),
    ]


def test_a_source_beyond_the_known_tokens_has_no_mark() -> None:
    provenance = made()
    assert provenance.marks([SourceRun(0, len(EXAMPLE_TEXT), 5)]) == []
    assert Provenance().marks([SourceRun(0, 0, 5)]) == []
