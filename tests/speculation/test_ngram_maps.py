"""`map-k` and `map-k4v`: plain searches, caps that learn and forget, continuations that dominate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.speculation.ngram_maps import DraftCaps, NgramMap, NgramMapK, NgramMapK4V
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramMapSettings, SamplingSettings
from forespeak.speculation.trace import Source

SAMPLER = Sampler(SamplingSettings())
SMALL = NgramMapSettings(size_n=2, size_m=6)
tokens_of_few = st.lists(st.integers(0, 2), max_size=30)


def continuations(text: list[int], size: int, length: int) -> list[tuple[int, ...]]:
    """What followed each earlier occurrence of the last `size` tokens, the newest first."""
    found = []
    for start in range(len(text) - size - 1, -1, -1):
        if len(text) >= size and text[start : start + size] == text[-size:]:
            guess = list(text)
            for place in range(length):
                guess.append(guess[start + size + place])
            found.append(tuple(guess[len(text) :]))
    return found


def dominating(found: list[tuple[int, ...]], length: int) -> tuple[int, ...]:
    """Token by token, as long as one is at least twice as frequent as the others together."""
    kinds = list(dict.fromkeys(found))[:4]
    rest = [tokens for tokens in found if tokens in kinds]
    drafted: tuple[int, ...] = ()
    for place in range(length):
        at = [tokens[place] for tokens in rest]
        best = next((token for token in at if at.count(token) >= 2 * (len(at) - at.count(token))), None)
        if best is None:
            break
        drafted += (best,)
        rest = [tokens for tokens in rest if tokens[place] == best]
    return drafted


def promised(kind: type[NgramMap], text: list[int], size: int, length: int) -> tuple[int, ...]:
    found = continuations(text, size, length)[:32]
    if kind is NgramMapK:
        return found[0] if found else ()
    return dominating(found, length)


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
@given(text=tokens_of_few, limit=st.integers(1, 8), size=st.integers(1, 3))
def test_an_unused_map_proposes_what_a_search_finds(
    kind: type[NgramMap], text: list[int], limit: int, size: int
) -> None:
    source = kind(NgramMapSettings(size, 5))
    source.begin(text, SAMPLER)
    assert source.propose(limit).tokens == promised(kind, text, size, min(limit, 5))


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
@given(
    prompt=tokens_of_few,
    rounds=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(1, 8)), max_size=25),
)
def test_caps_follow_their_rule(kind: type[NgramMap], prompt: list[int], rounds: list[tuple[int, int, int]]) -> None:
    """So many of the drafted tokens come true, then comes any other; all of a shorter row may come true by chance."""
    source = kind(SMALL)
    source.begin(prompt, SAMPLER)
    text = list(prompt)
    caps: dict[tuple[int, ...], int] = {}
    for right, own, limit in rounds:
        would = promised(kind, text, 2, min(limit, 6))
        key = (*text[-2:], *(would[:1] if kind is NgramMapK4V else ()))
        cap = caps.get(key, 6)
        draft = source.propose(limit).tokens
        assert draft == would[:cap]
        emitted = [*draft[:right], own]
        source.accept(emitted)
        text += emitted
        if would:
            guess = draft or would[:1]
            agreed = 0
            while agreed < min(len(guess), len(emitted)) and guess[agreed] == emitted[agreed]:
                agreed += 1
            if agreed == len(guess):
                caps[key] = min(6, max(cap, 2 * agreed))
            elif agreed < len(emitted):
                caps[key] = agreed


def test_the_cap_becomes_the_number_accepted_last_time_and_grows_again() -> None:
    source = NgramMapK(NgramMapSettings(size_n=2, size_m=8))
    passage = [1, 2, 10, 11, 12, 13, 14, 15, 16, 17]
    source.begin([*passage, 1, 2], SAMPLER)
    assert source.propose(20).tokens == tuple(passage[2:])
    # Two came true.
    source.accept([10, 11, 90])
    source.accept([*range(12, 18), 91, 1, 2])
    assert source.propose(20).tokens == (10, 11)
    source.accept([10, 11, 90])
    source.accept([70, 1, 2])
    # Both came true, so nobody knows where it would end: twice as many.
    draft = source.propose(20)
    assert draft.tokens == (10, 11, 90, 70)
    assert draft.source is Source.NGRAM_MAP_K


def test_a_limit_from_outside_teaches_no_cap() -> None:
    source = NgramMapK(NgramMapSettings(size_n=2, size_m=8))
    source.begin([1, 2, 3, 4, 5, 6, 7, 8, 1, 2], SAMPLER)
    assert source.propose(2).tokens == (3, 4)
    source.accept([3, 4, 5])
    source.accept([6, 7, 8, 1, 2])
    assert len(source.propose(8).tokens) == 8


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
def test_a_dead_key_is_silent_until_it_has_been_seen_anew(kind: type[NgramMap]) -> None:
    source = kind(SMALL)
    source.begin([1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2], SAMPLER)
    assert source.propose(2).tokens == (3, 4)
    source.accept([9])
    source.accept([1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2])
    # Dead, though the text says 3 again: only what it would have said next can revive it, and that was never asked.
    assert source.propose(2).tokens == ()
    source.accept([8])
    source.accept([7, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2])
    assert source.propose(4).tokens == ()
    # Asked in silence, and right.
    source.accept([3])
    source.accept([4, 5, 1, 2])
    assert source.propose(4).tokens == (3, 4)


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
def test_a_reply_that_ends_inside_a_draft_teaches_nothing(kind: type[NgramMap]) -> None:
    source = kind(SMALL)
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    source.begin(text, SAMPLER)
    assert source.propose(4).tokens == (3, 4, 5, 6)
    source.accept([3])
    source.begin([*text, 3, 7, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2], SAMPLER)
    assert len(source.propose(4).tokens) == 4


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
def test_a_cut_takes_back_what_it_taught(kind: type[NgramMap]) -> None:
    source = kind(SMALL)
    prompt = [1, 2, 3, 4, 5, 6, 1, 2]
    source.begin(prompt, SAMPLER)
    first = source.propose(4).tokens
    assert first == (3, 4, 5, 6)
    source.accept([9])
    source.accept([1, 2])
    assert source.propose(4).tokens == () or kind is NgramMapK4V
    # The reply is generated anew: the key is as good as it was.
    source.begin(prompt, SAMPLER)
    assert source.propose(4).tokens == first
    source.accept([3, 4, 0])
    # The chat goes on instead: the lesson stays.
    source.begin([*prompt, 3, 4, 0, 3, 4, 5, 6, 1, 2], SAMPLER)
    assert source.propose(4).tokens == (3, 4)


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
def test_a_draft_that_was_never_judged_is_dropped(kind: type[NgramMap]) -> None:
    source = kind(SMALL)
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    source.begin(text, SAMPLER)
    assert source.propose(4).tokens == (3, 4, 5, 6)
    # The generation was closed there; the next one begins with another token.
    source.begin([*text, 0], SAMPLER)
    source.accept([0])
    source.accept([1, 2, 3, 4, 5, 6, 1, 2])
    assert source.propose(4).tokens == (3, 4, 5, 6)


def test_k4v_drafts_only_what_dominates() -> None:
    def proposed(*followers: int) -> tuple[int, ...]:
        source = NgramMapK4V(NgramMapSettings(size_n=2, size_m=3))
        source.begin([token for follower in followers for token in (1, 2, follower, 50, 51)] + [1, 2], SAMPLER)
        return source.propose(3).tokens

    assert proposed(7) == (7, 50, 51)
    assert proposed(7, 8) == ()
    assert proposed(7, 7, 8) == (7, 50, 51)
    assert proposed(8, 7, 7, 9) == ()
    assert proposed(7, 7, 7, 7, 8, 9) == (7, 50, 51)
    assert proposed(7, 7, 7, 7, 8, 9, 3) == ()


def test_k4v_counts_four_continuations_and_no_more() -> None:
    source = NgramMapK4V(NgramMapSettings(size_n=2, size_m=1))
    # The fifth kind, the oldest, is not counted, however often it was seen.
    text = [1, 2, 9] * 10 + [1, 2, 3, 1, 2, 4, 1, 2, 5] + [1, 2, 6] * 6 + [1, 2]
    source.begin(text, SAMPLER)
    assert source.propose(1).tokens == (6,)


def test_k4v_drafts_up_to_where_continuations_part() -> None:
    source = NgramMapK4V(NgramMapSettings(size_n=2, size_m=6))
    source.begin([1, 2, 3, 4, 5, 60, 61, 62, 1, 2, 3, 4, 5, 70, 71, 72, 1, 2], SAMPLER)
    draft = source.propose(6)
    assert draft.tokens == (3, 4, 5)
    assert draft.source is Source.NGRAM_MAP_K4V


def test_k4v_has_a_cap_for_each_continuation() -> None:
    source = NgramMapK4V(NgramMapSettings(size_n=2, size_m=4))
    once = [1, 2, 3, 4, 5, 6]
    source.begin([*once, 1, 2], SAMPLER)
    assert source.propose(4).tokens == (3, 4, 5, 6)
    source.accept([3, 4, 0])
    # Another continuation takes over; the first one's cap of two is not its own.
    source.accept([1, 2, 7, 8, 9, 10] * 6 + [1, 2])
    assert source.propose(4).tokens == (7, 8, 9, 10)
    source.accept([7, 8, 9, 10, 1])
    source.accept([1, 2, 3, 4, 0, 9] * 32 + [1, 2])
    assert source.propose(4).tokens == (3, 4)


@pytest.mark.parametrize("kind", [NgramMapK, NgramMapK4V])
def test_fewer_hits_than_wanted(kind: type[NgramMap]) -> None:
    source = kind(NgramMapSettings(size_n=2, size_m=4, min_hits=2))
    source.begin([1, 2, 3, 0, 1, 2], SAMPLER)
    assert source.propose(1).tokens == ()
    source.accept([3, 0, 1, 2])
    assert source.propose(1).tokens == (3,)


def test_caps_are_restored_in_the_reverse_order() -> None:
    caps = DraftCaps(8)
    caps.learn((1,), drafted=8, agreed=5, length=10)
    caps.learn((1,), drafted=5, agreed=0, length=20)
    caps.learn((2,), drafted=8, agreed=8, length=30)
    assert (caps[1,], caps[2,], caps[3,]) == (0, 8, 8)
    caps.cut(20)
    assert caps[1,] == 0
    caps.cut(19)
    assert caps[1,] == 5
    caps.cut(9)
    assert caps[1,] == 8


@pytest.mark.parametrize("name", ["size_n", "size_m", "min_hits"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        NgramMapSettings(**{name: 0})
