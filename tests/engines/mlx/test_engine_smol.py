"""SmolLM2 in float32: the words of mlx-lm and of llama.cpp, with and without drafts. Short: a CPU is slow with MLX."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

import mlx.core as mx
from mlx_lm import stream_generate
from mlx_lm.utils import load

from engines.mlx.conftest import accept_any_pair
from forespeak.engines.engine import ChatMessage, ConversionRequest, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.mlx.engine import MlxEngine
from forespeak.models.starter import starter_draft_path
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source, Step
from mlx_folders import convert
from prompts import PROMPTS

TOKENS = 16


@pytest.fixture(scope="module")
def engine(smol: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlxEngine]:
    """With the model's own first layers as its draft: it knows little, and the vocabulary is the same."""
    draft = starter_draft_path()
    assert draft is not None
    few = convert(draft, tmp_path_factory.mktemp("mlx") / "few", layers=3)
    engine = MlxEngine(accept_any_pair)
    assert (
        engine.load(LoadRequest(smol, few, LoadSettings(context_length=512)), lambda _: None, lambda: False) is not None
    )
    yield engine
    engine.close()


def ask(prompt: str, *sources: Source) -> GenerationRequest:
    return GenerationRequest(
        (ChatMessage(Role.USER, prompt),),
        sources,
        SamplingSettings(temperature=0.0),
        draft_length=3,
        max_tokens=TOKENS,
    )


def run(engine: MlxEngine, request: GenerationRequest) -> list[Step]:
    return [event for event in engine.generate(request, lambda: False) if isinstance(event, Step)]


def ids(steps: list[Step]) -> list[int]:
    return [token.id for step in steps for token in step.emitted]


@pytest.mark.parametrize("prompt", ["repeat", "emoji"])
def test_the_same_words_with_and_without_drafts(engine: MlxEngine, prompt: str) -> None:
    plain = run(engine, ask(PROMPTS[prompt]))
    assert len(ids(plain)) == TOKENS
    for source in (Source.DRAFT_MODEL, Source.PROMPT_LOOKUP):
        assert ids(run(engine, ask(PROMPTS[prompt], source))) == ids(plain)


def test_mlx_lm_and_llama_cpp_write_the_same(engine: MlxEngine, smol: Path, tmp_path: Path) -> None:
    from forespeak.engines.llamacpp.engine import LlamaEngine

    request = ask(PROMPTS["repeat"])
    plain = run(engine, request)
    network, tokenizer = load(str(smol))
    prompt = engine.prompt(request)
    messages = [{"role": "user", "content": PROMPTS["repeat"]}]
    assert prompt == tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    theirs = [answer.token for answer in stream_generate(network, tokenizer, mx.array(prompt), max_tokens=TOKENS)]
    assert ids(plain) == theirs[: len(ids(plain))]
    del network
    draft = starter_draft_path()
    assert draft is not None
    other, unpacked = LlamaEngine(accept_any_pair), tmp_path / "f32.gguf"
    other.convert(ConversionRequest(draft, unpacked), lambda _: None, lambda: False)
    other.load(
        LoadRequest(unpacked, settings=LoadSettings(context_length=512, reproducible=True)),
        lambda _: None,
        lambda: False,
    )
    events = [event for event in other.generate(request, lambda: False) if isinstance(event, Step)]
    assert other.prompt(request) == prompt
    other.close()
    assert ids(events) == ids(plain)


def test_tokens_are_llama_cpps(engine: MlxEngine) -> None:
    from forespeak.engines.llamacpp.bindings import NativeModel

    draft = starter_draft_path()
    assert draft is not None
    theirs = NativeModel(draft, lambda _: True)
    ours = engine.target.vocabulary
    try:
        assert ours.size == theirs.vocabulary.size
        assert all(ours.piece(token) == theirs.vocabulary.piece(token) for token in range(ours.size))
        for text in PROMPTS.values():
            assert ours.tokenize(text) == theirs.vocabulary.tokenize(text)
        ends = [token for token in range(ours.size) if ours.ends_generation(token)]
        assert ours.text(ours.eos) == "<|im_end|>"
        assert ours.eos in ends
        # llama.cpp also ends at a mark between files of code.
        assert all(theirs.vocabulary.ends_generation(token) for token in ends)
    finally:
        theirs.close()
