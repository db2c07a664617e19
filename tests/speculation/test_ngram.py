"""Prompt lookup against a plain search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Sampler, SamplingSettings
from forespeak.speculation.trace import Source

SAMPLER = Sampler(SamplingSettings())
tokens_of_few = st.lists(st.integers(0, 3), max_size=30)


def searched(text: list[int], longest: int, shortest: int, limit: int) -> tuple[int, ...]:
    """What followed the newest earlier occurrence of the longest suffix that has one."""
    for size in range(longest, shortest - 1, -1):
        if size > len(text):
            continue
        for start in range(len(text) - size - 1, -1, -1):
            if text[start : start + size] == text[-size:]:
                guess = list(text)
                for place in range(limit):
                    guess.append(guess[start + size + place])
                return tuple(guess[len(text) :])
    return ()


@given(tokens_of_few, st.lists(tokens_of_few, max_size=4), st.integers(1, 8), st.integers(1, 3), st.integers(0, 2))
def test_it_proposes_what_a_search_of_the_text_finds(
    prompt: list[int], pieces: list[list[int]], limit: int, shortest: int, more: int
) -> None:
    lookup = PromptLookup(shortest + more, shortest)
    lookup.begin(prompt, SAMPLER)
    text = list(prompt)
    for piece in [[], *pieces]:
        lookup.accept(piece)
        text += piece
        assert lookup.propose(limit).tokens == searched(text, shortest + more, shortest, limit)


@given(st.lists(tokens_of_few, min_size=1, max_size=5), tokens_of_few)
def test_it_follows_edits_and_branches(texts: list[list[int]], emitted: list[int]) -> None:
    lookup = PromptLookup()
    for text in texts:
        lookup.begin(text, SAMPLER)
        lookup.accept(emitted)
        assert lookup.propose(5).tokens == searched(text + emitted, 3, 2, 5)


def test_the_newest_match_wins() -> None:
    lookup = PromptLookup()
    lookup.begin([1, 2, 3, 9, 1, 2, 4, 9, 1, 2], SAMPLER)
    draft = lookup.propose(2)
    assert draft.tokens == (4, 9)
    assert draft.source is Source.PROMPT_LOOKUP
    assert draft.probability(0) is None


def test_a_longer_match_beats_a_newer_one() -> None:
    lookup = PromptLookup()
    lookup.begin([5, 1, 2, 7, 0, 1, 2, 8, 5, 1, 2], SAMPLER)
    assert lookup.propose(1).tokens == (7,)


def test_a_repetition_goes_on() -> None:
    lookup = PromptLookup()
    lookup.begin([7, 1, 2, 1, 2], SAMPLER)
    assert lookup.propose(5).tokens == (1, 2, 1, 2, 1)


def test_nothing_repeats_nothing_is_proposed() -> None:
    lookup = PromptLookup()
    assert lookup.propose(4).tokens == ()
    lookup.begin([1, 2, 3, 4], SAMPLER)
    draft = lookup.propose(4)
    assert draft.tokens == ()
    assert draft.source is None
    assert lookup.blocked is None


def test_the_next_turn_keeps_the_index() -> None:
    lookup = PromptLookup()
    lookup.begin([1, 2, 3], SAMPLER)
    lookup.accept([4, 5])
    lookup.begin([1, 2, 3, 4, 5, 6, 3, 4], SAMPLER)
    assert lookup.propose(3).tokens == (5, 6, 3)


@pytest.mark.parametrize(("longest", "shortest"), [(1, 2), (3, 0)])
def test_sizes_that_are_no_range_are_refused(longest: int, shortest: int) -> None:
    with pytest.raises(ValueError, match="not a range"):
        PromptLookup(longest, shortest)
