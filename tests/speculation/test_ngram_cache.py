"""`cache`: counts against a recount, thresholds, and what other texts may teach."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation.ngram_cache import FollowerCounts, NgramCache
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramCacheSettings, SamplingSettings
from forespeak.speculation.trace import Source

SAMPLER = Sampler(SamplingSettings())
tokens_of_few = st.lists(st.integers(0, 2), max_size=25)


def recounted(text: list[int], tail: tuple[int, ...], least: tuple[int, ...], percent: tuple[int, ...]) -> int | None:
    """The next token after `tail` by the longest n-gram of the text that is sure enough."""
    for size in range(min(4, len(tail)), 0, -1):
        counts: Counter[int] = Counter()
        favourite = -1
        for end in range(size, len(text)):
            if tuple(text[end - size : end]) == tail[-size:]:
                counts[text[end]] += 1
                if counts[text[end]] == max(counts.values()):
                    favourite = text[end]
        if counts.total() >= least[size - 1] and 100 * counts[favourite] >= percent[size - 1] * counts.total():
            return favourite
    return None


def drafted(text: list[int], limit: int) -> tuple[int, ...]:
    guess = list(text)
    while len(guess) < len(text) + min(limit, 8):
        token = recounted(text, tuple(guess[-4:]), (2, 2, 1, 1), (75, 75, 75, 75))
        if token is None:
            break
        guess.append(token)
    return tuple(guess[len(text) :])


@given(tokens_of_few, st.lists(tokens_of_few, max_size=3), st.integers(1, 10))
def test_it_proposes_what_a_recount_finds(prompt: list[int], pieces: list[list[int]], limit: int) -> None:
    source = NgramCache()
    source.begin(prompt, SAMPLER)
    text = list(prompt)
    for piece in [[], *pieces]:
        source.accept(piece)
        text += piece
        assert source.propose(limit).tokens == drafted(text, limit)


def test_the_thresholds_by_size() -> None:
    def proposed(text: list[int]) -> tuple[int, ...]:
        source = NgramCache()
        source.begin(text, SAMPLER)
        return source.propose(1).tokens

    assert proposed([1, 2, 3, 9, 1, 2, 3]) == (9,), "three tokens, seen once"
    assert proposed([0, 2, 3, 9, 1, 2, 3]) == (), "two tokens, seen once"
    assert proposed([0, 2, 3, 9, 5, 2, 3, 9, 1, 2, 3]) == (9,), "two tokens, seen twice"
    assert proposed([0, 2, 3, 9, 5, 2, 3, 8, 1, 2, 3]) == (), "half of the times"
    assert proposed([3, 9, 3]) == (), "one token, seen once"
    assert proposed([3, 9, 0, 3, 9, 1, 3]) == (9,), "one token, seen twice"
    assert proposed([3, 9, 0, 3, 8, 1, 3]) == (), "one token, half of the times"
    assert proposed([3, 9, 0, 3, 8, 1, 3, 9, 2, 3]) == (), "two of three are less than 75 %"
    assert proposed([3, 9, 0, 3, 8, 1, 3, 9, 2, 3, 9, 4, 3]) == (9,), "three of four"


def test_among_equals_the_newer_is_the_favourite() -> None:
    source = NgramCache(NgramCacheSettings(context_min_percent=(50, 50, 50, 50)))
    source.begin([0, 2, 3, 9, 5, 2, 3, 8, 1, 2, 3], SAMPLER)
    assert source.propose(1).tokens == (8,)


def test_a_draft_has_at_most_eight_tokens() -> None:
    source = NgramCache()
    source.begin([*range(30), 0, 1, 2], SAMPLER)
    draft = source.propose(40)
    assert draft.tokens == tuple(range(3, 11))
    assert draft.source is Source.NGRAM_CACHE


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=60), st.integers(0, 60))
def test_counts_can_be_taken_back(pairs: list[tuple[int, int]], kept: int) -> None:
    counts, fresh = FollowerCounts(), FollowerCounts()
    log = [counts.add((gram,), token) for gram, token in pairs]
    for (gram, token), before in reversed(list(zip(pairs, log, strict=True))[kept:]):
        counts.undo((gram,), token, before)
    for gram, token in pairs[:kept]:
        fresh.add((gram,), token)
    assert len(counts) == len(fresh)
    for gram in (0, 1):
        assert counts.favourite((gram,)) == fresh.favourite((gram,))
    for gram, token in pairs[kept:]:
        assert counts.add((gram,), token) == fresh.add((gram,), token)


REPLY = [11, 12, 13, 14, 15, 16]


def test_other_texts_teach_only_by_choice() -> None:
    for shared in (False, True):
        source = NgramCache(shared=shared)
        source.begin([1, *REPLY], SAMPLER)
        source.begin([2, *REPLY], SAMPLER)
        source.begin([3, 11, 12, 13], SAMPLER)
        # Twice, as the stricter thresholds demand: once is not enough for another chat.
        assert source.propose(3).tokens == ((14, 15, 16) if shared else ())
    once = NgramCache(shared=True)
    once.begin([1, *REPLY], SAMPLER)
    once.begin([3, 11, 12, 13], SAMPLER)
    assert once.propose(3).tokens == ()


def test_a_regenerated_reply_is_guessed_from_the_former_ones() -> None:
    source = NgramCache(shared=True)
    for _ in range(2):
        source.begin([1, 2], SAMPLER)
        source.accept(REPLY)
    source.begin([1, 2], SAMPLER)
    source.accept(REPLY[:1])
    assert source.propose(9).tokens == tuple(REPLY[1:])


def test_the_text_itself_is_asked_first() -> None:
    source = NgramCache(shared=True)
    for chat in (1, 2, 3):
        source.begin([chat, 11, 12, 13, 14], SAMPLER)
    source.begin([4, 11, 12, 13, 99, 0, 11, 12, 13], SAMPLER)
    assert source.propose(1).tokens == (99,)


def test_what_other_texts_taught_has_a_bound() -> None:
    source = NgramCache(NgramCacheSettings(dynamic_limit=40), shared=True)
    for chat in (1, 2):
        source.begin([chat, *REPLY], SAMPLER)
    source.begin([3], SAMPLER)
    source.begin([4, *range(100, 140)], SAMPLER)
    source.begin([3, 11, 12, 13], SAMPLER)
    assert source.propose(3).tokens == ()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"n_max": 0}, "n_max"),
        ({"dynamic_limit": -1}, "dynamic_limit"),
        ({"context_min_samples": ()}, "number of sizes"),
        ({"context_min_percent": (50,)}, "context"),
        ({"dynamic_min_samples": (1, 1)}, "dynamic"),
        ({"context_min_samples": (0, 1, 1, 1)}, "context_min_samples"),
        ({"dynamic_min_percent": (50, 50, 50, 101)}, "dynamic_min_percent"),
    ],
)
def test_settings_out_of_range_are_refused(chosen: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NgramCacheSettings(**chosen)  # type: ignore[arg-type]
