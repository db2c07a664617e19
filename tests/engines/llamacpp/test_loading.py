"""What the reproducible setting does for weights of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from engines.llamacpp.conftest import accept_any_pair
from forespeak.engines.devices import PROCESSOR
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.llamacpp import loading
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step
from prompts import PROMPTS

LENGTH = 20


def words(
    engine: LlamaEngine, prompt: str, temperature: float, *sources: Source, length: int | None = None
) -> list[int]:
    request = GenerationRequest(
        (ChatMessage(Role.USER, PROMPTS[prompt]),),
        sources,
        SamplingSettings(temperature=temperature, seed=3),
        draft_length=length,
        max_tokens=LENGTH,
    )
    steps = [event for event in engine.generate(request, lambda: False) if isinstance(event, Step)]
    return [token.id for step in steps for token in step.emitted]


@pytest.fixture(scope="module")
def quantised(whole_q4_1: Path) -> Iterator[LlamaEngine]:
    """With all layers: with fewer of them, scores move too little for a short reply to notice."""
    engine = LlamaEngine(accept_any_pair)
    engine.load(
        LoadRequest(whole_q4_1, whole_q4_1, LoadSettings(context_length=256, reproducible=True)),
        lambda _: None,
        lambda: False,
    )
    yield engine
    engine.close()


@pytest.mark.parametrize(("prompt", "temperature"), [("emoji", 0.8), ("cjk", 0.0)])
def test_quantised_weights_write_the_same_words_too(quantised: LlamaEngine, prompt: str, temperature: float) -> None:
    """Of ten replies these two notice soonest that nothing is filled in: at the 8th and at the 16th token."""
    assert quantised.target.least_batch > 1, "a few rows are computed in another way than many"
    plain = words(quantised, prompt, temperature)
    assert len(plain) == LENGTH
    for length in (2, 7, None):
        assert words(quantised, prompt, temperature, Source.DRAFT_MODEL, length=length) == plain
    assert words(quantised, prompt, temperature, Source.PROMPT_LOOKUP) == plain


def test_what_is_filled_in_leaves_no_trace(quantised: LlamaEngine) -> None:
    quantised.forget()
    target = quantised.target
    text = list(range(300, 300 + target.context_length))
    target.evaluate(text[:40], 0)
    one_by_one = [target.evaluate([token], 1).copy() for token in text[40:46]]
    assert list(target.tokens) == text[:46]
    target.truncate(40)
    at_once = target.evaluate(text[40:46], 6)
    assert np.array_equal(np.concatenate(one_by_one), at_once)
    # To the last place of the context, where there is no room to fill up.
    near_the_end = target.context_length - 2 * target.least_batch
    for at in range(46, near_the_end, target.batch_limit):
        target.evaluate(text[at : min(at + target.batch_limit, near_the_end)], 1)
    for token in text[near_the_end:]:
        target.evaluate([token], 1)
    assert list(target.tokens) == text


def test_f32_weights_need_no_filling(engine: LlamaEngine) -> None:
    assert engine.target.least_batch == 1


def test_a_split_model_has_the_size_of_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first file may hold nothing but the header: judged by that, it would be copied into memory twice over."""
    for name, size in (
        ("big-00001-of-00003.gguf", 10),
        ("big-00002-of-00003.gguf", 400),
        ("big-00003-of-00003.gguf", 500),
        ("big-00001-of-00004.gguf", 5000),
        ("other-00001-of-00003.gguf", 5000),
        ("big.gguf", 5000),
    ):
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "big-00009-of-00003.gguf").mkdir()
    first = tmp_path / "big-00001-of-00003.gguf"
    for available, copied in ((2276, True), (2274, False)):
        monkeypatch.setattr(psutil, "virtual_memory", lambda free=available: SimpleNamespace(available=free))
        assert loading._fits_twice(first, PROCESSOR) is copied
    assert not loading._fits_twice(tmp_path / "big.gguf", PROCESSOR)
