"""A GPU computes what the processor does, and speculation changes no word there. Needs a GPU that llama.cpp lists.

Without one, Mesa's software Vulkan serves where llama.cpp was built with `-DGGML_VULKAN=ON`: set
GGML_VK_VISIBLE_DEVICES=0, or it is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engines.llamacpp.conftest import accept_any_pair
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.llamacpp import bindings
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.speculation.language_model import Logits
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step
from tiny_llama import vocabulary, write_llama

pytestmark = pytest.mark.skipif(
    not any("GPU" in device.kind for device in bindings.devices()),
    reason="llama.cpp lists no GPU here: it was built for processors only, or there is no driver",
)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> LoadRequest:
    folder = tmp_path_factory.mktemp("models")
    target = write_llama(vocabulary(), folder / "target.gguf", seed=1)
    draft = write_llama(vocabulary(), folder / "draft.gguf", seed=1, noise=0.1)
    return LoadRequest(target, draft, LoadSettings(context_length=256, reproducible=True))


@pytest.fixture(scope="module")
def engine(request_: LoadRequest) -> Iterator[LlamaEngine]:
    engine = LlamaEngine(accept_any_pair)
    loaded = engine.load(request_, lambda _: None, lambda: False)
    assert loaded is not None
    assert loaded.draft is not None, loaded.draft_problem
    assert not loaded.computes_on_cpu
    yield engine
    engine.close()


def _scores(engine: LlamaEngine) -> Logits:
    engine.forget()
    tokens = list(range(40))
    return engine.target.evaluate(tokens, len(tokens)).copy()


def test_its_scores_are_the_processors(engine: LlamaEngine, request_: LoadRequest) -> None:
    on_cpu = LlamaEngine(accept_any_pair)
    request = LoadRequest(request_.target, settings=replace(request_.settings, gpu_layers=0))
    loaded = on_cpu.load(request, lambda _: None, lambda: False)
    try:
        assert loaded is not None
        assert loaded.computes_on_cpu
        theirs = _scores(on_cpu)
    finally:
        on_cpu.close()
    ours = _scores(engine)
    # Driver and processor add up in another order, no more; scores are tens apart.
    assert np.abs(ours - theirs).max() < 0.05 < np.ptp(theirs)


def test_rows_do_not_depend_on_how_many_are_evaluated(engine: LlamaEngine) -> None:
    many = _scores(engine)[30:]
    engine.target.truncate(30)
    one_by_one = np.concatenate([engine.target.evaluate([token], 1).copy() for token in range(30, 40)])
    assert np.abs(one_by_one - many).max() < 1e-3


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("prompt", ["the thin her", "aaaaaaaa", "在哪裡 🐈"])
def test_speculation_changes_no_word(engine: LlamaEngine, prompt: str, temperature: float) -> None:
    def words(*sources: Source, length: int | None = None) -> tuple[list[int], int]:
        request = GenerationRequest(
            (ChatMessage(Role.USER, prompt),),
            sources,
            SamplingSettings(temperature=temperature, seed=5),
            draft_length=length,
            max_tokens=24,
        )
        steps = [event for event in engine.generate(request, lambda: False) if isinstance(event, Step)]
        return [token.id for step in steps for token in step.emitted], sum(step.tested_count for step in steps)

    engine.forget()
    plain, _ = words()
    drafted, tested = words(Source.DRAFT_MODEL, length=3)
    assert tested > 0
    assert drafted == plain
    assert words(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)[0] == plain
