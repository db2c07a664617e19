"""The loop: the same words whatever drafts them, honest counts, and sources that break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation import decode
from forespeak.speculation.decode import DecodeSettings
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import PromptLookupSettings, Rule, SamplingSettings
from forespeak.speculation.trace import (
    FinishReason,
    Origin,
    Source,
    SpeculationState,
)
from scripted import (
    GREEDY,
    Reply,
    Row,
    Scores,
    ScriptedModel,
    ScriptedSource,
    agreeing,
    blended,
    letters,
    random_scores,
    reciting,
    reply_of,
)

SIZE = 12
END = 11
PROMPT = [0, 1, 2, 3, 0, 1, 2]


def one_by_one(
    scores: Scores, sampler: Sampler, prompt: Sequence[int], count: int, ends: Sequence[int] = ()
) -> list[int]:
    """What a model says without any loop of ours: score, choose, append."""
    text = list(prompt)
    while len(text) < len(prompt) + count:
        choices = sampler.distribution(scores(tuple(text)), text)
        text.append(sampler.choose(choices, len(text)))
        if text[-1] in ends:
            break
    return text[len(prompt) :]


# The same seed, the same words.

samplers = st.builds(
    lambda **chosen: Sampler(SamplingSettings(**chosen)),
    temperature=st.sampled_from([0.0, 0.8, 1.5]),
    top_k=st.sampled_from([0, 3]),
    top_p=st.sampled_from([1.0, 0.8]),
    min_p=st.sampled_from([0.0, 0.1]),
    repeat_penalty=st.sampled_from([1.0, 1.4]),
    frequency_penalty=st.sampled_from([0.0, 0.3]),
    presence_penalty=st.sampled_from([0.0, 0.3]),
    penalty_window=st.sampled_from([3, 64]),
    seed=st.integers(0, 2**64 - 1),
)
SOURCES = ["none", "itself", "good", "related", "junk", "lookup", "smaller vocabulary", "padded vocabulary"]


def make_source(name: str, scores: Scores, seed: int, rule: Rule = Rule.COUPLED) -> DraftSource | None:
    if name == "none":
        return None
    if name == "lookup":
        return PromptLookup(PromptLookupSettings(2, 1))
    size = {"smaller vocabulary": SIZE - 2, "padded vocabulary": SIZE + 3}.get(name, SIZE)
    drafts: dict[str, Scores] = {
        "itself": scores,
        "good": agreeing(scores, 0.8, seed + 1),
        "related": blended(scores, random_scores(SIZE, seed + 1), 0.7),
        "junk": random_scores(SIZE, seed + 1),
        "smaller vocabulary": lambda text: scores(text)[:size],
        "padded vocabulary": lambda text: np.concatenate([scores(text), np.full(3, 30.0, dtype=np.float32)]),
    }
    return DraftModel(ScriptedModel(drafts[name], letters(size, [END])), SIZE, rule, lambda: False)


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 10_000), samplers, st.sampled_from(SOURCES), st.sampled_from([1, 4, 8, 16]), st.booleans())
def test_same_seed_same_words(model_seed: int, sampler: Sampler, name: str, length: int, can_end: bool) -> None:
    scores = random_scores(SIZE, model_seed)
    ends = [END] if can_end else []
    expected = one_by_one(scores, sampler, PROMPT, 24, ends)
    target = ScriptedModel(scores, letters(SIZE, ends))
    reply = reply_of(target, make_source(name, scores, model_seed), sampler, length=length, max_tokens=24)
    assert reply.ids == expected
    ended = expected[-1] in ends
    assert reply.text == "".join(chr(ord("a") + token) for token in (expected[:-1] if ended else expected))
    assert reply.finish is (FinishReason.STOP if ended else FinishReason.LENGTH)
    check_counts(reply)


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("length", [1, 4, 8, 16])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("penalty", [1.0, 1.4])
def test_a_model_that_drafts_for_itself_is_always_accepted(
    rule: Rule, length: int, temperature: float, penalty: float
) -> None:
    scores = random_scores(SIZE, 4)
    sampler = Sampler(SamplingSettings(temperature, repeat_penalty=penalty, frequency_penalty=penalty - 1.0, seed=8))
    target = ScriptedModel(scores, letters(SIZE))
    source = DraftModel(ScriptedModel(scores, letters(SIZE)), SIZE, rule, lambda: False)
    reply = reply_of(target, source, sampler, length=length, max_tokens=1 + 2 * (length + 1), rule=rule)
    assert reply.stats.acceptance_rate == 1.0
    assert reply.stats.mean_acceptance_length == length + 1
    assert reply.stats.acceptance_rate_per_position == (1.0,) * length
    assert [len(step.emitted) for step in reply.steps] == [1, length + 1, length + 1]
    assert {step.emitted[-1].origin for step in reply.steps[1:]} == {Origin.BONUS}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), samplers, st.sampled_from(SOURCES))
def test_the_rejection_rule_counts_as_honestly(model_seed: int, sampler: Sampler, name: str) -> None:
    scores = random_scores(SIZE, model_seed)
    source = make_source(name, scores, model_seed, Rule.REJECTION)
    target = ScriptedModel(scores, letters(SIZE, [END]))
    reply = reply_of(target, source, sampler, max_tokens=20, rule=Rule.REJECTION)
    check_counts(reply)
    if name == "none":
        assert reply.ids == one_by_one(scores, sampler, PROMPT, 20, [END])


def check_counts(reply: Reply) -> None:
    """Everything that holds of any reply."""
    stats = reply.stats
    accepted = [token for token in reply.tokens if token.origin is Origin.ACCEPTED]
    assert stats.generated_tokens == len(reply.ids)
    assert stats.verify_steps == len(reply.steps)
    assert stats.accepted_draft_tokens_count == len(accepted)
    assert stats.rejected_draft_tokens_count == sum(len(step.rejected) for step in reply.steps)
    assert stats.ignored_draft_tokens_count == sum(len(step.ignored) for step in reply.steps)
    tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
    assert stats.total_draft_tokens_count == tested + stats.ignored_draft_tokens_count
    assert stats.acceptance_rate == (len(accepted) / tested if tested else None)
    assert [step.index for step in reply.steps] == list(range(len(reply.steps)))
    for step in reply.steps:
        assert [token.origin is Origin.ACCEPTED for token in step.emitted] == sorted(
            (token.origin is Origin.ACCEPTED for token in step.emitted), reverse=True
        )
        drafted = step.accepted_count + len(step.rejected) + len(step.ignored)
        assert (step.source is not None) == (drafted > 0)
        assert not (step.rejected and step.ignored)
        if step.rejected:
            assert step.emitted[-1].origin is Origin.CORRECTED
            assert step.rejected[0].id != step.emitted[-1].id
            assert step.rejected[0].probability is not None
            assert all(token.probability is None for token in step.rejected[1:])
        elif step.emitted[-1].origin is not Origin.ACCEPTED:
            assert step.emitted[-1].origin is (Origin.BONUS if drafted else Origin.TARGET)
        for token in step.emitted:
            assert token.probability is not None
            assert 0.0 < token.probability <= 1.0 + 1e-9
            assert token.source is (step.source if token.origin is Origin.ACCEPTED else None)
            by_model = token.source is Source.DRAFT_MODEL
            assert (token.draft_probability is not None) == by_model


def test_origins_and_probabilities_by_hand() -> None:
    reply = [4, 5, 6, 7, 8, 9, 4, 5]
    guess = [*PROMPT, 4, 5, 6, 0, 1, 9, 4, 5]
    target = ScriptedModel(reciting(reply, len(PROMPT), SIZE), letters(SIZE))
    got = reply_of(target, ScriptedSource(guess), max_tokens=8, length=3, alternatives=2)
    origins = [[token.origin for token in step.emitted] for step in got.steps]
    accepted, corrected = Origin.ACCEPTED, Origin.CORRECTED
    # 4 comes from the prompt; 5, 6 pass and 0 fails at 7; 1 fails at once at 8; 9 and 4 pass, and 5 is the bonus.
    assert origins == [
        [Origin.TARGET],
        [accepted, accepted, corrected],
        [corrected],
        [accepted, accepted, Origin.BONUS],
    ]
    assert [token.id for token in got.steps[1].rejected] == [0]
    assert [token.id for token in got.steps[2].rejected] == [1, 9, 4]
    assert got.stats.acceptance_rate_per_position == pytest.approx((2 / 3, 2 / 3, 0.0))
    assert got.stats.mean_acceptance_length == pytest.approx(7 / 3)
    assert got.steps[1].rejected[0].probability == pytest.approx(0.0, abs=1e-12)
    first = got.tokens[0]
    assert first.probability == pytest.approx(1.0)
    assert [(other.id, other.text) for other in first.alternatives[:1]] == [(4, "e")]
    assert [step.cache_length for step in got.steps] == [7, 10, 11, 14]


def test_the_prompt_is_reported_as_it_goes_in() -> None:
    target = ScriptedModel(random_scores(SIZE, 1), letters(SIZE), batch_limit=3)
    reply = reply_of(target, None, max_tokens=2)
    assert [(at.done, at.total, at.reused) for at in reply.progress] == [(3, 7, 0), (6, 7, 0), (7, 7, 0)]
    assert [call.outputs for call in target.evaluated[:3]] == [0, 0, 1]


@pytest.mark.parametrize("chosen", [{"max_tokens": 0}, {"max_tokens": -3}, {"alternatives": -1}])
def test_settings_that_mean_nothing_are_refused(chosen: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(chosen))):
        DecodeSettings(**chosen)  # type: ignore[arg-type]


# A draft source that breaks.


@pytest.mark.parametrize("verb", ["begin", "observe", "propose", "accept"])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_source_that_breaks_is_left_behind_with_its_reason(verb: str, after: int) -> None:
    text = [*PROMPT, *one_by_one(random_scores(SIZE, 2), GREEDY, PROMPT, 30)]
    source = ScriptedSource(text, breaks=verb, after=after)
    target = ScriptedModel(random_scores(SIZE, 2), letters(SIZE))
    reply = reply_of(target, source, max_tokens=30)
    assert reply.ids == text[7:]
    check_counts(reply)
    if verb == "begin" and after:
        return
    assert source.calls.count(verb) == after + 1
    assert reply.states[-1] == SpeculationState(False, f"It broke in {verb}."), "the reader is told"
    assert reply.stats.speculation is not None
    assert replace(reply.stats.speculation, chosen_lengths=()) == reply.states[-1], "and the record"
    assert (reply.stats.accepted_draft_tokens_count > 0) == (after > 0)


def test_states_are_told_when_they_change() -> None:
    draft = ScriptedModel(random_scores(SIZE, 2), letters(SIZE), context_length=15)
    source = DraftModel(draft, SIZE, Rule.COUPLED, lambda: False)
    reply = reply_of(ScriptedModel(random_scores(SIZE, 2), letters(SIZE)), source, max_tokens=20)
    assert [state.active for state in reply.states] == [True, False]
    assert "15 tokens" in reply.states[-1].reason
    assert reply_of(ScriptedModel(random_scores(SIZE, 2), letters(SIZE)), None, max_tokens=5).states == (
        SpeculationState(False, "No draft source is in use."),
    )


def test_the_verbs_come_in_their_order() -> None:
    source = ScriptedSource([*PROMPT, 4, 4, 4])
    target = ScriptedModel(reciting([4, 4, 5], len(PROMPT), SIZE), letters(SIZE), batch_limit=4)
    reply_of(target, source, max_tokens=3)
    assert source.calls == ["observe", "observe", "begin", "accept", "propose", "observe", "accept"]


# Times, by a clock that only evaluations move.


def test_tokens_held_back_count_in_the_time_they_took(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0

    def scores(text: tuple[int, ...]) -> Row:
        nonlocal seconds
        seconds += 2.0
        return reciting([0, 1, 0, 1, 0, 2], 1, SIZE)(text)

    monkeypatch.setattr(decode, "time", SimpleNamespace(perf_counter=lambda: seconds))
    # Everything looks like the stop string until the last token: the whole reply is shown at once.
    reply = reply_of(ScriptedModel(scores, letters(SIZE)), None, prompt=[5], max_tokens=6, stop=("ababab",))
    assert reply.text == "ababac"
    assert reply.stats.time_to_first_token_seconds == 2.0
    assert reply.stats.decode_seconds == 10.0
    assert reply.stats.tokens_per_second == 0.5
    assert [step.target_seconds for step in reply.steps] == [2.0] * 6


def test_a_cancel_before_the_first_token_claims_no_speed() -> None:
    reply = reply_of(ScriptedModel(random_scores(SIZE, 1), letters(SIZE)), None, cancelled=lambda: True)
    assert reply.finish is FinishReason.CANCELLED
    assert reply.steps == ()
    assert reply.stats.generated_tokens == 0
    assert reply.stats.time_to_first_token_seconds == 0.0
    assert reply.stats.prompt_tokens_per_second == 0.0
