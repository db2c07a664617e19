from __future__ import annotations

from dataclasses import replace

import pytest

from forespeak.engines.drafting import MAX_DRAFT_LENGTH, Drafting
from forespeak.engines.engine import ChatMessage, GenerationRequest, Role
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.sampling import Sampler, SamplingSettings
from forespeak.speculation.trace import Source
from forespeak.speculation.verify import Rule
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


def test_a_fixed_length_is_what_was_asked_for_within_the_engines_limit(drafting: Drafting) -> None:
    assert drafting.controller(replace(REQUEST, draft_length=5)).next_length() == 5
    assert drafting.controller(replace(REQUEST, draft_length=1000)).next_length() == MAX_DRAFT_LENGTH
    assert drafting.controller(replace(REQUEST, sources=())).next_length() == 0


def test_what_was_learned_is_kept_by_source_and_rule(drafting: Drafting) -> None:
    adaptive = drafting.controller(REQUEST)
    assert drafting.controller(REQUEST) is adaptive
    assert drafting.controller(replace(REQUEST, rule=Rule.REJECTION)) is not adaptive
    lookup = drafting.controller(replace(REQUEST, sources=(Source.PROMPT_LOOKUP,)))
    assert lookup is not adaptive
    drafting.measure_draft(ScriptedModel(random_scores(8, 3), letters(8)))
    assert drafting.controller(REQUEST) is not adaptive
    assert drafting.controller(replace(REQUEST, sources=(Source.PROMPT_LOOKUP,))) is lookup


@pytest.mark.parametrize("source", [source for source in Source if not source.uses_model])
def test_every_source_without_a_model_can_be_had_and_keeps_its_index(drafting: Drafting, source: Source) -> None:
    made = drafting.text_source(source)
    assert drafting.text_source(source) is made
    made.begin([1, 2, 3] * 40, Sampler(SamplingSettings()))
    assert made.propose(4).source in {source, None}
    drafting.forget()
    assert drafting.text_source(source) is not made


def test_a_draft_model_reads_the_prompt_only_if_it_is_going_to_draft(drafting: Drafting) -> None:
    draft = ScriptedModel(random_scores(8, 2), letters(8))
    source = drafting.model_source(replace(REQUEST, draft_length=0), draft, 8, lambda: False)
    assert isinstance(source, DraftModel)
    source.begin([1, 2, 3, 4], Sampler(SamplingSettings()))
    assert list(draft.tokens) == []
    source = drafting.model_source(replace(REQUEST, draft_length=2), draft, 8, lambda: False)
    source.begin([1, 2, 3, 4], Sampler(SamplingSettings()))
    assert list(draft.tokens) == [1, 2, 3]
