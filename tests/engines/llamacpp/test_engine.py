"""The whole engine on real models: parity, caches, limits, failures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.engine import (
    ChatMessage,
    ConversionRequest,
    GenerationRequest,
    LoadRequest,
    LoadSettings,
    Notice,
    Progress,
    Role,
)
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import FinishReason, Origin, Source, Step, text_of
from prompts import PROMPTS

GREEDY = SamplingSettings(temperature=0.0)
SAMPLED = SamplingSettings(temperature=0.8, seed=42)


def ask(prompt: str, **settings: object) -> GenerationRequest:
    request = GenerationRequest((ChatMessage(Role.USER, prompt),), sampling=GREEDY, max_tokens=16, draft_length=4)
    return replace(request, **settings)  # type: ignore[arg-type]


def run(engine: LlamaEngine, request: GenerationRequest) -> tuple[list[Step], Finished]:
    events = list(engine.generate(request, lambda: False))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event for event in events if isinstance(event, Step)], finished


def ids(steps: list[Step]) -> list[int]:
    return [token.id for step in steps for token in step.emitted]


@pytest.mark.parametrize("prompt", ["code", "rewrite", "one-word", "cjk", "emoji"])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_same_seed_same_words(engine: LlamaEngine, prompt: str, sampling: SamplingSettings) -> None:
    plain, _ = run(engine, ask(PROMPTS[prompt], sampling=sampling))
    for source, length in ((Source.DRAFT_MODEL, 1), (Source.DRAFT_MODEL, 8), (Source.PROMPT_LOOKUP, 4)):
        steps, _ = run(engine, ask(PROMPTS[prompt], sampling=sampling, sources=(source,), draft_length=length))
        assert ids(steps) == ids(plain)
        assert text_of(steps) == text_of(plain)


def test_penalties_hold_at_every_verified_position(engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = SamplingSettings(
        temperature=0.7, seed=5, repeat_penalty=1.3, frequency_penalty=0.2, presence_penalty=0.1
    )
    plain, _ = run(engine, ask(PROMPTS["repeat"], sampling=sampling, max_tokens=32))
    drafting = ask(PROMPTS["repeat"], sampling=sampling, max_tokens=32, sources=(Source.DRAFT_MODEL,), draft_length=8)
    drafted, _ = run(engine, drafting)
    assert ids(drafted) == ids(plain)
    # This text tells: were the draft's own tokens not penalised in the check, other words would come.
    after = Sampler.after
    monkeypatch.setattr(Sampler, "after", lambda sampler, logits, tokens, _drafted: after(sampler, logits, tokens, ()))
    overlooked, _ = run(engine, drafting)
    assert ids(overlooked) != ids(plain)


def test_drafts_are_accepted_and_counted(engine: LlamaEngine, f32: Path) -> None:
    steps, finished = run(engine, ask(PROMPTS["numbers"], sources=(Source.DRAFT_MODEL,)))
    stats = finished.stats
    tokens = [token for step in steps for token in step.emitted]
    accepted = [token for token in tokens if token.origin is Origin.ACCEPTED]
    assert accepted
    assert all(token.source is Source.DRAFT_MODEL for token in accepted)
    assert all(0.0 < (token.draft_probability or 0.0) <= 1.0 for token in accepted)
    assert stats.accepted_draft_tokens_count == len(accepted)
    assert stats.rejected_draft_tokens_count == sum(len(step.rejected) for step in steps)
    assert stats.generated_tokens == len(tokens)
    assert stats.verify_steps == len(steps) < len(tokens)
    assert stats.tokens_per_second > 0
    assert stats.peak_memory_bytes is not None
    assert stats.peak_memory_bytes > f32.stat().st_size


def test_alternatives_come_with_their_probabilities(engine: LlamaEngine) -> None:
    steps, _ = run(engine, ask(PROMPTS["one-word"], alternatives=3, max_tokens=3))
    for token in (token for step in steps for token in step.emitted):
        assert len(token.alternatives) == 3
        probabilities = [other.probability for other in token.alternatives]
        assert probabilities == sorted(probabilities, reverse=True)
        assert token.id == token.alternatives[0].id
        assert token.probability == pytest.approx(probabilities[0])


def test_the_second_turn_keeps_the_first(engine: LlamaEngine) -> None:
    """Whatever tokens the reply was sampled in: its text must not be cut anew."""
    request = ask(PROMPTS["emoji"], sampling=replace(SAMPLED, temperature=1.2), sources=(Source.DRAFT_MODEL,))
    steps, first = run(engine, request)
    follow = (
        *request.messages,
        ChatMessage(Role.ASSISTANT, text_of(steps)),
        ChatMessage(Role.USER, "And in one line?"),
    )
    _, second = run(engine, replace(request, messages=follow))
    assert second.stats.reused_prompt_tokens >= first.stats.prompt_tokens + first.stats.generated_tokens - 1


def followed(request: GenerationRequest, steps: list[Step], message: str) -> GenerationRequest:
    """The next turn, as the window asks for it: from the words alone."""
    reply = ChatMessage(Role.ASSISTANT, text_of(steps))
    return replace(request, messages=(*request.messages, reply, ChatMessage(Role.USER, message)), stop=())


def test_a_second_turn_that_is_asked_again_is_the_same_prompt(engine: LlamaEngine) -> None:
    request = ask(PROMPTS["emoji"], sampling=replace(SAMPLED, temperature=1.2))
    steps, _ = run(engine, request)
    second = followed(request, steps, "And in one line?")
    prompt = engine.prompt(second)
    assert prompt != engine.target.vocabulary.tokenize(rendered(engine, second)), (
        "this reply was sampled in other tokens"
    )
    first_time, _ = run(engine, second)
    assert engine.prompt(second) == prompt
    again, finished = run(engine, second)
    assert ids(again) == ids(first_time)
    assert finished.stats.reused_prompt_tokens == finished.stats.prompt_tokens - 1


def rendered(engine: LlamaEngine, request: GenerationRequest) -> str:
    assert engine._template is not None
    return engine._template.render(request.messages).text


def test_the_next_prompt_says_what_people_see(engine: LlamaEngine) -> None:
    """What a stop string has cut off was generated, and stands in no chat."""
    request = ask(PROMPTS["numbers"], sources=(Source.DRAFT_MODEL,))
    text = text_of(run(engine, request)[0])
    vocabulary = engine.target.vocabulary
    for stop in (text[10:15], text[11:13], text[9:12]):
        second = followed(request, run(engine, replace(request, stop=(stop,)))[0], "Go on.")
        said = b"".join(vocabulary.piece(token) or vocabulary.text(token).encode() for token in engine.prompt(second))
        assert said.decode() == rendered(engine, second)


def test_an_edited_conversation_keeps_what_is_the_same(engine: LlamaEngine) -> None:
    beginning = PROMPTS["summary"]
    _, first = run(engine, ask(beginning + " Be brief.", sources=(Source.DRAFT_MODEL,)))
    edited, second = run(engine, ask(beginning + " Be poetic.", sources=(Source.DRAFT_MODEL,)))
    assert 0 < second.stats.reused_prompt_tokens < first.stats.prompt_tokens
    engine.forget()
    fresh, _ = run(engine, ask(beginning + " Be poetic."))
    assert ids(edited) == ids(fresh)


def test_cancel_keeps_both_caches_valid(engine: LlamaEngine) -> None:
    request = ask(PROMPTS["prose"], sources=(Source.DRAFT_MODEL,))
    whole, _ = run(engine, request)
    engine.forget()
    cut: list[Notice | Event] = []
    for event in engine.generate(request, lambda: sum(isinstance(e, Step) for e in cut) >= 3):
        cut.append(event)  # noqa: PERF402 -- the list is what `cancelled` looks at
    assert isinstance(cut[-1], Finished)
    assert cut[-1].reason is FinishReason.CANCELLED
    again, finished = run(engine, request)
    assert ids(again) == ids(whole)
    assert finished.stats.reused_prompt_tokens == finished.stats.prompt_tokens - 1


def test_a_stop_string_ends_the_reply(engine: LlamaEngine) -> None:
    whole, _ = run(engine, ask(PROMPTS["numbers"], sources=(Source.DRAFT_MODEL,)))
    text = text_of(whole)
    stop = text[10:15]
    steps, finished = run(engine, ask(PROMPTS["numbers"], sources=(Source.DRAFT_MODEL,), stop=(stop,)))
    assert text_of(steps) == text[: text.index(stop)]
    assert finished.reason is FinishReason.STOP


def test_a_full_context_ends_the_reply_and_says_so(q4_1: Path) -> None:
    engine = LlamaEngine(lambda _target, _draft: None)
    engine.load(LoadRequest(q4_1, q4_1, LoadSettings(context_length=256)), lambda _: None, lambda: False)
    vocabulary = engine.target.vocabulary
    never_ends = tuple((token, -math.inf) for token in range(vocabulary.size) if vocabulary.ends_generation(token))
    request = ask(
        PROMPTS["prose"] + " word" * 150,
        sampling=replace(GREEDY, logit_bias=never_ends),
        sources=(Source.DRAFT_MODEL,),
        draft_length=8,
        max_tokens=None,
    )
    steps, finished = run(engine, request)
    assert finished.reason is FinishReason.CONTEXT_FULL
    assert finished.stats.prompt_tokens + len(ids(steps)) in {256, 257}
    long = ask("word " * 300)
    with pytest.raises(UserFacingError, match="too long") as caught:
        run(engine, long)
    assert "256" in caught.value.what
    steps, _ = run(engine, ask(PROMPTS["one-word"]))
    assert text_of(steps)
    engine.close()


def test_a_refused_draft_leaves_the_target_and_its_reason(q4_1: Path) -> None:
    engine = LlamaEngine(lambda _target, _draft: "Token 7 is “a” in the target and “b” in the draft.")
    loaded = engine.load(LoadRequest(q4_1, q4_1), lambda _: None, lambda: False)
    assert loaded is not None
    assert loaded.draft is None
    assert loaded.draft_problem == "Token 7 is “a” in the target and “b” in the draft."
    steps, _ = run(engine, ask(PROMPTS["one-word"], sources=(Source.DRAFT_MODEL,)))
    assert text_of(steps)
    engine.close()


def test_a_draft_that_is_not_a_model_leaves_the_target(q4_1: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_text("not a model")
    engine = LlamaEngine(lambda _target, _draft: None)
    loaded = engine.load(LoadRequest(q4_1, broken), lambda _: None, lambda: False)
    assert loaded is not None
    assert loaded.draft_problem is not None
    assert "broken.gguf" in loaded.draft_problem
    engine.close()


def test_another_draft_does_not_reload_the_target(q4_1: Path) -> None:
    engine = LlamaEngine(lambda _target, _draft: None)
    engine.load(LoadRequest(q4_1), lambda _: None, lambda: False)
    doing: list[str] = []

    def progress(event: Progress) -> None:
        doing.append(event.doing)

    loaded = engine.load(LoadRequest(q4_1, q4_1), progress, lambda: False)
    assert loaded is not None
    assert loaded.draft is not None
    assert set(doing) == {f"Loading {q4_1.stem}"}
    engine.close()


@pytest.mark.parametrize("content", [b"", b"GGUF", b"hello, this is text\n" * 50], ids=["empty", "cut", "text"])
def test_a_file_that_is_not_a_model_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    engine = LlamaEngine(lambda _target, _draft: None)
    with pytest.raises(UserFacingError, match=r"model\.gguf could not be loaded"):
        engine.load(LoadRequest(path), lambda _: None, lambda: False)
    with pytest.raises(UserFacingError, match="No model is loaded"):
        run(engine, ask("hello"))


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserFacingError, match="There is no model file"):
        LlamaEngine(lambda _t, _d: None).load(LoadRequest(tmp_path / "gone.gguf"), lambda _: None, lambda: False)


def test_a_load_can_be_cancelled(q4_1: Path) -> None:
    engine = LlamaEngine(lambda _target, _draft: None)
    assert engine.load(LoadRequest(q4_1), lambda _: None, lambda: True) is None
    loaded = engine.load(LoadRequest(q4_1), lambda _: None, lambda: False)
    assert loaded is not None
    engine.close()


def test_unpacking_tells_its_progress_and_leaves_nothing_when_cancelled(q4_1: Path, tmp_path: Path) -> None:
    fractions: list[float] = []
    engine = LlamaEngine(lambda _target, _draft: None)
    destination = tmp_path / "deep" / "f32.gguf"
    done = engine.convert(ConversionRequest(q4_1, destination), lambda p: fractions.append(p.fraction), lambda: True)
    assert done is None
    assert list(destination.parent.iterdir()) == []
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_unpacking_nothing_is_a_clear_error(tmp_path: Path) -> None:
    engine = LlamaEngine(lambda _target, _draft: None)
    with pytest.raises(UserFacingError, match="could not be unpacked"):
        engine.convert(ConversionRequest(tmp_path / "no.gguf", tmp_path / "f32.gguf"), lambda _: None, lambda: False)
    assert list(tmp_path.iterdir()) == []
