from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from forespeak.engines.engine import CacheType
from forespeak.engines.llamacpp.bindings import NativeContext, NativeModel
from forespeak.engines.llamacpp.model import LlamaModel


@pytest.fixture
def model(q4_1: Path) -> Iterator[LlamaModel]:
    native = NativeModel(q4_1, lambda _: True)
    context = NativeContext(
        native, length=256, batch=64, outputs=9, threads=2, cache_type=CacheType.F32, flash_attention=False
    )
    model = LlamaModel(native, context, 9, lambda: 2)
    yield model
    model.close()


def test_knows_what_the_cache_holds(model: LlamaModel) -> None:
    tokens = model.vocabulary.tokenize("The quick brown fox jumps over the lazy dog")
    model.evaluate(tokens, 1)
    assert list(model.tokens) == tokens
    model.truncate(3)
    assert list(model.tokens) == tokens[:3]
    model.truncate(100)
    assert list(model.tokens) == tokens[:3]


def test_rows_do_not_depend_on_the_batch(model: LlamaModel) -> None:
    tokens = model.vocabulary.tokenize("The quick brown fox jumps over the lazy dog")[:9]
    together = model.evaluate(tokens, len(tokens)).copy()
    model.truncate(0)
    one_by_one = np.concatenate([model.evaluate([token], 1).copy() for token in tokens])
    assert together.shape == one_by_one.shape == (len(tokens), model.vocabulary.size)
    assert np.abs(together - one_by_one).max() < 0.5
    assert (together.argmax(axis=1) == one_by_one.argmax(axis=1)).all()


def test_a_rolled_back_cache_scores_like_a_fresh_one(model: LlamaModel) -> None:
    tokens = model.vocabulary.tokenize("Once upon a time there was a")
    wrong = model.vocabulary.tokenize(" zebra crossing")
    fresh = model.evaluate(tokens, 1).copy()
    model.evaluate(wrong, 1)
    model.truncate(len(tokens) - 1)
    again = model.evaluate(tokens[-1:], 1)
    assert np.abs(fresh - again).max() < 0.5
    assert fresh.argmax() == again.argmax()


@pytest.mark.parametrize(
    ("tokens", "outputs"),
    [([], 0), ([1] * 65, 1), ([1, 2], 3), ([1] * 20, 10), ([-1], 1), ([49152], 1), ([1], -1)],
    ids=[
        "empty",
        "over the batch",
        "rows over tokens",
        "rows over the limit",
        "negative id",
        "id too large",
        "rows < 0",
    ],
)
def test_refuses_what_would_abort_the_process(model: LlamaModel, tokens: list[int], outputs: int) -> None:
    model.evaluate([5], 1)
    with pytest.raises(ValueError, match=r"."):
        model.evaluate(tokens, outputs)
    assert list(model.tokens) == [5]


def test_refuses_more_than_the_context(model: LlamaModel) -> None:
    for _ in range(4):
        model.evaluate([5] * 64, 0)
    with pytest.raises(ValueError, match="does not fit"):
        model.evaluate([5], 1)
    assert len(model.tokens) == 256


def test_pieces_add_up_to_the_text(model: LlamaModel) -> None:
    text = "naïve café 京都 🎂\n\tdef f(x):\n"
    tokens = model.vocabulary.tokenize(text)
    assert b"".join(map(model.vocabulary.piece, tokens)).decode() == text


def test_control_tokens_end_a_reply_and_add_no_text(model: LlamaModel) -> None:
    (end,) = model.vocabulary.tokenize("<|im_end|>")
    assert model.vocabulary.ends_generation(end)
    assert model.vocabulary.piece(end) == b""
    assert model.vocabulary.text(end) == "<|im_end|>"
