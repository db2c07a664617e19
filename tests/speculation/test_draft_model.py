"""The draft model's cache: kept from draft to draft, cut where the target disagreed, never overrun."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from forespeak.speculation.draft import DraftSourceError
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.language_model import EvaluationError, Logits
from forespeak.speculation.sampling import Sampler, Stream
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source
from scripted import Row, ScriptedModel, letters, random_scores

SIZE = 8
SAMPLER = Sampler(SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=3))
PROMPT = [1, 2, 3, 4]


def counting(prefix: tuple[int, ...]) -> Row:
    """After token t comes t + 1, almost surely."""
    row = np.full(SIZE, -20.0, dtype=np.float32)
    row[(prefix[-1] + 1) % SIZE] = 20.0
    return row


def model(context_length: int = 1000, batch_limit: int = 1000) -> ScriptedModel:
    return ScriptedModel(counting, letters(SIZE), context_length=context_length, batch_limit=batch_limit)


def drafting(draft: ScriptedModel, rule: Rule = Rule.COUPLED, target_size: int = SIZE) -> DraftModel:
    return DraftModel(draft, target_size, rule, lambda: False)


def starts(draft: ScriptedModel) -> list[tuple[int, ...]]:
    return [call.tokens for call in draft.evaluated]


def test_it_drafts_what_its_model_would_say() -> None:
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    proposal = source.propose(3)
    assert proposal.tokens == (5, 6, 7)
    assert proposal.source is Source.DRAFT_MODEL
    assert len(proposal.distributions) == 3
    assert proposal.probability(0) == pytest.approx(1.0)
    # The prompt but its last token without scores, then one token at a time; the last drafted one is not evaluated.
    assert starts(draft) == [(1, 2, 3), (4,), (5,), (6,)]
    assert [call.outputs for call in draft.evaluated] == [0, 1, 1, 1]


def test_accepted_tokens_are_never_evaluated_again() -> None:
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    source.propose(3)
    source.accept([5, 6, 7, 0])
    assert draft.tokens == (1, 2, 3, 4, 5, 6)
    draft.evaluated.clear()
    # All were accepted: the last drafted token has not been seen, nor has the bonus. Both go in at once.
    assert source.propose(2).tokens == (1, 2)
    assert starts(draft) == [(7, 0), (1,)]


def test_rejected_tokens_are_cut_off() -> None:
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    source.propose(4)
    source.accept([5, 2])
    assert draft.tokens == (1, 2, 3, 4, 5)
    draft.evaluated.clear()
    assert source.propose(2).tokens == (3, 4)
    assert starts(draft) == [(2,), (3,)]


def test_all_rejected() -> None:
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    source.propose(4)
    source.accept([0])
    assert draft.tokens == (1, 2, 3, 4)
    assert source.propose(1).tokens == (1,)


def test_plain_steps_between_drafts_are_caught_up_with() -> None:
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    for token in (7, 3, 2):
        source.accept([token])
    draft.evaluated.clear()
    assert source.propose(1).tokens == (3,)
    assert starts(draft) == [(4, 7, 3, 2)]


def test_a_draft_of_which_only_the_beginning_was_used() -> None:
    """Whoever wraps a source may shorten its drafts; then everything emitted may be in the cache already."""
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    source.propose(4)
    source.accept([5, 6])
    assert source.propose(2).tokens == (7, 0)


def test_a_draft_that_was_not_used_at_all() -> None:
    """Another source's guesses may have been taken instead: only what the cache and the text share stays."""
    draft = model()
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    source.propose(4)
    source.accept([5, 1, 2, 3])
    assert draft.tokens == (1, 2, 3, 4, 5)
    assert source.propose(2).tokens == (4, 5)


def test_the_next_turn_evaluates_only_what_is_new() -> None:
    draft = model()
    drafting(draft).begin(PROMPT, SAMPLER)
    draft.evaluated.clear()
    drafting(draft).begin([*PROMPT, 5, 6], SAMPLER)
    assert starts(draft) == [(4, 5)]
    draft.evaluated.clear()
    drafting(draft).begin([1, 2, 7, 7], SAMPLER)
    assert starts(draft) == [(7,)]
    assert draft.tokens == (1, 2, 7)


def test_the_same_prompt_again_keeps_one_token_to_evaluate() -> None:
    draft = model()
    for _ in range(2):
        source = drafting(draft)
        source.begin(PROMPT, SAMPLER)
        assert source.propose(2).tokens == (5, 6)


def test_a_prompt_of_one_token() -> None:
    source = drafting(model())
    source.begin([6], SAMPLER)
    assert source.propose(2).tokens == (7, 0)


def test_it_stops_drafting_at_the_end_of_the_reply() -> None:
    draft = ScriptedModel(counting, letters(SIZE, ends=[6]))
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    assert source.propose(5).tokens == (5, 6)


@pytest.mark.parametrize("rule", Rule)
def test_the_noise_is_the_targets_own_only_under_the_coupled_rule(rule: Rule) -> None:
    scores = random_scores(SIZE, 1)
    source = drafting(ScriptedModel(scores, letters(SIZE)), rule)
    source.begin(PROMPT, SAMPLER)
    drafted = source.propose(20).tokens
    stream = Stream.TARGET if rule is Rule.COUPLED else Stream.DRAFT
    text = list(PROMPT)
    for token in drafted:
        choices = SAMPLER.distribution(scores(tuple(text)), [])
        assert token == SAMPLER.choose(choices, len(text), stream)
        text.append(token)


def test_ids_that_only_the_draft_knows_are_not_proposed() -> None:
    source = drafting(model(), target_size=6)
    source.begin(PROMPT, SAMPLER)
    proposal = source.propose(4)
    # Behind 5 comes 6 in the draft's own words, but the target has only 0 to 5.
    assert len(proposal.tokens) == 4
    assert all(token < 6 for token in proposal.tokens)
    assert all(int(choices.ids.max()) < 6 for choices in proposal.distributions)


@pytest.mark.parametrize("when", ["prompt", "reply"])
def test_a_token_that_only_the_target_knows_ends_drafting_with_a_reason(when: str) -> None:
    draft = model()
    source = drafting(draft, target_size=20)
    source.begin([1, 2, 15, 3] if when == "prompt" else PROMPT, SAMPLER)
    if when == "reply":
        assert source.blocked is None
        assert source.propose(2).tokens == (5, 6)
        source.accept([5, 15])
    assert "15" in (source.blocked or "")
    assert source.propose(3).tokens == ()
    source.accept([1])
    assert source.propose(3).tokens == ()
    # A chat without that token drafts again.
    source.begin(PROMPT, SAMPLER)
    assert source.blocked is None
    assert source.propose(2).tokens == (5, 6)


@pytest.mark.parametrize("context_length", range(5, 12))
def test_a_small_context_is_filled_and_not_overrun(context_length: int) -> None:
    draft = model(context_length=context_length)
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    text = list(PROMPT)
    while source.blocked is None:
        proposal = source.propose(3)
        assert 1 <= len(proposal.tokens) <= 3
        text += [*proposal.tokens, 0]
        source.accept([*proposal.tokens, 0])
    assert len(text) >= context_length
    assert f" {context_length} tokens" in (source.blocked or "")
    assert source.propose(3).tokens == ()
    source.accept([1, 2, 3])
    assert source.propose(3).tokens == ()


def test_a_prompt_that_does_not_fit_blocks_at_once() -> None:
    draft = model(context_length=4)
    source = drafting(draft)
    source.begin([1, 2, 3, 4, 5], SAMPLER)
    assert source.blocked is not None
    assert draft.evaluated == []


def test_batches_stay_within_the_limit() -> None:
    draft = model(batch_limit=3)
    source = drafting(draft)
    source.begin([1] * 10, SAMPLER)
    assert [len(tokens) for tokens in starts(draft)] == [3, 3, 3]
    source.accept([2] * 7)
    draft.evaluated.clear()
    assert source.propose(1).tokens == (3,)
    assert [len(tokens) for tokens in starts(draft)] == [3, 3, 1, 1]


def test_a_cancel_interrupts_the_prompt_between_batches() -> None:
    draft = model(batch_limit=3)
    cancelled = False

    def after_two() -> bool:
        return cancelled or len(draft.evaluated) >= 2

    source = DraftModel(draft, SIZE, Rule.COUPLED, after_two)
    source.begin([1] * 10, SAMPLER)
    assert draft.tokens == (1,) * 6
    assert source.propose(1).tokens == ()


def test_a_model_that_cannot_roll_back_starts_over() -> None:
    draft = ScriptedModel(counting, letters(SIZE), can_roll_back=False)
    source = drafting(draft)
    source.begin(PROMPT, SAMPLER)
    source.propose(3)
    source.accept([5, 0])
    assert not draft.tokens
    assert source.propose(2).tokens == (1, 2)
    assert draft.tokens == (1, 2, 3, 4, 5, 0, 1)


def test_without_a_beginning_nothing_is_proposed() -> None:
    assert drafting(model()).propose(3).tokens == ()


class Broken(ScriptedModel):
    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        raise EvaluationError("out of memory")


def test_an_engine_that_fails_is_a_draft_source_that_breaks() -> None:
    draft = Broken(counting, letters(SIZE))
    source = drafting(draft)
    with pytest.raises(DraftSourceError, match="out of memory"):
        source.begin(PROMPT, SAMPLER)
    with pytest.raises(DraftSourceError, match="out of memory"):
        source.propose(2)


def always_five(prefix: tuple[int, ...]) -> Row:
    row = np.full(SIZE, -20.0, dtype=np.float32)
    row[5] = 20.0
    return row


class Reader:
    """A gate that lets a draft model read no more than `most` tokens, and draft on as long as the loop wants."""

    def __init__(self, most: int = 99) -> None:
        self.most = most
        self.asked: list[int] = []
        self.told: list[float] = []
        """The draft's confidences in the tokens of its newest draft."""

    def may_read(self, unread: int) -> int:
        self.asked.append(unread)
        return min(unread, self.most)

    def worth_another(self, confidences: Sequence[float]) -> bool:
        return True

    def worth_testing(self, confidences: Sequence[float]) -> int:
        self.told = list(confidences)
        return len(confidences)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rule", Rule)
def test_its_confidence_is_its_lead_where_it_draws_with_the_target_and_else_a_probability(
    rule: Rule, temperature: float
) -> None:
    scores, gate = random_scores(SIZE, 1), Reader()
    sampler = Sampler(SamplingSettings(temperature=temperature, top_k=0, top_p=1.0, min_p=0.0, seed=3))
    source = DraftModel(ScriptedModel(scores, letters(SIZE)), SIZE, rule, lambda: False, gate=gate)
    source.begin(PROMPT, sampler)
    draft = source.propose(20)
    assert len(gate.told) == 20
    for place, (token, confidence) in enumerate(zip(draft.tokens, gate.told, strict=True)):
        choices = draft.distributions[place]
        if rule is Rule.REJECTION and temperature > 0.0:
            assert confidence == choices.probability(token)
        else:
            best, second = sorted(sampler.scores(choices, len(PROMPT) + place), reverse=True)[:2]
            assert confidence == pytest.approx(1.0 - math.exp(second - best), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_its_confidence_tells_which_tokens_will_be_accepted(temperature: float) -> None:
    """Of a right guess and a wrong one the right one has more of it, more often than it has the higher probability.

    Behind the same text the draft's scores are the target's with some noise.
    """
    # Behind so many tokens a greedy text does not go round in circles.
    target, noise, gate = random_scores(SIZE, 1, order=20), random_scores(SIZE, 2, order=20), Reader()
    sampler = Sampler(SamplingSettings(temperature=temperature, top_k=0, top_p=1.0, min_p=0.0, seed=3))
    model = ScriptedModel(lambda text: target(text) + 0.2 * noise(text), letters(SIZE))
    source = DraftModel(model, SIZE, Rule.COUPLED, lambda: False, gate=gate)
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    text = list(PROMPT)
    source.begin(text, sampler)
    for _ in range(400):
        draft = source.propose(1)
        own = sampler.choose(sampler.distribution(target(tuple(text)), []), len(text))
        found[own == draft.tokens[0]].append((gate.told[0], draft.probability(0) or 0.0))
        text.append(own)
        source.accept([own])
    right, wrong = np.array(found[True]), np.array(found[False])
    assert len(right) > 4 * len(wrong) > 100
    by_confidence, by_probability = (float(np.mean(right[:, kind][:, np.newaxis] > wrong[:, kind])) for kind in (0, 1))
    assert by_confidence > 0.8
    assert by_confidence > by_probability + (0.2 if temperature > 0.0 else 0.0)


def test_what_is_too_much_to_read_is_left_out_and_the_cache_begins_later() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 6, 7]
    model = ScriptedModel(always_five, letters(SIZE), context_length=12)
    gate = Reader(3)
    source = DraftModel(model, SIZE, Rule.COUPLED, lambda: False, gate=gate, reads_prompt=False)
    source.begin(text, SAMPLER)
    assert len(source.propose(4).tokens) == 4
    assert gate.asked == [8]
    assert list(model.tokens) == [6, 7, 6, 7, 5, 5, 5], "three, the newest, and its own but the last"
    source.accept([5, 5, 2])
    assert list(model.tokens) == [6, 7, 6, 7, 5, 5]
    assert len(source.propose(2).tokens) == 2
    assert gate.asked == [8, 0]
    assert list(model.tokens) == [6, 7, 6, 7, 5, 5, 2, 5]
    # A new beginning reads from the start again.
    gate.most = 99
    source.begin(text, SAMPLER)
    source.propose(1)
    assert list(model.tokens) == text


def test_a_cache_that_begins_later_has_more_room() -> None:
    model = ScriptedModel(always_five, letters(SIZE), context_length=6)
    source = DraftModel(model, SIZE, Rule.COUPLED, lambda: False, gate=Reader(2), reads_prompt=False)
    source.begin([1, 2, 3, 4], SAMPLER)
    assert len(source.propose(9).tokens) == 4, "three are read, so three places and one behind them"
    source.accept([5] * 4 + [1])
    assert source.blocked is not None
