"""The whole engine on tiny networks: the same words whatever drafts, caches, limits, refusals."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import KVCache
from mlx_lm.models.llama import Model
from mlx_lm.utils import load_model

from engines.mlx.conftest import RING, accept_any_pair
from forespeak.engines.engine import (
    CacheType,
    ChatMessage,
    GenerationRequest,
    LoadRequest,
    LoadSettings,
    Notice,
    Role,
    Start,
)
from forespeak.engines.mlx.engine import MlxEngine
from forespeak.engines.pair_knowledge import PairConditions, ReproducibleEngine
from forespeak.engines.parity_result import ParityRequest
from forespeak.errors import UserFacingError
from forespeak.pairing.compatibility import refusal
from forespeak.pairing.parity import REPRODUCIBLE_LIMIT, check, context_needed
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import FinishReason, Origin, Source, SpeculationState, Step, text_of

GREEDY = SamplingSettings(temperature=0.0)
SAMPLED = SamplingSettings(temperature=0.8, seed=42)
LOOKUPS = tuple(source for source in Source if not source.uses_model)


def ask(text: str = "the thing in the tin", **settings: object) -> GenerationRequest:
    request = GenerationRequest((ChatMessage(Role.USER, text),), sampling=GREEDY, max_tokens=40, draft_length=4)
    return replace(request, **settings)  # type: ignore[arg-type]


def run(engine: MlxEngine, request: GenerationRequest) -> tuple[list[Step], Finished]:
    events = list(engine.generate(request, lambda: False))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event for event in events if isinstance(event, Step)], finished


def state_of(finished: Finished) -> SpeculationState:
    assert finished.stats.speculation is not None
    return finished.stats.speculation


def ids(steps: list[Step]) -> list[int]:
    return [token.id for step in steps for token in step.emitted]


def opened(target: Path, draft: Path | None = None, **settings: Any) -> MlxEngine:
    engine = MlxEngine(accept_any_pair)
    loaded = engine.load(LoadRequest(target, draft, LoadSettings(**settings)), lambda _: None, lambda: False)
    assert loaded is not None
    assert (loaded.draft is None) == (draft is None), loaded.draft_problem
    return engine


@pytest.fixture(scope="module")
def _pair(tiny: Path, near: Path) -> Iterator[MlxEngine]:
    engine = opened(tiny, near)
    yield engine
    engine.close()


@pytest.fixture
def pair(_pair: MlxEngine) -> MlxEngine:
    """`tiny` with a draft that often agrees, with nothing in its caches."""
    _pair.forget()
    return _pair


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_same_seed_same_words_whatever_drafts(pair: MlxEngine, sampling: SamplingSettings) -> None:
    request = ask(sampling=sampling, stop=("never",))
    plain, _ = run(pair, request)
    chain = (*LOOKUPS, Source.DRAFT_MODEL)
    for sources in (*((source,) for source in Source), chain):
        for length in (1, 4, None):
            steps, finished = run(pair, replace(request, sources=sources, draft_length=length))
            assert ids(steps) == ids(plain), (sources, length)
            assert text_of(steps) == text_of(plain)
            assert length is None or state_of(finished).active


def test_a_draft_that_knows_nothing_changes_nothing(tiny: Path, junk: Path) -> None:
    engine = opened(tiny, junk)
    plain, _ = run(engine, ask(sampling=SAMPLED))
    steps, finished = run(engine, ask(sampling=SAMPLED, sources=(Source.DRAFT_MODEL,), draft_length=8))
    assert ids(steps) == ids(plain)
    assert finished.stats.rejected_draft_tokens_count > 20
    engine.close()


def test_provenance_is_told_token_by_token(pair: MlxEngine) -> None:
    steps, finished = run(pair, ask(sources=(Source.DRAFT_MODEL,), alternatives=3))
    tokens = [token for step in steps for token in step.emitted]
    accepted = [token for token in tokens if token.origin is Origin.ACCEPTED]
    assert accepted
    assert all(token.source is Source.DRAFT_MODEL for token in accepted)
    assert all(0.0 < (token.draft_probability or 0.0) <= 1.0 for token in accepted)
    assert all(len(token.alternatives) == 3 and token.id == token.alternatives[0].id for token in tokens)
    stats = finished.stats
    assert stats.accepted_draft_tokens_count == len(accepted)
    assert stats.rejected_draft_tokens_count == sum(len(step.rejected) for step in steps) > 0
    assert stats.verify_steps == len(steps) < stats.generated_tokens == len(tokens)
    assert stats.peak_memory_bytes is not None


def test_the_second_turn_keeps_the_first(pair: MlxEngine) -> None:
    request = ask(sampling=replace(SAMPLED, temperature=1.2), sources=(Source.DRAFT_MODEL,))
    steps, first = run(pair, request)
    follow = (*request.messages, ChatMessage(Role.ASSISTANT, text_of(steps)), ChatMessage(Role.USER, "and then?"))
    _, second = run(pair, replace(request, messages=follow))
    assert second.stats.reused_prompt_tokens >= first.stats.prompt_tokens + first.stats.generated_tokens - 1


def test_what_a_generation_begins_with(pair: MlxEngine) -> None:
    run(pair, ask())
    again = run(pair, ask())[1].stats
    assert again.reused_prompt_tokens == again.prompt_tokens - 1
    for start in (Start.COLD, Start.FRESH):
        assert run(pair, ask(start=start))[1].stats.reused_prompt_tokens == 0


def test_cancel_keeps_both_caches_valid(pair: MlxEngine) -> None:
    request = ask(sources=(Source.DRAFT_MODEL,))
    whole, _ = run(pair, request)
    pair.forget()
    cut: list[Notice | Event] = []
    for event in pair.generate(request, lambda: sum(isinstance(e, Step) for e in cut) >= 3):
        cut.append(event)  # noqa: PERF402 -- the list is what `cancelled` looks at
    assert isinstance(cut[-1], Finished)
    assert cut[-1].reason is FinishReason.CANCELLED
    again, finished = run(pair, request)
    assert ids(again) == ids(whole)
    assert finished.stats.reused_prompt_tokens == finished.stats.prompt_tokens - 1


def test_a_schema_holds_at_every_verified_place(pair: MlxEngine) -> None:
    schema = json.dumps({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]})
    texts = []
    for sources in ((), (Source.DRAFT_MODEL,)):
        steps, _ = run(pair, ask(json_schema=schema, sampling=SAMPLED, sources=sources, max_tokens=60))
        texts.append(text_of(steps))
    assert texts[0] == texts[1]
    assert texts[0].lstrip().startswith("{")


def test_a_full_context_ends_the_reply(tiny: Path, near: Path) -> None:
    engine = opened(tiny, near, context_length=80)
    _, finished = run(engine, ask(sources=(Source.DRAFT_MODEL,), draft_length=8, max_tokens=None, sampling=SAMPLED))
    assert finished.reason in {FinishReason.CONTEXT_FULL, FinishReason.STOP}
    with pytest.raises(UserFacingError, match="too long"):
        run(engine, ask("word " * 90))
    engine.close()


def test_nothing_is_generated_without_a_model() -> None:
    with pytest.raises(UserFacingError, match="No model is loaded"):
        run(MlxEngine(accept_any_pair), ask())


def reference(folder: Path, prompt: list[int], count: int) -> list[int]:
    """mlx-lm's own greedy continuation."""
    network, _ = load_model(folder)
    return [int(token) for token, _ in generate_step(mx.array(prompt), network, max_tokens=count)]


@pytest.mark.parametrize(
    "sources", [LOOKUPS, (Source.DRAFT_MODEL,), (*LOOKUPS, Source.DRAFT_MODEL)], ids=["n", "m", "c"]
)
@pytest.mark.parametrize("length", [6, None])
def test_a_sliding_window_is_crossed_whole(
    ring: Path, tiny: Path, sources: tuple[Source, ...], length: int | None
) -> None:
    """The prompt ends before the window is full, and the reply goes far beyond."""
    engine = opened(ring, ring)
    request = ask("in", sources=sources, draft_length=length, max_tokens=90, stop=("never",))
    events = list(engine.generate(request, lambda: False))
    written = ids([event for event in events if isinstance(event, Step)])
    prompt = engine.prompt(replace(request))
    assert len(engine.prompt(request)) < RING
    assert written == reference(ring, prompt, 90)[: len(written)]
    assert len(prompt) + len(written) > 2 * RING
    states = [event for event in events if isinstance(event, SpeculationState)]
    assert not states[-1].active
    assert f"the last {RING} tokens" in states[-1].reason
    drafted = [step for step in events if isinstance(step, Step) and step.tested_count]
    # Random weights hardly repeat themselves, so there is little to look up.
    assert drafted or length is None or sources == LOOKUPS
    assert all(step.cache_length < RING for step in drafted)
    # The next turn goes on from the ring as it is.
    said = text_of([event for event in events if isinstance(event, Step)])
    follow = (*request.messages, ChatMessage(Role.ASSISTANT, said), ChatMessage(Role.USER, "on"))
    steps, finished = run(engine, replace(request, messages=follow, max_tokens=8))
    assert finished.stats.reused_prompt_tokens >= len(prompt) + len(written) - 1
    assert not any(step.tested_count for step in steps)
    engine.close()


def test_a_drafting_window_ends_before_it_is_full(tiny: Path, ring: Path) -> None:
    """The draft's own ring is never asked for what it cannot give back."""
    engine = opened(tiny, ring)
    plain, _ = run(engine, ask("in", max_tokens=60))
    steps, finished = run(engine, ask("in", max_tokens=60, sources=(Source.DRAFT_MODEL,)))
    assert ids(steps) == ids(plain)
    assert any(step.tested_count for step in steps)
    assert f"{RING - 1} tokens is full" in state_of(finished).reason
    engine.close()


def test_a_hybrid_writes_without_speculation_and_says_why(hybrid: Path) -> None:
    engine = MlxEngine(accept_any_pair)
    loaded = engine.load(LoadRequest(hybrid, hybrid), lambda _: None, lambda: False)
    assert loaded is not None
    assert loaded.draft is None
    assert "nothing can be taken back" in (loaded.draft_problem or "")
    request = ask(sources=(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL), max_tokens=30)
    steps, finished = run(engine, request)
    assert "nothing can be taken back" in state_of(finished).reason
    assert not any(step.tested_count for step in steps)
    # A prompt that was edited is read anew: its beginning cannot be kept.
    assert ids(steps) == reference(hybrid, engine.target.vocabulary.tokenize(chatml("the thing in the tin")), 30)
    edited, _ = run(engine, ask("the thing in a tin", max_tokens=30))
    assert ids(edited) == reference(hybrid, engine.target.vocabulary.tokenize(chatml("the thing in a tin")), 30)
    engine.close()


def chatml(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def test_a_hybrid_does_not_draft(tiny: Path, hybrid: Path) -> None:
    engine = MlxEngine(accept_any_pair)
    loaded = engine.load(LoadRequest(tiny, hybrid), lambda _: None, lambda: False)
    assert loaded is not None
    assert "This draft model" in (loaded.draft_problem or "")
    assert run(engine, ask(sources=(Source.DRAFT_MODEL,)))[0]
    engine.close()


def test_a_quantised_cache_drafts_too(wide: Path) -> None:
    engine = opened(wide, wide, cache_type=CacheType.Q8_0)
    assert engine.target.cache_bits == 8
    loaded = engine.load(
        LoadRequest(wide, wide, LoadSettings(cache_type=CacheType.Q8_0)), lambda _: None, lambda: False
    )
    assert loaded is not None
    for placement in (loaded.placement, loaded.draft_placement):
        assert placement is not None
        assert placement.cache_type is CacheType.Q8_0
    plain, _ = run(engine, ask())
    steps, finished = run(engine, ask(sources=(Source.DRAFT_MODEL,)))
    assert finished.stats.accepted_draft_tokens_count > 0
    assert ids(steps) == ids(plain)
    engine.close()


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.value)
def test_both_rules_draft(pair: MlxEngine, rule: Rule) -> None:
    _, finished = run(pair, ask(sources=(Source.DRAFT_MODEL,), rule=rule, sampling=SAMPLED))
    assert finished.stats.accepted_draft_tokens_count > 0


def test_mixed_pairs_are_refused_with_a_reason(tiny: Path) -> None:
    gguf = tiny.parent / "tiny.gguf"
    engine = MlxEngine(refusal)
    loaded = engine.load(LoadRequest(tiny, gguf), lambda _: None, lambda: False)
    assert loaded is not None
    assert "one engine has to run both" in (loaded.draft_problem or "")
    assert run(engine, ask(sources=(Source.DRAFT_MODEL,)))[0]
    # Whoever does not ask is refused as well.
    trusting = MlxEngine(accept_any_pair).load(LoadRequest(tiny, gguf), lambda _: None, lambda: False)
    assert trusting is not None
    assert "There is no model folder" in (trusting.draft_problem or "")
    engine.close()


def test_another_draft_does_not_reload_the_target(tiny: Path, near: Path) -> None:
    engine = opened(tiny)
    before = engine.target
    loaded = engine.load(LoadRequest(tiny, near), lambda _: None, lambda: False)
    assert loaded is not None
    assert loaded.draft is not None
    assert engine.target is before
    engine.close()


def test_the_parity_check_runs_beside_the_chat(pair: MlxEngine) -> None:
    assert isinstance(pair, ReproducibleEngine)
    run(pair, ask())
    before = list(pair.target.tokens)
    request = ParityRequest((Source.DRAFT_MODEL,), tokens=12, prompts=2)
    with pair.bench(context_needed(request)) as bench:
        result = check(bench, request)
    assert (result.equal, result.planned) == (4, 4)
    assert result.moved < REPRODUCIBLE_LIMIT
    assert result.tested > 10
    assert result.engine.startswith("MLX ")
    assert list(pair.target.tokens) == before


def test_a_cache_beside_the_chat_is_tried_out_too(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Model
    forward = network.__call__

    def at_once(self: object, tokens: mx.array, cache: object = None) -> mx.array:
        scores = forward(self, tokens, cache=cache)
        mx.eval(scores)
        return scores

    with monkeypatch.context() as odd:
        odd.setattr(KVCache, "trim", lambda _, count: count)
        odd.setattr(network, "__call__", at_once)
        engine = opened(tiny)
        with engine.bench(100) as bench:
            for model in (engine.target, bench.target):
                assert model.no_rollback is not None
                assert not model._begins
    engine.close()
    engine = opened(tiny)
    with engine.bench(100) as bench:
        assert (bench.target.no_rollback, bench.target._begins) == (None, True)
        assert bench.target.cache_type is CacheType.F32
        assert list(bench.target.tokens) == []
    engine.close()


def test_a_draft_with_a_ring_stays_within_it_beside_the_chat(tiny: Path, ring: Path) -> None:
    engine = opened(tiny, ring)
    with engine.bench(200) as bench:
        assert bench._draft is not None
        assert bench._draft.context_length == RING - 1
        assert bench.target.context_length == 200
    engine.close()


def test_no_memory_beside_the_chat_is_a_clear_error(pair: MlxEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> mx.array:
        raise RuntimeError("[malloc] Unable to allocate 9 bytes.")

    monkeypatch.setattr(Model, "__call__", failing)
    with pytest.raises(UserFacingError, match="not enough memory") as caught, pair.bench(100):
        pass
    assert caught.value.why == "MLX says: [malloc] Unable to allocate 9 bytes."


def test_closing_gives_the_memory_back(wide: Path) -> None:
    gc.collect()
    before = mx.get_active_memory()
    engine = opened(wide, wide)
    run(engine, ask(sources=(Source.DRAFT_MODEL,)))
    assert mx.get_active_memory() > before + 500_000
    engine.close()
    gc.collect()
    assert mx.get_active_memory() <= before


class Recorder:
    """A memory of pairs."""

    def __init__(self) -> None:
        self.kept: dict[PairConditions, Mapping[str, Any]] = {}

    def recall(self, conditions: PairConditions) -> Mapping[str, Any] | None:
        return self.kept.get(conditions)

    def keep(self, conditions: PairConditions, learned: Mapping[str, Any], *, soon: bool = False) -> None:
        self.kept[conditions] = learned


def test_what_a_pair_learns_outlives_the_engine(tiny: Path, near: Path) -> None:
    memory = Recorder()
    engine = MlxEngine(accept_any_pair, memory)
    engine.load(LoadRequest(tiny, near), lambda _: None, lambda: False)
    run(engine, ask(sources=(Source.DRAFT_MODEL,), draft_length=None))
    engine.close()
    (conditions,) = memory.kept
    assert (conditions.target, conditions.draft) == (tiny, near)
    assert conditions.engine.startswith("MLX ")
    sizes = [size for size, _ in memory.kept[conditions]["drafting"]["target_seconds"]]
    assert sizes[0] == 1
    assert len(sizes) > 3
