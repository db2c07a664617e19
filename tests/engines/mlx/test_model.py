from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

import mlx.core as mx
from mlx_lm.models.cache import KVCache
from mlx_lm.utils import load_model, load_tokenizer

from engines.mlx.conftest import RING
from forespeak.engines.mlx.model import MlxModel
from forespeak.engines.mlx.vocabulary import MlxVocabulary
from forespeak.speculation.language_model import EvaluationError
from tiny_llama import vocabulary

SIZE = len(vocabulary().tokens)
TEXT = [(17 + 29 * place) % SIZE for place in range(60)]


def opened(folder: Path, **settings: Any) -> MlxModel:
    network, _ = load_model(folder)
    limits = {"context_length": 100, "batch_limit": 64, "output_limit": 9, **settings}
    return MlxModel(network, MlxVocabulary(load_tokenizer(folder), SIZE), **limits)


def one_by_one(model: MlxModel, tokens: list[int]) -> np.ndarray[Any, Any]:
    return np.concatenate([model.evaluate([token], 1) for token in tokens])


def test_knows_what_the_cache_holds(tiny: Path) -> None:
    model = opened(tiny)
    model.evaluate(TEXT[:20], 1)
    assert list(model.tokens) == TEXT[:20]
    model.truncate(3)
    assert list(model.tokens) == TEXT[:3]
    model.truncate(100)
    assert list(model.tokens) == TEXT[:3]
    assert (model.no_rollback, model.rollback_limit) == (None, None)


@pytest.mark.parametrize("kind", ["tiny", "wide", "ring", "hybrid"])
def test_rows_do_not_depend_on_the_batch(kind: str, request: pytest.FixtureRequest) -> None:
    model = opened(request.getfixturevalue(kind))
    together = model.evaluate(TEXT[:9], 9)
    model.truncate(0)
    singly = one_by_one(model, TEXT[:9])
    assert together.shape == singly.shape == (9, SIZE)
    assert together.dtype == np.float32
    assert np.abs(together - singly).max() < 1e-3
    model.truncate(0)
    # Only the last rows were asked for.
    assert np.abs(model.evaluate(TEXT[:9], 2) - singly[-2:]).max() < 1e-3
    # Many tokens without scores are evaluated apart.
    model.truncate(0)
    singly = one_by_one(model, TEXT[:40])
    model.truncate(0)
    assert np.abs(model.evaluate(TEXT[:40], 2) - singly[-2:]).max() < 1e-3


@pytest.mark.parametrize("bits", [None, 8], ids=["whole", "quantised"])
def test_a_rolled_back_cache_scores_like_a_fresh_one(wide: Path, bits: int | None) -> None:
    model = opened(wide, cache_bits=bits)
    fresh = model.evaluate(TEXT[:10], 1)
    model.evaluate(TEXT[30:35], 5)
    model.truncate(9)
    assert np.abs(fresh - model.evaluate(TEXT[9:10], 1)).max() < 1e-3


def test_a_quantised_cache_is_one(wide: Path, ring: Path) -> None:
    whole = opened(wide).evaluate(TEXT[:9], 1)
    quantised = opened(wide, cache_bits=8).evaluate(TEXT[:9], 1)
    assert 1e-3 < np.abs(whole - quantised).max() < 1.0
    # Heads of 16 values have no group to be quantised in: the cache stays as it is.
    assert np.array_equal(opened(ring, cache_bits=4).evaluate(TEXT[:9], 1), opened(ring).evaluate(TEXT[:9], 1))


@pytest.mark.parametrize(
    ("tokens", "outputs"),
    [([], 0), ([1] * 65, 1), ([1, 2], 3), ([1] * 20, 10), ([-1], 1), ([SIZE], 1), ([1], -1)],
    ids=["empty", "long", "rows over tokens", "rows over the limit", "negative id", "id too large", "rows < 0"],
)
def test_refuses_what_would_crash(tiny: Path, tokens: list[int], outputs: int) -> None:
    model = opened(tiny)
    model.evaluate([5], 1)
    with pytest.raises(ValueError, match=r"."):
        model.evaluate(tokens, outputs)
    assert list(model.tokens) == [5]


def test_refuses_more_than_the_context(tiny: Path) -> None:
    model = opened(tiny)
    model.evaluate([5] * 64, 0)
    model.evaluate([5] * 36, 0)
    with pytest.raises(ValueError, match="does not fit"):
        model.evaluate([5], 1)


def test_a_state_that_gives_nothing_back_begins_anew(hybrid: Path) -> None:
    model = opened(hybrid)
    assert model.no_rollback is not None
    model.evaluate(TEXT[:10], 1)
    model.truncate(8)
    assert list(model.tokens) == []
    again = model.evaluate(TEXT[:10], 1)
    model.truncate(0)
    assert np.array_equal(again, model.evaluate(TEXT[:10], 1))


def test_a_ring_that_has_gone_round_begins_anew(ring: Path) -> None:
    model = opened(ring)
    limit = model.rollback_limit
    assert limit is not None
    assert limit[0] == RING - 1
    model.evaluate(TEXT[: RING - 3], 0)
    model.evaluate(TEXT[RING - 3 : RING - 1], 2)
    model.truncate(RING - 3)
    assert len(model.tokens) == RING - 3
    rows = one_by_one(model, TEXT[RING - 3 : RING + 9])
    model.truncate(RING + 5)
    assert list(model.tokens) == []
    # From a fresh cache on, the same.
    assert np.abs(model.evaluate(TEXT[: RING + 9], 1) - rows[-1]).max() < 1e-3


def test_a_cache_that_only_claims_to_give_tokens_back_is_found_out(
    tiny: Path, ring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for honest in (opened(tiny), opened(ring)):
        honest.try_out()
        assert (honest.no_rollback, list(honest.tokens)) == (None, [])
    monkeypatch.setattr(KVCache, "trim", lambda _, count: count)
    model = opened(tiny)
    model.try_out()
    assert model.no_rollback is not None
    assert list(model.tokens) == []


def test_filling_up_leaves_no_trace(tiny: Path) -> None:
    model = opened(tiny)
    plain = one_by_one(model, TEXT[:5])
    model.truncate(0)
    model.least_batch = 9
    assert np.abs(one_by_one(model, TEXT[:5]) - plain).max() < 1e-3
    assert list(model.tokens) == TEXT[:5]
    # To the last place of the context, where there is no room to fill up.
    for token in [*TEXT, *TEXT][: model.context_length - 5]:
        model.evaluate([token], 1)
    assert len(model.tokens) == model.context_length


def test_what_fails_is_told_and_the_cache_is_empty(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = opened(tiny)
    before = model.evaluate(TEXT[:4], 1)

    def failing(*_: object, **__: object) -> mx.array:
        raise RuntimeError("[malloc] Unable to allocate 9 bytes.")

    with monkeypatch.context() as broken:
        broken.setattr(type(model.network), "__call__", failing)
        with pytest.raises(EvaluationError, match="Unable to allocate"):
            model.evaluate([1], 1)
    assert list(model.tokens) == []
    assert np.array_equal(model.evaluate(TEXT[:4], 1), before)


@pytest.mark.parametrize("kind", ["tiny", "wide", "ring", "hybrid"])
def test_what_was_begun_in_vain_leaves_no_trace(kind: str, request: pytest.FixtureRequest) -> None:
    """Single steps, batches and cuts in any order, beyond the ring's length: as without beginning anything."""
    folder = request.getfixturevalue(kind)
    models = [opened(folder, cache_bits=8 if kind == "wide" else None) for _ in range(2)]
    models[1]._begins = False
    chance = random.Random(5)
    used = 0
    for _ in range(120):
        room = models[0].context_length - len(models[0].tokens)
        step = chance.random()
        tokens = [chance.randrange(SIZE)] if step < 0.7 else TEXT[: chance.randint(1, 9)]
        if step > 0.9 or len(tokens) > room:
            length = chance.randrange(len(models[0].tokens) + 1)
            for model in models:
                model.truncate(length)
        else:
            outputs = 1 if step < 0.8 else chance.randint(0, len(tokens))
            used += models[0]._begun is not None and (len(tokens), outputs) == (1, 1)
            ours, plain = [model.evaluate(tokens, outputs) for model in models]
            assert np.array_equal(ours, plain)
        assert list(models[0].tokens) == list(models[1].tokens)
    assert used > 20


def test_a_network_that_computes_at_once_is_left_alone(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = opened(tiny)
    model.try_out()
    assert model._begins
    network = type(model.network)
    forward = network.__call__

    def at_once(self: object, tokens: mx.array, cache: object) -> mx.array:
        scores = forward(self, tokens, cache=cache)
        mx.eval(scores)
        return scores

    monkeypatch.setattr(network, "__call__", at_once)
    hasty = opened(tiny)
    hasty.try_out()
    assert not hasty._begins
    rows = one_by_one(hasty, TEXT[:6])
    monkeypatch.undo()
    assert np.array_equal(rows, one_by_one(model, TEXT[:6]))


def test_drafts_of_one_length_begin_nothing_in_vain(tiny: Path) -> None:
    """Nothing is put together behind the last token of a draft, once it is known where drafts end."""
    model = opened(tiny)
    model.evaluate(TEXT[:10], 1)
    for draft in range(3):
        begun = []
        for token in TEXT[:4]:
            model.evaluate([token], 1)
            begun.append(model._begun is not None)
        assert begun[:3] == [True] * 3
        # The first run began with the prompt.
        assert begun[3] == (draft < 2)
        model.truncate(10)
