"""What holds of every source without a model: the chat's edits are followed, nothing leaks, the words stay the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation.chain import Chain
from forespeak.speculation.draft import DraftSource, Evaluation
from forespeak.speculation.ngram import NgramSimple, PromptLookup
from forespeak.speculation.ngram_cache import NgramCache
from forespeak.speculation.ngram_maps import NgramMapK, NgramMapK4V
from forespeak.speculation.ngram_mod import NgramMod
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import (
    NgramMapSettings,
    NgramModSettings,
    NgramSimpleSettings,
    Rule,
    SamplingSettings,
)
from forespeak.speculation.trace import Origin, Source
from scripted import ScriptedModel, agreeing, letters, random_scores, reply_of

SAMPLER = Sampler(SamplingSettings())
SMALL_MAP = NgramMapSettings(size_n=2, size_m=5)
SMALL_MOD = NgramModSettings(n_match=2, n_min=1, n_max=6, table_bits=12)

OWN: dict[Source, Callable[[], DraftSource]] = {
    Source.PROMPT_LOOKUP: PromptLookup,
    Source.NGRAM_SIMPLE: lambda: NgramSimple(NgramSimpleSettings(2, 6)),
    Source.NGRAM_MAP_K: lambda: NgramMapK(SMALL_MAP),
    Source.NGRAM_MAP_K4V: lambda: NgramMapK4V(SMALL_MAP),
    Source.NGRAM_MOD: lambda: NgramMod(SMALL_MOD),
    Source.NGRAM_CACHE: NgramCache,
}
SHARED: dict[Source, Callable[[], DraftSource]] = {
    Source.NGRAM_MOD: lambda: NgramMod(SMALL_MOD, shared=True),
    Source.NGRAM_CACHE: lambda: NgramCache(shared=True),
}
EVERY = [*OWN.items(), *SHARED.items()]
tokens_of_few = st.lists(st.integers(0, 3), max_size=30)
of_each = pytest.mark.parametrize(("kind", "make"), EVERY)
of_each_own = pytest.mark.parametrize("make", OWN.values(), ids=[kind.value for kind in OWN])


def test_there_is_a_source_for_every_name() -> None:
    assert {*OWN, Source.DRAFT_MODEL} == {*Source}
    assert [kind for kind in Source if kind.uses_model] == [Source.DRAFT_MODEL]
    assert all(kind.label and "-" not in kind.label for kind in Source)


def play(source: DraftSource, seed: int, rounds: int, *, vocabulary: int = 4) -> list[tuple[int, ...]]:
    """A generation: drafts, of which some tokens come true, and the target's own. Returns the drafts."""
    randomness = random.Random(seed)
    drafts = []
    for _ in range(rounds):
        draft = source.propose(randomness.randrange(1, 7)).tokens if randomness.random() < 0.8 else ()
        drafts.append(draft)
        source.accept([*draft[: randomness.randrange(len(draft) + 1)], randomness.randrange(vocabulary)])
    return drafts


@of_each_own
@given(texts=st.lists(tokens_of_few, min_size=1, max_size=5), emitted=tokens_of_few, limit=st.integers(1, 9))
def test_after_edits_and_branches_it_is_like_a_fresh_one(
    make: Callable[[], DraftSource], texts: list[list[int]], emitted: list[int], limit: int
) -> None:
    source = make()
    for text in texts:
        source.begin(text, SAMPLER)
        source.accept(emitted)
    fresh = make()
    fresh.begin([*texts[-1], *emitted], SAMPLER)
    assert source.propose(limit).tokens == fresh.propose(limit).tokens


@of_each_own
@settings(max_examples=60)
@given(first=tokens_of_few, second=tokens_of_few, seed=st.integers(0, 1000))
def test_nothing_leaks_from_one_chat_into_the_next(
    make: Callable[[], DraftSource], first: list[int], second: list[int], seed: int
) -> None:
    """The chats differ from their first token on; all that the first one taught, caps and resets too, is gone."""
    source, fresh = make(), make()
    source.begin([8, *first], SAMPLER)
    play(source, seed, 25)
    source.begin([9, *second], SAMPLER)
    fresh.begin([9, *second], SAMPLER)
    assert play(source, seed + 1, 25) == play(fresh, seed + 1, 25)


@of_each_own
@settings(max_examples=60)
@given(prompt=st.lists(st.integers(0, 3), min_size=1, max_size=30), seed=st.integers(0, 1000))
def test_a_reply_generated_anew_starts_as_the_first_one_did(
    make: Callable[[], DraftSource], prompt: list[int], seed: int
) -> None:
    source = make()
    source.begin(prompt, SAMPLER)
    first = play(source, seed, 25)
    source.begin(prompt, SAMPLER)
    assert play(source, seed, 25) == first


@of_each
@settings(max_examples=40)
@given(texts=st.lists(tokens_of_few, min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_drafts_are_short_enough_and_made_of_known_tokens(
    kind: Source, make: Callable[[], DraftSource], texts: list[list[int]], seed: int
) -> None:
    source = make()
    assert source.propose(3).tokens == ()
    for text in texts:
        source.begin(text, SAMPLER)
        play(source, seed, 10)
        for limit in (0, 1, 2, 5, 100):
            draft = source.propose(limit)
            assert len(draft.tokens) <= limit
            assert set(draft.tokens) <= {0, 1, 2, 3}
            assert draft.source is (kind if draft.tokens else None)
            assert not draft.distributions
        assert source.blocked is None
    source.observe(Evaluation((1,), np.zeros((1, 4), dtype=np.float32)))


@of_each
def test_the_caller_may_go_on_using_its_list(kind: Source, make: Callable[[], DraftSource]) -> None:
    source, fresh = make(), make()
    history = [1, 2, 3, 1, 2, 3, 1, 2]
    source.begin(history, SAMPLER)
    fresh.begin(tuple(history), SAMPLER)
    expected = fresh.propose(4).tokens
    history += [0, 0, 0]
    assert source.propose(4).tokens == expected != ()


# Through the loop.


def chain_of_all() -> DraftSource:
    return Chain({kind: make() for kind, make in OWN.items()})


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("make", [*(make for _, make in EVERY), chain_of_all])
def test_same_seed_same_words(make: Callable[[], DraftSource], rule: Rule) -> None:
    """One source for several replies, as a chat uses it; a model that repeats itself, so that there is much to find."""
    source = make()
    accepted = 0
    for seed in range(6):
        scores = random_scores(8, seed // 2, order=1, spread=3.0)
        sampler = Sampler(SamplingSettings(temperature=[0.0, 0.5, 1.0][seed % 3], seed=seed))
        plain = reply_of(ScriptedModel(scores, letters(8)), None, sampler, max_tokens=60)
        for length in (1, 7):
            target = ScriptedModel(scores, letters(8))
            reply = reply_of(target, source, sampler, length=length, max_tokens=60, rule=rule)
            if rule is Rule.COUPLED or sampler.settings.temperature == 0.0:
                assert reply.ids == plain.ids
            accepted += reply.stats.accepted_draft_tokens_count
            assert all(token.source is not None for token in reply.tokens if token.origin is Origin.ACCEPTED)
    assert accepted > 100


def test_a_text_said_again_is_accepted_in_long_drafts() -> None:
    """The defaults, at their purpose: an edited file comes back whole."""
    words = [int(token) for token in np.random.default_rng(3).integers(0, 200, 300)]
    changed = [*words[:150], 7, *words[151:]]
    scores = agreeing(lambda prefix: said(prefix, changed), 1.0, 0)
    for make in (PromptLookup, NgramSimple, NgramMapK, NgramMapK4V, NgramMod, NgramCache):
        target = ScriptedModel(scores, letters(201))
        reply = reply_of(target, make(), prompt=[*words, 200, *changed[:30]], length=32, max_tokens=270)
        assert reply.ids == changed[30:]
        assert reply.stats.mean_acceptance_length is not None
        assert reply.stats.mean_acceptance_length > 5


def said(prefix: tuple[int, ...], changed: list[int]) -> np.typing.NDArray[np.float32]:
    row = np.full(201, -20.0, dtype=np.float32)
    place = len(prefix) - 301
    row[changed[place] if place < len(changed) else 0] = 20.0
    return row
