"""A grammar's place in the text: what is allowed behind any draft, before and after a trigger, and at the end."""

from __future__ import annotations

import re
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
    assert matcher.masks == 4
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


# Replies that may open thoughts by themselves

OPENER, CLOSER = b"<t>", b"</t>"
THOUGHTFUL = ScriptedVocabulary(
    [
        *(b"a", b"b", b"c", b"<end>", b"", b"<t>", b"</t>", b"<", b"t>", b"\n", b"<t>a", b"<t></t>"),
        *(b"<t></t>b", b" <t>\n", b"", b"</t> ", b">b", b" "),
    ],
    ends={3},
)
SIGN, LESS, REST, LINE, OPENS_MORE, WHOLE, NAMED, SPACE = 5, 7, 8, 9, 10, 11, 14, 17
NAMES = {NAMED: b"<t>"}
"""A control token, which has no text of its own."""
BEGINNINGS = {0: {A: 1, LESS: 4, LINE: 0}, 1: {A: 1, B: 2}, 2: {C: 0, B: 3}, 3: {}, 4: {A: 1, REST: 1}}
"""The same sentences; they may begin with empty lines, and like the opener does, even in all of its text."""


def thoughtful(kind: type[GrammarConstraint] = GrammarConstraint) -> GrammarConstraint:
    after, at_once = (Automaton(BEGINNINGS, {3}, THOUGHTFUL.size) for _ in range(2))
    return kind(after, THOUGHTFUL, CLOSER, OPENER, at_once, NAMES)


def piece(token: int) -> bytes:
    return THOUGHTFUL.piece(token) or NAMES.get(token, b"")


def in_sentence(text: Sequence[int]) -> set[int]:
    state = 0
    for token in text:
        if token not in BEGINNINGS[state]:
            return set()
        state = BEGINNINGS[state][token]
    return set(BEGINNINGS[state]) or {3}


def may_follow(text: Sequence[int]) -> set[int]:
    """Worked out from the text alone, all of it, each time."""
    if 3 in text:
        return {3}
    written = b"".join(map(piece, text))
    every = range(THOUGHTFUL.size)
    if re.match(rb"\s{0,4}<t>", written):
        closed = next((n for n in range(len(text) + 1) if CLOSER in b"".join(map(piece, text[:n]))), None)
        if closed is not None:
            return in_sentence(text[closed:])
        return {t for t in every if t == 3 or not (written + piece(t)).partition(CLOSER)[2].strip()}
    opens = re.compile(rb"\s{0,4}(|<|<t|<t>(?!.*</t>\s*\S).*)", re.DOTALL)
    return in_sentence(text) | {t for t in every if t != 3 and piece(t) and opens.fullmatch(written + piece(t))}


@st.composite
def replies(draw: st.DrawFn) -> list[int]:
    text: list[int] = []
    for _ in range(draw(st.integers(0, 9))):
        nexts = sorted(may_follow(text))
        text.append(draw(st.sampled_from(nexts)))
        if text[-1] == 3:
            break
    return text


@settings(max_examples=150, deadline=None)
@given(text=replies(), guesses=st.lists(st.lists(st.integers(0, THOUGHTFUL.size - 1), max_size=6)), data=st.data())
def test_thoughts_or_the_grammar_whatever_was_asked_before(
    text: list[int], guesses: list[list[int]], data: st.DataObject
) -> None:
    """Drafts over both borders, good and bad, and shorter ones after longer ones, between any two accepted runs."""
    held, done = thoughtful(), 0
    while True:
        for guess in [*guesses, []]:
            behind = [*text[done : done + data.draw(st.integers(0, 4))], *guess]
            good = 0
            while good < len(behind) and behind[good] in may_follow([*text[:done], *behind[:good]]):
                good += 1
                if behind[good - 1] == 3:
                    break
            if 3 in text[:done]:
                good = 0
            assert held.permitted(behind) == good
            place = data.draw(st.integers(0, good))
            mask = held.allowed(behind[:place])
            found = set(range(THOUGHTFUL.size)) if mask is None else ids(mask)
            assert found == may_follow([*text[:done], *behind[:place]])
        if done == len(text):
            break
        step = data.draw(st.integers(1, len(text) - done))
        held.accept(text[done : done + step])
        done += step


def test_a_reply_begins_with_the_grammar_or_with_the_opener() -> None:
    held = thoughtful()
    # "<t></t>b" would write beside the grammar, and what has no text comes to nothing.
    assert ids(held.allowed([])) == {A, SIGN, LESS, LINE, OPENS_MORE, WHOLE, 13, NAMED, SPACE}
    assert ids(held.allowed([LESS])) == {A, REST}, "both ways are open"
    assert ids(held.allowed([LESS, A])) == {A, B}, "the opener can no longer come"
    assert A not in (ids(held.allowed([SPACE])) or {A}), "the grammar can no longer come"
    assert B in (ids(held.allowed([LESS, REST])) or ()), "the opener goes before the grammar"
    assert held.permitted([LESS, REST, B, B, SIGN, C]) == 6, "thoughts are free"
    assert ids(held.allowed([WHOLE])) == {A, LESS, LINE}
    held.accept([NAMED, B])
    assert held.permitted([6, A, A, C]) == 3


def test_white_space_before_thoughts_has_an_end() -> None:
    held = thoughtful()
    assert held.permitted([LINE] * 4 + [SIGN, B]) == 6
    # The grammar has lines of its own.
    assert held.permitted([LINE] * 9 + [A]) == 10
    assert held.permitted([LINE] * 5 + [SIGN]) == 5


def test_an_opener_that_begins_the_closer() -> None:
    """As where channels have names: the reply may go straight into the last one."""
    vocabulary = ScriptedVocabulary([b"", b"x", b"", b"say", b"<end>"], ends={4})
    names = {0: b"<|c|>", 2: b"<|m|>"}
    after, at_once = (Automaton({0: {1: 1}, 1: {}}, {1}, 5) for _ in range(2))
    held = GrammarConstraint(after, vocabulary, b"<|c|>say<|m|>", b"<|c|>", at_once, names)
    assert ids(held.allowed([])) == {0, 1}
    assert ids(held.allowed([0, 3, 2])) == {1}
    assert held.permitted([0, 1, 2, 3, 0, 3, 2, 3]) == 7
    assert held.allowed([0, 3, 3]) is None
    held.accept([0, 3, 2, 1])
    assert ids(held.allowed([])) == {4}


def test_an_opener_needs_its_closer() -> None:
    with pytest.raises(ValueError, match="closes them"):
        GrammarConstraint(Automaton(STEPS, {3}, VOCABULARY.size), VOCABULARY, b"</t>", b"<t>")


def test_neither_way_is_our_bug_when_accepted() -> None:
    with pytest.raises(ValueError, match="not permitted"):
        thoughtful().accept([B])
