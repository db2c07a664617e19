"""Counts against examples worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forespeak.speculation.trace import (
    DraftedToken,
    GenerationStats,
    Origin,
    Source,
    SpeculationState,
    Step,
    StepCounter,
    Token,
    text_of,
)


def step(accepted: int, own: Origin | None, rejected: int = 0, ignored: int = 0) -> Step:
    emitted = [Token(0, "x", Origin.ACCEPTED, Source.PROMPT_LOOKUP)] * accepted
    if own is not None:
        emitted.append(Token(1, "y", own))
    return Step(
        index=0,
        emitted=tuple(emitted),
        rejected=(DraftedToken(2, "z"),) * rejected,
        ignored=(DraftedToken(3, "z"),) * ignored,
        draft_seconds=0.25,
        target_seconds=0.75,
    )


def summary(counter: StepCounter, prompt: int = 10, reused: int = 4) -> GenerationStats:
    return counter.summary(
        prompt_tokens=prompt,
        reused_prompt_tokens=reused,
        time_to_first_token_seconds=2.0,
        decode_seconds=5.0,
        speculation=SpeculationState(True, "why"),
    )


def counted(*steps: Step) -> StepCounter:
    counter = StepCounter()
    for index, one in enumerate(steps):
        counter.add(replace(one, index=index))
    return counter


BY_HAND = (
    step(0, Origin.TARGET),  # the prompt's own scores
    step(2, Origin.CORRECTED, rejected=2),  # 4 drafted: yes, yes, no, lost
    step(4, Origin.BONUS),  # 4 drafted, all accepted
    step(0, Origin.CORRECTED, rejected=3),  # 3 drafted, none accepted
    step(0, Origin.TARGET),  # no draft
    step(1, None, ignored=3),  # the end was inside: 1 accepted, 3 never tested
)


def test_counts_by_hand() -> None:
    stats = summary(counted(*BY_HAND))
    assert stats.generated_tokens == 1 + 3 + 5 + 1 + 1 + 1
    assert stats.verify_steps == 6
    assert stats.accepted_draft_tokens_count == 2 + 4 + 1
    assert stats.rejected_draft_tokens_count == 2 + 3
    assert stats.ignored_draft_tokens_count == 3
    assert stats.total_draft_tokens_count == 7 + 5 + 3
    assert stats.acceptance_rate == pytest.approx(7 / 12)
    # Steps that tested a draft emitted 3, 5, 1 and 1 tokens.
    assert stats.mean_acceptance_length == pytest.approx(10 / 4)
    # Position 1 was tested in four steps, 2 and 3 in three, 4 in two (4 of 4, and lost behind a rejection).
    assert stats.acceptance_rate_per_position == pytest.approx((3 / 4, 2 / 3, 1 / 3, 1 / 2))
    assert stats.draft_time_share == pytest.approx(0.25)


def test_rates_by_hand() -> None:
    stats = summary(counted(*BY_HAND))
    assert stats.prompt_tokens_per_second == pytest.approx(6 / 2)
    assert stats.tokens_per_second == pytest.approx(11 / 5), "the first token belongs to the prompt's time"


def test_without_a_draft_there_is_no_rate() -> None:
    stats = summary(counted(step(0, Origin.TARGET), step(0, Origin.TARGET)))
    assert stats.acceptance_rate is None
    assert stats.mean_acceptance_length is None
    assert stats.acceptance_rate_per_position == ()
    assert stats.total_draft_tokens_count == 0


def test_nothing_generated_yet() -> None:
    stats = StepCounter().summary(
        prompt_tokens=5,
        reused_prompt_tokens=5,
        time_to_first_token_seconds=0.0,
        decode_seconds=0.0,
        speculation=None,
    )
    assert stats.generated_tokens == 0
    assert stats.tokens_per_second == 0.0
    assert stats.prompt_tokens_per_second == 0.0


def test_a_step_knows_its_own_counts() -> None:
    assert [(s.accepted_count, s.tested_count) for s in BY_HAND] == [(0, 0), (2, 4), (4, 4), (0, 3), (0, 0), (1, 1)]


def test_the_text_of_steps_is_what_their_tokens_add() -> None:
    assert text_of(BY_HAND) == "y" + "xxy" + "xxxxy" + "y" + "y" + "x"


def test_the_labels_for_people() -> None:
    assert Source.DRAFT_MODEL.label == "draft model"
    assert Source.DRAFT_MODEL.uses_model
    assert not Source.PROMPT_LOOKUP.uses_model
