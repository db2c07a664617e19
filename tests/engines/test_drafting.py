from __future__ import annotations

import json
from dataclasses import replace

import pytest

from forespeak.engines.drafting import MAX_DRAFT_LENGTH, Drafting
from forespeak.engines.engine import ChatMessage, GenerationRequest, Role, TextSourceSettings
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.adaptive_chain import AdaptiveChain, ChainDraftLength
from forespeak.speculation.chain import Chain
from forespeak.speculation.controller import DraftController
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramSimpleSettings, Rule, SamplingSettings
from forespeak.speculation.trace import Source
from scripted import ScriptedModel, letters, random_scores

REQUEST = GenerationRequest((ChatMessage(Role.USER, "x"),), (Source.DRAFT_MODEL,))


@pytest.fixture
def target() -> ScriptedModel:
    return ScriptedModel(random_scores(8, 1), letters(8))


@pytest.fixture
def drafting(target: ScriptedModel) -> Drafting:
    drafting = Drafting()
    drafting.measure_target(target)
    drafting.measure_draft(ScriptedModel(random_scores(8, 2), letters(8)))
    return drafting


DRAFT = ScriptedModel(random_scores(8, 2), letters(8))


def prepared(
    drafting: Drafting, request: GenerationRequest, draft: ScriptedModel | None = DRAFT
) -> tuple[DraftSource | None, DraftController]:
    return drafting.prepare(request, draft, 8, lambda: False)


def with_sources(*sources: Source, length: int | None = None, rule: Rule = Rule.COUPLED) -> GenerationRequest:
    return replace(REQUEST, sources=sources, draft_length=length, rule=rule)


def test_a_fixed_length_is_what_was_asked_for_within_the_engines_limit(drafting: Drafting) -> None:
    for length, given in ((5, 5), (1000, MAX_DRAFT_LENGTH)):
        _, controller = prepared(drafting, with_sources(Source.DRAFT_MODEL, length=length))
        assert controller.next_length() == given
    source, controller = prepared(drafting, with_sources())
    assert source is None
    assert controller.next_length() == 0


def test_what_was_learned_is_kept_by_source_rule_and_temperature(drafting: Drafting) -> None:
    _, adaptive = prepared(drafting, REQUEST)
    assert isinstance(adaptive, AdaptiveDraftLength)
    assert prepared(drafting, REQUEST)[1] is adaptive
    assert prepared(drafting, with_sources(Source.DRAFT_MODEL, rule=Rule.REJECTION))[1] is not adaptive
    greedy = replace(REQUEST, sampling=SamplingSettings(temperature=0.0))
    assert prepared(drafting, greedy)[1] is not adaptive, "confidence is worth something else there"
    drafting.measure_draft(ScriptedModel(random_scores(8, 3), letters(8)))
    assert prepared(drafting, REQUEST)[1] is not adaptive


def test_a_chain_asks_the_text_first_and_shares_the_draft_models_judge(drafting: Drafting) -> None:
    _, alone = prepared(drafting, REQUEST)
    chain, controller = prepared(drafting, with_sources(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL))
    assert isinstance(chain, AdaptiveChain)
    assert chain.sources == (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    assert chain._model is alone
    assert isinstance(controller, ChainDraftLength)
    fixed, length = prepared(drafting, with_sources(Source.NGRAM_MOD, Source.DRAFT_MODEL, length=3))
    assert type(fixed) is Chain
    assert length.next_length() == 3


def test_a_draft_model_that_is_not_there_leaves_the_others(drafting: Drafting) -> None:
    chain, _ = prepared(drafting, with_sources(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL), None)
    assert isinstance(chain, AdaptiveChain)
    assert chain.sources == (Source.PROMPT_LOOKUP,)
    assert prepared(drafting, REQUEST, None)[0] is None


@pytest.mark.parametrize("source", [source for source in Source if not source.uses_model])
def test_every_source_without_a_model_can_be_had_and_keeps_its_index(drafting: Drafting, source: Source) -> None:
    made, _ = prepared(drafting, with_sources(source, length=4))
    assert prepared(drafting, with_sources(source, length=4))[0] is made
    assert made is not None
    made.begin([1, 2, 3] * 40, Sampler(SamplingSettings()))
    assert made.propose(4).source in {source, None}
    drafting.forget()
    assert prepared(drafting, with_sources(source, length=4))[0] is not made


def test_a_reply_that_begins_anew_leaves_what_was_learned_as_it_is(drafting: Drafting) -> None:
    request = with_sources(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    model = ScriptedModel(random_scores(8, 1), letters(8))

    def reply(drafting: Drafting) -> None:
        source, controller = prepared(drafting, request)
        list(generate(model, source, [1, 2, 3], Sampler(SamplingSettings()), controller, DecodeSettings(max_tokens=40)))

    new = json.dumps(drafting.learned())
    reply(drafting)
    learned = json.dumps(drafting.learned())
    other = drafting.anew()
    assert json.dumps(other.learned()) == new != learned
    reply(other)
    assert json.dumps(other.learned()) != new
    assert json.dumps(drafting.learned()) == learned


def test_other_settings_make_other_sources(drafting: Drafting) -> None:
    request = with_sources(Source.NGRAM_SIMPLE, length=9)
    before, _ = prepared(drafting, request)
    short = TextSourceSettings(ngram_simple=NgramSimpleSettings(size_n=2, size_m=3))
    source, _ = prepared(drafting, replace(request, text_sources=short))
    assert source is not None
    assert source is not before
    source.begin([1, 2, 3, 4, 5, 6, 1, 2], Sampler(SamplingSettings()))
    assert source.propose(9).tokens == (3, 4, 5)


def test_a_draft_model_reads_the_prompt_only_if_it_is_going_to_draft(drafting: Drafting) -> None:
    draft = ScriptedModel(random_scores(8, 2), letters(8))
    for length, read in ((0, []), (2, [1, 2, 3])):
        source, _ = prepared(drafting, with_sources(Source.DRAFT_MODEL, length=length), draft)
        assert isinstance(source, DraftModel)
        source.begin([1, 2, 3, 4], Sampler(SamplingSettings()))
        assert list(draft.tokens) == read


def test_what_a_pair_has_learned_survives_json(drafting: Drafting) -> None:
    request = with_sources(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    source, controller = prepared(drafting, request)
    model = ScriptedModel(random_scores(8, 1), letters(8))
    events = generate(
        model, source, [1, 2, 3, 1, 2], Sampler(SamplingSettings(seed=3)), controller, DecodeSettings(max_tokens=60)
    )
    list(events)
    learned = json.loads(json.dumps(drafting.learned()))
    other = Drafting()
    other.recall(learned)
    assert json.loads(json.dumps(other.learned())) == learned
    kept = Drafting()
    kept.measure_target(ScriptedModel(random_scores(8, 1), letters(8)))
    measured = kept.learned()["target_seconds"]
    kept.recall(learned, costs=False)
    assert kept.learned()["target_seconds"] == measured
    assert kept.learned()["models"] == learned["models"]


@pytest.mark.parametrize(
    "change",
    [
        {"target_seconds": []},
        {"target_seconds": [[1, -2.0]]},
        {"target_seconds": "fast"},
        {"draft_seconds": [1.0]},
        {"draft_seconds": [1e9, 0.0]},
        {"models": {"guessing": {}}},
        {"models": {"coupled 4": {"drafts": "many"}}},
        {"models": {"coupled": {}}},
        {"lookups": {"prompt-lookup": {"begun": [[9.0] * 10, [1.0] * 10], "going": [[0.0] * 10, [0.0] * 10]}}},
        {"lookups": []},
    ],
)
def test_what_was_not_learned_is_refused_and_nothing_changes(drafting: Drafting, change: dict[str, object]) -> None:
    before = drafting.learned()
    with pytest.raises(ValueError, match="not what a pair has learned"):
        drafting.recall({**before, **change})
    assert drafting.learned() == before
    with pytest.raises(ValueError, match="not what a pair has learned"):
        drafting.recall({})
