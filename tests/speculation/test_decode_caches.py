"""The loop and its two caches: what is evaluated once stays, limits hold, and any yield is a good place to stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft import DraftSource, Evaluation
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.events import Event, Finished, PromptProgress
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import PromptLookupSettings, Rule, SamplingSettings
from forespeak.speculation.trace import FinishReason, Step
from scripted import Scores, ScriptedModel, ScriptedSource, agreeing, letters, random_scores, reciting

SIZE = 10
PROMPT = [0, 1, 2, 3, 0, 1, 2]
SAMPLER = Sampler(SamplingSettings(temperature=0.9, seed=77))
SCORES = random_scores(SIZE, 21)
GOOD = agreeing(SCORES, 0.8, 5)


def drafting(model: ScriptedModel, rule: Rule = Rule.COUPLED) -> DraftModel:
    return DraftModel(model, SIZE, rule, lambda: False)


def target_of(scores: Scores = SCORES) -> ScriptedModel:
    return ScriptedModel(scores, letters(SIZE))


def run(
    target: ScriptedModel,
    source: DraftSource | None,
    prompt: Sequence[int] = PROMPT,
    count: int | None = 24,
    length: int = 4,
    stop: tuple[str, ...] = (),
    rule: Rule = Rule.COUPLED,
) -> Iterator[Event]:
    chosen = DecodeSettings(rule=rule, max_tokens=count, stop=stop)
    return generate(target, source, prompt, SAMPLER, FixedDraftLength(length), chosen)


def ids_of(events: Sequence[Event]) -> list[int]:
    return [token.id for event in events if isinstance(event, Step) for token in event.emitted]


def end_of(events: Sequence[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def starts_with(text: Sequence[int], beginning: Sequence[int]) -> bool:
    return list(text[: len(beginning)]) == list(beginning)


EXPECTED = ids_of(list(run(target_of(), None, count=60)))


# Evaluated once.


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("length", [1, 4, 16])
def test_nothing_that_stayed_is_evaluated_again(rule: Rule, length: int) -> None:
    target, draft = target_of(), ScriptedModel(GOOD, letters(SIZE))
    events = list(run(target, drafting(draft, rule), count=60, length=length, rule=rule))
    text = [*PROMPT, *ids_of(events)]
    steps = [event for event in events if isinstance(event, Step)]
    drafted = sum(step.tested_count + len(step.ignored) for step in steps)
    # The target: the prompt, and for every later step the newest token and the draft.
    assert target.evaluated_count == len(PROMPT) + len(steps) - 1 + drafted
    for model in (target, draft):
        times: Counter[int] = Counter()
        for call in model.evaluated:
            seen = list(call.cached)
            for token in call.tokens:
                seen.append(token)
                times[len(seen)] += starts_with(text, seen)
        assert max(times.values()) == 1
    # The draft: each place of the text but the last few once, and the rejected ones that it went on from.
    wasted = sum(max(len(step.rejected) - 1, 0) for step in steps)
    assert draft.evaluated_count <= len(text) - 1 + wasted


@pytest.mark.parametrize("ending", ["limit", "stop", "end"])
def test_the_second_turn_evaluates_only_what_is_new(ending: str) -> None:
    ends = [EXPECTED[10]] if ending == "end" else []
    stop = (chr(ord("a") + EXPECTED[10]),) if ending == "stop" else ()
    target, draft = ScriptedModel(SCORES, letters(SIZE, ends)), ScriptedModel(GOOD, letters(SIZE, ends))
    lookup = PromptLookup()
    for source in (drafting(draft), lookup):
        reply = ids_of(list(run(target, source, count=20, stop=stop)))
        second = [*PROMPT, *reply, 5, 6, 5]
        target.evaluated.clear()
        draft.evaluated.clear()
        events = list(run(target, source, second, count=8))
        # The last token of a reply may have been chosen without being evaluated.
        reused = end_of(events).stats.reused_prompt_tokens
        assert reused >= len(PROMPT) + len(reply) - 1
        assert target.evaluated[0].tokens == tuple(second[reused:])
        assert end_of(events).stats.prompt_tokens == len(second)
        assert events[0] == PromptProgress(len(second), len(second), reused)
        if source is not lookup:
            assert len(draft.evaluated[0].cached) >= len(PROMPT) + len(reply) - 2
            assert starts_with(second, draft.evaluated[0].cached)
        assert ids_of(events) == ids_of(list(run(target_of(), None, second, count=8)))[: len(ids_of(events))]


def test_an_edited_chat_keeps_what_still_holds() -> None:
    target, draft = target_of(), ScriptedModel(GOOD, letters(SIZE))
    list(run(target, drafting(draft)))
    target.evaluated.clear()
    edited = [*PROMPT[:4], 9, 9]
    events = list(run(target, drafting(draft), edited))
    assert end_of(events).stats.reused_prompt_tokens == 4
    assert target.evaluated[0].tokens == (9, 9)
    assert ids_of(events) == ids_of(list(run(target_of(), None, edited)))


def test_the_same_prompt_again_keeps_one_token_to_evaluate() -> None:
    target, draft = target_of(), ScriptedModel(GOOD, letters(SIZE))
    for _ in range(3):
        events = list(run(target, drafting(draft)))
        assert ids_of(events) == EXPECTED[:24]
    assert end_of(events).stats.reused_prompt_tokens == len(PROMPT) - 1


class Overwriting(ScriptedSource):
    """Evaluates on the target's own engine when it begins, which overwrites the scores that were handed out."""

    def observe(self, evaluation: Evaluation) -> None:
        self.rows = evaluation.logits

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        super().begin(tokens, sampler)
        self.rows.fill(np.nan)


def test_the_prompts_scores_outlive_what_the_source_evaluates() -> None:
    assert ids_of(list(run(target_of(), Overwriting([*PROMPT, *EXPECTED])))) == EXPECTED[:24]


# Any yield is a good place to stop.


def held_at_every_yield(
    stop: tuple[str, ...], rule: Rule
) -> Iterator[tuple[ScriptedModel, ScriptedModel, list[int], Event]]:
    """Both models and the tokens seen, at every yield of one generation, closed there."""
    total = len(list(run(target_of(), drafting(ScriptedModel(GOOD, letters(SIZE)), rule), stop=stop, rule=rule)))
    for count in range(1, total + 1):
        target, draft = target_of(), ScriptedModel(GOOD, letters(SIZE))
        generation = run(target, drafting(draft, rule), stop=stop, rule=rule)
        events = [next(generation) for _ in range(count)]
        generation.close()  # type: ignore[attr-defined]
        yield target, draft, ids_of(events), events[-1]


@pytest.mark.parametrize("stop", [(), ("never", "jjjjjjj", "a!", "b!", "c!", "d!", "e!")])
def test_closed_at_any_yield_and_continued_it_says_the_same(stop: tuple[str, ...]) -> None:
    for target, draft, seen, last in held_at_every_yield(stop, Rule.COUPLED):
        assert seen == EXPECTED[: len(seen)]
        for model in (target, draft):
            assert starts_with([*PROMPT, *EXPECTED], model.tokens)
        if not seen or isinstance(last, Finished):
            continue
        target.evaluated.clear()
        rest = list(run(target, drafting(draft), [*PROMPT, *seen], count=24 - len(seen) or 1))
        assert (seen + ids_of(rest))[:24] == EXPECTED[:24]
        assert len(target.evaluated[0].tokens) == 1, "everything but the newest token was still there"


def test_under_the_rejection_rule_too_the_caches_hold_a_beginning_of_the_text() -> None:
    whole = ids_of(
        list(run(target_of(), drafting(ScriptedModel(GOOD, letters(SIZE)), Rule.REJECTION), rule=Rule.REJECTION))
    )
    for target, draft, seen, _ in held_at_every_yield((), Rule.REJECTION):
        assert seen == whole[: len(seen)]
        for model in (target, draft):
            assert starts_with([*PROMPT, *whole], model.tokens)


# Cancel.


def cancelled_after(count: int) -> tuple[list[Event], ScriptedModel, ScriptedModel]:
    """A generation that finds itself cancelled when it asks for the `count`-th time, counted from 0."""
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > count

    target = ScriptedModel(SCORES, letters(SIZE), batch_limit=3)
    draft = ScriptedModel(GOOD, letters(SIZE), batch_limit=3)
    source = DraftModel(draft, SIZE, Rule.COUPLED, lambda: asked > count)
    chosen = DecodeSettings(max_tokens=24)
    return list(generate(target, source, PROMPT, SAMPLER, FixedDraftLength(2), chosen, cancelled)), target, draft


@pytest.mark.parametrize("count", range(10))
def test_cancelled_anywhere_it_ends_and_the_caches_stay_good(count: int) -> None:
    events, target, draft = cancelled_after(count)
    assert end_of(events).reason is FinishReason.CANCELLED
    assert end_of(events).stats.generated_tokens == len(ids_of(events))
    # Three batches of the prompt come first, and a token after them; then a step each time.
    assert len(target.evaluated) == count
    assert bool(ids_of(events)) == (count >= 3)
    assert starts_with(EXPECTED, ids_of(events))
    for model in (target, draft):
        assert starts_with([*PROMPT, *EXPECTED], model.tokens)
    target.evaluated.clear()
    again = list(run(target, drafting(draft), length=2))
    assert ids_of(again) == EXPECTED[:24]
    assert end_of(again).stats.reused_prompt_tokens == min(3 * count, len(PROMPT) - 1)


def test_a_cancel_gives_out_what_a_stop_string_held_back() -> None:
    target = ScriptedModel(reciting([0, 1, 0, 1], 1, SIZE), letters(SIZE))
    steps = 0

    def cancelled() -> bool:
        nonlocal steps
        steps += 1
        return steps > 3

    chosen = DecodeSettings(stop=("abababab",))
    events = list(generate(target, None, [5], Sampler(SamplingSettings()), FixedDraftLength(0), chosen, cancelled))
    assert ids_of(events) == [0, 1, 0]
    assert "".join(token.text for e in events if isinstance(e, Step) for token in e.emitted) == "aba"
    assert end_of(events).reason is FinishReason.CANCELLED


# Limits. The scripted models raise where a real engine's process would die.


@settings(max_examples=150, deadline=None)
@given(
    context=st.integers(len(PROMPT) + 1, 40),
    batch=st.integers(1, 12),
    outputs=st.integers(1, 12),
    draft_context=st.integers(1, 40),
    draft_batch=st.integers(1, 12),
    count=st.one_of(st.none(), st.integers(1, 40)),
    length=st.sampled_from([1, 4, 16]),
    source=st.sampled_from(["draft model", "lookup", "oracle"]),
    rule=st.sampled_from(Rule),
)
def test_every_limit_holds_and_changes_no_word(
    context: int,
    batch: int,
    outputs: int,
    draft_context: int,
    draft_batch: int,
    count: int | None,
    length: int,
    source: str,
    rule: Rule,
) -> None:
    target = ScriptedModel(SCORES, letters(SIZE), context_length=context, batch_limit=batch, output_limit=outputs)
    draft = ScriptedModel(GOOD, letters(SIZE), context_length=draft_context, batch_limit=draft_batch, output_limit=1)
    sources: dict[str, DraftSource] = {
        "draft model": drafting(draft, rule),
        "lookup": PromptLookup(PromptLookupSettings(2, 1)),
        "oracle": ScriptedSource([*PROMPT, *EXPECTED]),
    }
    events = list(run(target, sources[source], count=count, length=length, rule=rule))
    room = context + 1 - len(PROMPT)
    wanted = room if count is None else min(count, room)
    assert len(ids_of(events)) == wanted
    if rule is Rule.COUPLED:
        assert ids_of(events) == EXPECTED[:wanted]
    assert end_of(events).reason is (
        FinishReason.LENGTH if count is not None and count <= room else FinishReason.CONTEXT_FULL
    )
    assert max(call.outputs for call in target.evaluated) <= min(length, outputs - 1, batch - 1) + 1


def test_the_last_place_of_the_context_is_used_and_by_a_draft_too() -> None:
    target = ScriptedModel(SCORES, letters(SIZE), context_length=12)
    events = list(run(target, ScriptedSource([*PROMPT, *EXPECTED]), count=None))
    assert len(target.tokens) == 12
    assert [len(event.emitted) for event in events if isinstance(event, Step)] == [1, 5]
    assert end_of(events).reason is FinishReason.CONTEXT_FULL


def test_a_draft_context_smaller_than_the_prompt_only_costs_the_drafts() -> None:
    draft = ScriptedModel(GOOD, letters(SIZE), context_length=5)
    events = list(run(target_of(), drafting(draft)))
    assert ids_of(events) == EXPECTED[:24]
    state = end_of(events).stats.speculation
    assert state is not None
    assert not state.active
    assert "5 tokens" in state.reason
    assert draft.evaluated == []


@pytest.mark.parametrize("length", [0, 1, 4])
@pytest.mark.parametrize("batch", [2, 5, 1000])
def test_a_target_that_cannot_roll_back_is_refilled_and_says_the_same(length: int, batch: int) -> None:
    batch = max(batch, length + 1)
    target = ScriptedModel(SCORES, letters(SIZE), can_roll_back=False, batch_limit=batch)
    draft = ScriptedModel(GOOD, letters(SIZE), can_roll_back=False)
    assert ids_of(list(run(target, drafting(draft), length=length))) == EXPECTED[:24]


def test_a_prompt_that_is_empty_or_too_long_is_refused() -> None:
    target = ScriptedModel(SCORES, letters(SIZE), context_length=len(PROMPT))
    with pytest.raises(ValueError, match="empty"):
        next(run(target, None, []))
    with pytest.raises(ValueError, match="no room"):
        next(run(target, None))
    assert target.evaluated == []
