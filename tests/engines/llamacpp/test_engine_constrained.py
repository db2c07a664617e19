"""Replies held to a schema or grammar, by a real model: valid, and the same with drafts."""

from __future__ import annotations

import ctypes
import json
import random
from dataclasses import replace
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from forespeak.engines import pair_engine
from forespeak.engines.engine import ChatMessage, GenerationRequest, Role
from forespeak.engines.llamacpp.bindings import NativeModel, NativeVocabulary
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.thinking import ThoughtMarks
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Finished
from forespeak.speculation.penalties import Dry, tokens_with
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import FinishReason, Source, Step, text_of

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 24},
            "year": {"type": "integer", "minimum": 1900, "maximum": 2030},
            "good": {"type": "boolean"},
        },
        "required": ["title", "year", "good"],
        "additionalProperties": False,
    }
)


def ask(**settings: object) -> GenerationRequest:
    request = GenerationRequest((ChatMessage(Role.USER, "Recommend a film. Write JSON."),), max_tokens=80)
    return replace(request, **settings)  # type: ignore[arg-type]


def run(engine: LlamaEngine, request: GenerationRequest) -> tuple[list[Step], Finished]:
    events = list(engine.generate(request, lambda: False))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event for event in events if isinstance(event, Step)], finished


def no_spaces(engine: LlamaEngine) -> tuple[tuple[int, float], ...]:
    """A bias against tokens of nothing but spaces: a model of so few layers would fill its JSON with them."""
    vocabulary = engine.target.vocabulary
    return tuple((token, -15.0) for token in range(vocabulary.size) if vocabulary.piece(token).isspace())


def check(text: str) -> None:
    said = json.loads(text)
    assert sorted(said) == ["good", "title", "year"]
    assert 1900 <= said["year"] <= 2030
    assert isinstance(said["good"], bool)
    assert len(said["title"]) <= 24


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_json_of_the_schema_and_the_same_words_with_drafts(engine: LlamaEngine, temperature: float) -> None:
    bias = no_spaces(engine)
    sampling = SamplingSettings(temperature=temperature, seed=5, dry_multiplier=0.3, logit_bias=bias)
    plain, finished = run(engine, ask(sampling=sampling, json_schema=SCHEMA))
    assert finished.reason is FinishReason.STOP
    check(text_of(plain))
    words = [token.id for step in plain for token in step.emitted]
    for source in (Source.DRAFT_MODEL, Source.PROMPT_LOOKUP):
        drafted, _ = run(engine, ask(sampling=sampling, json_schema=SCHEMA, sources=(source,), draft_length=4))
        assert [token.id for step in drafted for token in step.emitted] == words
        if source is Source.DRAFT_MODEL:
            assert sum(step.accepted_count for step in drafted) > 10


def test_json_of_the_schema_under_the_rejection_rule(engine: LlamaEngine) -> None:
    drafted, finished = run(
        engine,
        ask(
            sampling=SamplingSettings(seed=8, logit_bias=no_spaces(engine)),
            json_schema=SCHEMA,
            sources=(Source.DRAFT_MODEL,),
            rule=Rule.REJECTION,
        ),
    )
    assert finished.reason is FinishReason.STOP
    check(text_of(drafted))


def test_a_reply_in_a_grammar(engine: LlamaEngine) -> None:
    steps, finished = run(engine, ask(grammar='root ::= "No" | "Yes" " indeed"?'))
    assert text_of(steps) in {"No", "Yes", "Yes indeed"}
    assert finished.reason is FinishReason.STOP


def test_the_grammar_waits_for_thoughts_that_the_reply_opens(
    engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the model says by itself is taken for thoughts: two tokens open them, and the fourth closes them."""
    about = ask(messages=(ChatMessage(Role.USER, "How are you?"),), sampling=SamplingSettings(temperature=0.0))
    natural = [token.text for step in run(engine, replace(about, max_tokens=4))[0] for token in step.emitted]
    opener, closer, thoughts = "".join(natural[:2]), natural[3], "".join(natural)
    assert thoughts.index(closer) == len(thoughts) - len(closer)
    for marks, grammar, expected in (
        (ThoughtMarks(opener, closer), 'root ::= " So be it"', f"{thoughts} So be it"),
        (ThoughtMarks("¤¤¤", closer), f'root ::= "{opener}"', opener),
        (None, f'root ::= "{opener}"', opener),
    ):
        monkeypatch.setattr(pair_engine, "thought_marks", lambda _, marks=marks: marks)
        for sources in ((), (Source.DRAFT_MODEL,), (Source.PROMPT_LOOKUP,)):
            steps, finished = run(engine, replace(about, grammar=grammar, sources=sources))
            assert text_of(steps) == expected
            assert finished.reason is FinishReason.STOP


def test_a_mistake_is_told_before_anything_is_written(engine: LlamaEngine) -> None:
    with pytest.raises(UserFacingError, match="The JSON schema cannot be used"):
        run(engine, ask(json_schema="{"))
    with pytest.raises(ValueError, match="not both"):
        ask(json_schema="{}", grammar='root ::= "a"')


def test_a_grammar_against_the_bans_is_told(engine: LlamaEngine) -> None:
    banned = tuple((token, -float("inf")) for token in range(49152))
    with pytest.raises(UserFacingError, match="The reply cannot go on"):
        run(engine, ask(grammar='root ::= "a"', sampling=SamplingSettings(logit_bias=banned)))


def theirs(
    vocabulary: NativeVocabulary, base: float, allowed: int, last_n: int, breakers: list[bytes], text: list[int]
) -> dict[int, float]:
    """What llama.cpp's own DRY takes from each token."""
    texts = (ctypes.c_char_p * len(breakers))(*breakers)
    sampler = llama_cpp.llama_sampler_init_dry(vocabulary._handle, 0.8, base, allowed, last_n, texts, len(breakers))
    for token in text:
        llama_cpp.llama_sampler_accept(sampler, token)
    data = (llama_cpp.llama_token_data * vocabulary.size)()
    rows = np.frombuffer(data, dtype=[("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])
    rows["id"] = np.arange(vocabulary.size)
    candidates = llama_cpp.llama_token_data_array(data, vocabulary.size, -1, False)
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(candidates))
    llama_cpp.llama_sampler_free(sampler)
    return {int(row["id"]): -float(row["logit"]) for row in rows[np.flatnonzero(rows["logit"])]}


def test_dry_is_llama_cpps(q4_1: Path) -> None:
    model = NativeModel(q4_1, lambda _: True)
    vocabulary = model.vocabulary
    ours = tokens_with(vocabulary, ["\n", ":"])
    draw = random.Random(0)
    penalised = 0
    for case in range(150):
        base, allowed = draw.choice([1.0, 1.1, 1.75, 3.0]), draw.choice([1, 2, 3, 5])
        last_n, breaking = draw.choice([5, 17, 64, 2048]), draw.random() < 0.6
        pool = [*range(300, 300 + draw.choice([2, 3, 5])), *(token for (token,) in ours[:2] if case % 2)]
        text = draw.choices(pool, k=draw.choice([1, 2, 5, 30, 120]))
        found = Dry(0.8, base, allowed, last_n, ours if breaking else ()).penalties(text)
        expected = theirs(vocabulary, base, allowed, last_n, [b"\n", b":"] if breaking else [], text)
        assert found == pytest.approx(expected, rel=1e-4)
        penalised += bool(found)
    model.close()
    assert penalised > 30


def test_dry_has_breakers_unless_others_are_asked_for(engine: LlamaEngine) -> None:
    sampling = SamplingSettings(dry_multiplier=0.8)
    breakers = engine.sampler(ask(sampling=sampling)).settings.dry_breakers
    newline = engine.target.vocabulary.tokenize("\n")[-1]
    assert (newline,) in breakers
    assert all(len(breaker) == 1 for breaker in breakers)
    own = replace(sampling, dry_breakers=((5,),))
    assert engine.sampler(ask(sampling=own)).settings.dry_breakers == ((5,),)
    assert engine.sampler(ask(sampling=SamplingSettings())).settings.dry_breakers == ()
