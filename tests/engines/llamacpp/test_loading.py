"""What the reproducible setting does for weights of each kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engines.llamacpp.conftest import accept_any_pair
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, Role
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step
from prompts import PROMPTS


def words(
    engine: LlamaEngine, prompt: str, temperature: float, *sources: Source, length: int | None = None
) -> list[int]:
    request = GenerationRequest(
        (ChatMessage(Role.USER, PROMPTS[prompt]),),
        sources,
        SamplingSettings(temperature=temperature, seed=3),
        draft_length=length,
        max_tokens=48,
    )
    steps = [event for event in engine.generate(request, lambda: False) if isinstance(event, Step)]
    return [token.id for step in steps for token in step.emitted]


def test_quantised_weights_write_the_same_words_too(q4_1: Path) -> None:
    engine = LlamaEngine(accept_any_pair)
    engine.load(LoadRequest(q4_1, q4_1, context_length=1024, reproducible=True), lambda _: None, lambda: False)
    try:
        target = engine.target
        assert target.least_batch > 1, "a few rows are computed in another way than many"
        for prompt in ("code", "emoji", "repeat"):
            for temperature in (0.0, 0.8):
                plain = words(engine, prompt, temperature)
                for length in (2, 7, None):
                    assert words(engine, prompt, temperature, Source.DRAFT_MODEL, length=length) == plain
                assert words(engine, prompt, temperature, Source.PROMPT_LOOKUP) == plain
    finally:
        engine.close()


def test_what_is_filled_in_leaves_no_trace(q4_1: Path) -> None:
    engine = LlamaEngine(accept_any_pair)
    engine.load(LoadRequest(q4_1, context_length=256, reproducible=True), lambda _: None, lambda: False)
    try:
        target = engine.target
        text = list(range(300, 300 + target.context_length))
        target.evaluate(text[:40], 0)
        one_by_one = [target.evaluate([token], 1).copy() for token in text[40:46]]
        assert list(target.tokens) == text[:46]
        target.truncate(40)
        at_once = target.evaluate(text[40:46], 6)
        assert np.array_equal(np.concatenate(one_by_one), at_once)
        # To the last place of the context, where there is no room to fill up.
        for token in text[46:]:
            target.evaluate([token], 1)
        assert len(target.tokens) == target.context_length
    finally:
        engine.close()


def test_f32_weights_need_no_filling(engine: LlamaEngine) -> None:
    assert engine.target.least_batch == 1
