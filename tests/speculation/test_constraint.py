"""A grammar's place in the text: what is allowed behind any draft, before and after a trigger, and at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automaton import Automaton
from forespeak.speculation.constraint import GrammarConstraint, Mask
from scripted import ScriptedVocabulary

A, B, C, END, STOP, EMPTY, THINK, OVER, SPACED = range(9)
VOCABULARY = ScriptedVocabulary([b"a", b"b", b"c", b"<end>", b"", b"", b"</t", b">b", b"> \n"], ends={END, STOP})
STEPS = {0: {A: 1}, 1: {A: 1, B: 2}, 2: {C: 0, B: 3}, 3: {}}
"""(a+ b c)* a+ b b"""


def constraint(after: bytes = b"") -> GrammarConstraint:
    return GrammarConstraint(Automaton(STEPS, {3}, VOCABULARY.size), VOCABULARY, after)


def ids(mask: Mask | None) -> set[int] | None:
    return None if mask is None else {int(token) for token in np.flatnonzero(mask)}


def allowed(text: Sequence[int]) -> set[int]:
    state = 0
    for token in text:
        state = STEPS[state][token]
    return set(STEPS[state]) or {END, STOP}


@st.composite
def sentences(draw: st.DrawFn) -> list[int]:
    text: list[int] = []
    for _ in range(draw(st.integers(0, 8))):
        nexts = sorted(allowed(text) - {END, STOP})
        if not nexts:
            break
        text.append(draw(st.sampled_from(nexts)))
    return text


@settings(max_examples=200, deadline=None)
@given(text=sentences(), guesses=st.lists(sentences(), max_size=6), data=st.data())
def test_whatever_was_asked_before_the_answer_is_the_texts(
    text: list[int], guesses: list[list[int]], data: st.DataObject
) -> None:
    """Drafts of all kinds are asked about between any two accepted runs of one text."""
    held, done = constraint(), 0
    while True:
        for guess in guesses:
            behind = [*text[done : done + data.draw(st.integers(0, 3))], *guess]
            good = 0
            while good < len(behind) and behind[good] in allowed([*text[:done], *behind[:good]]):
                good += 1
            assert held.permitted(behind) == good
            place = data.draw(st.integers(0, good))
            assert ids(held.allowed(behind[:place])) == allowed([*text[:done], *behind[:place]])
        if done == len(text):
            break
        step = data.draw(st.integers(1, len(text) - done))
        held.accept(text[done : done + step])
        done += step


def test_a_complete_text_may_only_end() -> None:
    held = constraint()
    held.accept([A, B, B])
    assert ids(held.allowed([])) == {END, STOP}
    assert held.permitted([STOP, A]) == 1
    assert ids(held.allowed([END])) == {END, STOP}
    assert held.permitted([A]) == 0


def test_an_unfinished_text_may_not_end() -> None:
    assert constraint().permitted([A, END]) == 1


def test_what_the_grammar_forbids_is_our_bug_when_accepted() -> None:
    with pytest.raises(ValueError, match="not permitted"):
        constraint().accept([B])


def test_masks_are_computed_once_for_drafting_and_verifying() -> None:
    matcher = Automaton(STEPS, {3}, VOCABULARY.size)
    held = GrammarConstraint(matcher, VOCABULARY)
    for _ in range(2):
        for place in range(4):
            held.allowed([A, B, C][:place])
    # Asking for a shorter draft again forgets what lay behind it, and the verified draft is walked once more.
    assert matcher.masks <= 7
    held.accept([A, B, C])
    before = matcher.masks
    assert ids(held.allowed([])) == {A}
    assert matcher.masks == before


def test_the_text_is_free_until_the_trigger() -> None:
    held = constraint(b"</t>")
    assert held.allowed([]) is None
    assert held.permitted([B, B, EMPTY, C, THINK]) == 5
    held.accept([B, C])
    assert held.allowed([B]) is None
    # The trigger comes and goes within drafts.
    assert ids(held.allowed([THINK, SPACED])) == {A}
    assert ids(held.allowed([THINK, SPACED, A])) == {A, B}
    assert held.permitted([THINK, SPACED, A, A, C]) == 4
    assert held.permitted([THINK, SPACED, B]) == 2
    assert held.allowed([B]) is None
    held.accept([THINK, SPACED, A])
    assert ids(held.allowed([])) == {A, B}


def test_a_reply_may_end_while_it_is_free() -> None:
    held = constraint(b"</t>")
    assert held.permitted([B, END, B]) == 2
    held.accept([B, END])
    assert ids(held.allowed([])) == {END, STOP}


def test_the_token_that_ends_the_trigger_brings_nothing_but_white_space() -> None:
    held = constraint(b"</t>")
    # Elsewhere that token is as free as any.
    assert held.permitted([OVER, B]) == 2
    assert ids(held.allowed([THINK])) == set(range(VOCABULARY.size)) - {OVER}
    assert held.permitted([THINK, OVER]) == 1
    assert held.permitted([THINK, A, OVER]) == 3


@pytest.mark.parametrize(
    ("trigger", "text", "begins_at"),
    [(b"aab", b"aaab", 4), (b"abab", b"abaabab", 7), (b"aa", b"ba", None), (b"abc", b"ababcab", 5)],
)
def test_a_trigger_that_overlaps_itself_is_found(trigger: bytes, text: bytes, begins_at: int | None) -> None:
    vocabulary = ScriptedVocabulary([b"a", b"b", b"c", b"!"], ends={3})
    held = GrammarConstraint(Automaton({0: dict.fromkeys(range(3), 0)}, {0}, 4), vocabulary, trigger)
    tokens = [byte - ord("a") for byte in text]
    free = [held.allowed(tokens[:place]) is None for place in range(len(tokens) + 1)]
    expected = len(tokens) + 1 if begins_at is None else begins_at
    assert free == [place < expected for place in range(len(tokens) + 1)]
