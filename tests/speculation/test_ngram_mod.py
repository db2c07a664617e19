"""`mod`: the table against a dictionary with keys, collisions, resets, and what is undone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation.ngram_mod import NgramMod
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramModSettings, SamplingSettings
from forespeak.speculation.trace import Source

SAMPLER = Sampler(SamplingSettings())
tokens_of_few = st.lists(st.integers(0, 2), max_size=30)


def chained(text: list[int], size: int, least: int, most: int, limit: int) -> tuple[int, ...]:
    """The same with keys: the last tokens, exactly, to the token that followed them last."""
    table = {tuple(text[end - size : end]): text[end] for end in range(size, len(text))}
    chain = list(text[-size:])
    while len(chain) - size < max(least, min(limit, most)) and tuple(chain[-size:]) in table:
        chain.append(table[tuple(chain[-size:])])
    drafted = chain[size:]
    return tuple(drafted[: min(limit, most)]) if len(text) >= size and len(drafted) >= least else ()


@given(tokens_of_few, st.lists(tokens_of_few, max_size=4), st.integers(1, 9), st.integers(1, 3), st.integers(0, 6))
def test_it_proposes_what_a_dictionary_would(
    prompt: list[int], pieces: list[list[int]], limit: int, size: int, least: int
) -> None:
    source = NgramMod(NgramModSettings(size, least, 7, table_bits=20))
    source.begin(prompt, SAMPLER)
    text = list(prompt)
    for piece in [[], *pieces]:
        source.accept(piece)
        text += piece
        assert source.propose(limit).tokens == chained(text, size, least, 7, limit)
        source.begin(text, SAMPLER)


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 500), max_size=60), min_size=1, max_size=4), st.integers(1, 5))
def test_collisions_are_harmless(texts: list[list[int]], bits: int) -> None:
    """In a table of a few slots nearly all entries are strangers': still drafts of the text's own tokens."""
    source = NgramMod(NgramModSettings(2, 0, 8, table_bits=bits))
    for text in texts:
        source.begin(text, SAMPLER)
        for end in range(3):
            drafted = source.propose(5).tokens
            assert len(drafted) <= 5
            assert set(drafted) <= {*text, 0, 1, 2}
            source.accept([end])


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 3), max_size=40), min_size=2, max_size=5), st.integers(3, 8))
def test_a_cut_restores_what_collisions_overwrote(texts: list[list[int]], bits: int) -> None:
    chosen = NgramModSettings(2, 0, 8, table_bits=bits)
    source = NgramMod(chosen)
    for text in texts:
        source.begin(text, SAMPLER)
        fresh = NgramMod(chosen)
        fresh.begin(text, SAMPLER)
        assert source.propose(8).tokens == fresh.propose(8).tokens


def test_the_notes_sizes() -> None:
    passage = list(range(1000, 1090))
    source = NgramMod()
    source.begin([*passage, 1, *passage[:23]], SAMPLER)
    assert source.propose(64).tokens == ()
    source.accept([passage[23]])
    draft = source.propose(100)
    assert draft.tokens == tuple(passage[24:88])
    assert draft.source is Source.NGRAM_MOD
    assert source.propose(5).tokens == tuple(passage[24:29])


def test_a_short_chain_is_taken_for_chance() -> None:
    passage = list(range(1000, 1071))
    source = NgramMod()
    # 47 tokens follow the window before the chain breaks off at the end of the text.
    source.begin([*passage[:24], 1, *passage[:24]], SAMPLER)
    assert source.propose(64).tokens == tuple([1, *passage[:24]] * 3)[:64], "a text that repeats has no end"
    other = NgramMod()
    other.begin(passage, SAMPLER)
    other.begin([*passage, *passage[:24]], SAMPLER)
    assert len(other.propose(64).tokens) == 64
    shared = NgramMod(shared=True)
    shared.begin(passage, SAMPLER)
    shared.begin(passage[:24], SAMPLER)
    assert shared.propose(64).tokens == (), "47 follow"
    shared.begin(passage, SAMPLER)
    shared.accept([5])
    shared.begin(passage[:24], SAMPLER)
    assert shared.propose(64).tokens == (*passage[24:], 5)


SMALL = NgramModSettings(n_match=2, n_min=0, n_max=8, table_bits=12)


OLD = [50, 51, 52, 53]
"""Said once, at the beginning: whoever still knows it has not forgotten."""


def playing() -> NgramMod:
    source = NgramMod(SMALL)
    source.begin([*OLD, 1, 2, 3, 4, 1, 2], SAMPLER)
    return source


def refused(source: NgramMod, rounds: int, came: tuple[int, ...] = (9,)) -> None:
    """So many drafts of which no more than `came` comes true; each time the text says 1, 2, 3, 4 again."""
    for _ in range(rounds):
        assert source.propose(4).tokens == (3, 4, 1, 2)
        source.accept(came)
        source.accept([1, 2, 3, 4, 1, 2])


def remembers(source: NgramMod) -> bool:
    source.accept(OLD[:2])
    return source.propose(2).tokens == tuple(OLD[2:])


def test_five_bad_rounds_and_it_forgets() -> None:
    source = playing()
    refused(source, 4)
    assert remembers(source)
    source.accept([0, 1, 2])
    # That one was in vain too, and now it is five.
    assert not remembers(source)
    source.accept([5, 1, 2, 5, 1, 2])
    assert source.propose(2).tokens == (5, 1), "what came since is known"


def test_a_new_reply_starts_with_everything_again() -> None:
    source = playing()
    refused(source, 5)
    assert not remembers(source)
    source.begin([*OLD, 1, 2], SAMPLER)
    assert remembers(source)


@pytest.mark.parametrize("came", [(3, 9), (3, 4, 1, 9), (3,)])
def test_a_round_that_is_not_bad(came: tuple[int, ...]) -> None:
    """One of four is a quarter and not less; one of four before the reply ended says nothing."""
    source = playing()
    refused(source, 4)
    refused(source, 1, came)
    assert remembers(source)


def test_rounds_that_ended_with_the_reply_do_not_count() -> None:
    source = NgramMod(SMALL)
    source.begin([*OLD, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2], SAMPLER)
    for _ in range(7):
        assert source.propose(7).tokens == (3, 4, 5, 6, 7, 8, 9)
        source.accept([3])
        source.accept([4, 5, 6, 7, 8, 9, 1, 2])
    assert remembers(source)


def test_a_branch_begins_without_bad_rounds() -> None:
    source = playing()
    refused(source, 4)
    source.begin([*OLD, 1, 2, 3, 4, 1, 2], SAMPLER)
    refused(source, 4)
    assert remembers(source)


def test_a_full_table_is_forgotten_at_the_next_beginning() -> None:
    source = NgramMod(NgramModSettings(n_match=1, n_min=0, n_max=8, table_bits=6), shared=True)
    source.begin([1, 2, 1], SAMPLER)
    assert source.propose(1).tokens == (2,)
    source.begin([5, *range(10, 60)], SAMPLER)
    source.begin([1], SAMPLER)
    assert source.propose(1).tokens == ()
    source.begin([7, 8, 7], SAMPLER)
    source.begin([7], SAMPLER)
    assert source.propose(1).tokens == (8,)


def test_chats_share_only_by_choice() -> None:
    passage = list(range(1000, 1080))
    for shared in (False, True):
        source = NgramMod(shared=shared)
        source.begin(passage, SAMPLER)
        source.begin([3, *passage[:24]], SAMPLER)
        assert source.propose(60).tokens == (tuple(passage[24:]) if shared else ())


@pytest.mark.parametrize(
    ("name", "value"), [("n_match", 0), ("n_max", 0), ("n_min", 65), ("n_min", -1), ("table_bits", 0)]
)
def test_settings_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        NgramModSettings(**{name: value})
