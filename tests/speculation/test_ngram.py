"""Prompt lookup and `simple` against a plain search."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.speculation.ngram import NgramSimple, PromptLookup, continuation
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramSimpleSettings, PromptLookupSettings, SamplingSettings
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
    lookup = PromptLookup(PromptLookupSettings(shortest + more, shortest))
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


def test_a_draft_is_bound_by_the_limit_and_by_the_setting() -> None:
    lookup = PromptLookup(PromptLookupSettings(num_pred_tokens=3))
    lookup.begin([1, 2, 3, 4, 5, 6, 1, 2], SAMPLER)
    assert lookup.propose(9).tokens == (3, 4, 5)
    assert lookup.propose(2).tokens == (3, 4)
    assert lookup.propose(0).tokens == ()


# `simple`: the newest earlier occurrence of a long n-gram.


@given(tokens_of_few, st.lists(tokens_of_few, max_size=4), st.integers(1, 8), st.integers(1, 4), st.integers(1, 6))
def test_simple_proposes_what_a_search_of_the_text_finds(
    prompt: list[int], pieces: list[list[int]], limit: int, size: int, most: int
) -> None:
    simple = NgramSimple(NgramSimpleSettings(size, most))
    simple.begin(prompt, SAMPLER)
    text = list(prompt)
    for piece in [[], *pieces]:
        simple.accept(piece)
        text += piece
        assert simple.propose(limit).tokens == searched(text, size, size, min(limit, most))


def test_simple_wants_a_long_match() -> None:
    passage = list(range(100, 130))
    simple = NgramSimple()
    simple.begin([*passage, 1, *passage[:11]], SAMPLER)
    assert simple.propose(48).tokens == ()
    simple.accept([passage[11]])
    draft = simple.propose(48)
    # The rest of the passage and what stood behind it; from there on the text is the match once more.
    assert draft.tokens == (*passage[12:], 1, *passage[:12], *passage[12:], 1)[:48]
    assert draft.source is Source.NGRAM_SIMPLE
    assert draft.probability(0) is None


def upstream_simple(text: list[int], n: int, m: int) -> tuple[int, ...]:
    """llama.cpp's rule: of what lies between the newest match and the end, and nothing if that is less than n."""
    for start in range(len(text) - n - 1, 0, -1):
        if text[start : start + n] == text[-n:]:
            found = text[start + n : start + n + m]
            return tuple(found) if len(found) >= n else ()
    return ()


def test_simple_goes_on_with_repetitions_where_upstream_stops() -> None:
    """A table's rows, a list of zeros: everything up to the period of an n-gram's length."""
    row = [5, 6, 7, 8, 9]
    text = [1, 2, 3, *row * 40]
    ours, theirs = 0, 0
    for place in range(30, len(text) - 48, 7):
        simple = NgramSimple()
        simple.begin(text[:place], SAMPLER)
        drafted = simple.propose(48).tokens
        assert drafted == tuple(text[place : place + 48])
        ours += len(drafted)
        theirs += len(upstream_simple(text[:place], 12, 48))
    assert ours > 0
    assert theirs == 0


# What they stand on.


def test_a_continuation_past_the_end_repeats_itself() -> None:
    assert continuation([0, 1, 2, 3], 2, 5) == (2, 3, 2, 3, 2)
    assert continuation([0, 1, 2, 3], 0, 2) == (0, 1)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: PromptLookupSettings(1, 2), "min_ngram_size"),
        (lambda: PromptLookupSettings(3, 0), "min_ngram_size"),
        (lambda: PromptLookupSettings(0), "max_ngram_size"),
        (lambda: PromptLookupSettings(num_pred_tokens=0), "num_pred_tokens"),
        (lambda: NgramSimpleSettings(size_n=0), "size_n"),
        (lambda: NgramSimpleSettings(size_m=0), "size_m"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], object], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make()
