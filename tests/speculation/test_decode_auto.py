"""Auto drafting with everything on at once: whole drafts follow the target's distribution, under both rules.

Filters, penalties, DRY, bias, and a grammar that waits for thoughts which the reply may open by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from automaton import Automaton
from chi_square import chi_square_p
from exact_continuations import exact_continuations
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.constraint import GrammarConstraint, Mask
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.sampling import Distribution, Sampler, distribution
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Step
from scripted import ScriptedModel, blended, letters, random_scores

SIZE, END, TOKENS = 6, 5, 6
OPENER, CLOSER = (3,), (1,)
"""A "d" opens thoughts, and the next "b" closes them."""
STEPS = {0: {0: 1, 1: 2, 4: 0}, 1: {1: 2, 2: 0, 3: 1, 4: 2}, 2: {0: 1, 2: 2, 3: 0}}
COMPLETE = {0, 2}
PROMPT = (0, 1, 2, 0, 3, 1, 2, 4, 0, 1)
VOCABULARY = letters(SIZE, ends={END})
TARGET = random_scores(SIZE, 15, order=2, spread=1.5)
DRAFT = blended(TARGET, random_scores(SIZE, 16, order=2, spread=1.5), 0.7)
ALL_ON = SamplingSettings(
    temperature=1.1,
    top_k=4,
    top_p=0.97,
    min_p=0.03,
    repeat_penalty=1.15,
    frequency_penalty=0.1,
    presence_penalty=0.1,
    penalty_window=8,
    dry_multiplier=0.4,
    dry_base=1.3,
    dry_allowed_length=1,
    dry_breakers=((4,),),
    logit_bias=((3, 1.6), (2, 0.3), (END, -7.0)),
)
COSTS = Costs(((1, 0.020), (2, 0.0205), (5, 0.022), (9, 0.025), (17, 0.032)), 0.001)
UNLIKELY = 1e-3
RUNS = 1000


class Clocked(AdaptiveDraftLength):
    """Its steps take what they were said to cost: a test must not depend on the machine."""

    def __init__(self, costs: Costs, *, drops_tokens: bool) -> None:
        self._given = costs
        super().__init__(RunningCosts(costs), 8, drops_tokens=drops_tokens)

    def observe(self, step: Step) -> None:
        drafted = step.tested_count + len(step.ignored)
        super().observe(
            replace(
                step,
                draft_seconds=drafted * self._given.draft_token,
                target_seconds=self._given.target_seconds(1 + step.tested_count),
            )
        )


def allowed(text: Sequence[int]) -> list[bool]:
    """Which tokens may follow, worked out from the text alone."""
    words, opens = list(text), not text
    if text[:1] == OPENER:
        if CLOSER[0] not in text:
            return [True] * SIZE
        words = words[words.index(CLOSER[0]) + 1 :]
    state = 0
    for token in words:
        state = STEPS[state][token]
    return [
        token in STEPS[state] or (token == END and state in COMPLETE) or (opens and token == OPENER[0])
        for token in range(SIZE)
    ]


@cache
def exact() -> dict[tuple[int, ...], float]:
    """The target's own probability of every reply of TOKENS tokens."""

    def choices_behind(text: tuple[int, ...]) -> Distribution:
        history = (*PROMPT, *text)
        return distribution(TARGET(history), ALL_ON, history, np.array(allowed(text)))

    return exact_continuations(choices_behind, TOKENS, lambda token: token == END)


class Constraint(GrammarConstraint):
    def __init__(self) -> None:
        after, at_once = (Automaton(STEPS, COMPLETE, SIZE) for _ in range(2))
        super().__init__(after, VOCABULARY, b"b", b"d", at_once)


@dataclass
class Runs:
    """Replies with many seeds, and what drafting did for them. `lengths` counts drafts by how many were tested."""

    counts: Counter[tuple[int, ...]]
    lengths: Counter[int]
    accepted: Counter[int]
    dropped: int = 0
    thought: int = 0

    @property
    def p(self) -> float:
        return chi_square_p(self.counts, exact())


def runs(
    rule: Rule,
    *,
    costs: Costs = COSTS,
    drops_tokens: bool | None = None,
    constraint: type[Constraint] = Constraint,
    sampler: type[Sampler] = Sampler,
    count: int = RUNS,
) -> Runs:
    drops = rule is Rule.COUPLED if drops_tokens is None else drops_tokens
    controller = Clocked(costs, drops_tokens=drops)
    target, draft = ScriptedModel(TARGET, VOCABULARY), ScriptedModel(DRAFT, VOCABULARY)
    found = Runs(Counter(), Counter(), Counter())
    for seed in range(count):
        events = generate(
            target,
            DraftModel(draft, SIZE, rule, lambda: False, gate=controller),
            PROMPT,
            sampler(replace(ALL_ON, seed=seed), constraint()),
            controller,
            # One more than is counted: a draft is never cut short by the end of what is looked at.
            DecodeSettings(rule, max_tokens=TOKENS + 1),
        )
        steps = [event for event in events if isinstance(event, Step)]
        text = tuple(token.id for step in steps for token in step.emitted)
        found.counts[text[:TOKENS]] += 1
        found.thought += text[:1] == OPENER
        for step in steps[1:]:
            found.lengths[step.tested_count] += 1
            found.accepted[step.accepted_count] += 1
            found.dropped += bool(step.ignored) and len(step.emitted) > step.tested_count
    return found


@pytest.mark.parametrize("rule", Rule)
def test_whole_drafts_follow_the_targets_distribution(rule: Rule) -> None:
    found = runs(rule)
    assert sum(count for length, count in found.lengths.items() if length >= 3) > RUNS // 2, "drafts are several deep"
    assert len(found.lengths) >= 4, "their length is not always the same"
    assert sum(count for length, count in found.accepted.items() if length >= 2) > RUNS // 5
    assert RUNS // 10 < found.thought < RUNS * 9 // 10, "some replies think, others begin with the grammar"
    assert found.p > UNLIKELY


STEEP = Costs(((1, 0.020), (2, 0.028), (5, 0.050), (9, 0.080), (17, 0.140)), 0.0002)
"""Checking costs much more than drafting: a controller that may drop tokens will."""


def test_dropping_unlikely_samples_would_bias_the_rejection_rule() -> None:
    """The negative control of `drops_tokens`, and the same costs without it."""
    wrong = runs(Rule.REJECTION, costs=STEEP, drops_tokens=True, count=1000)
    assert wrong.dropped > 300
    assert wrong.p < 1e-7
    assert runs(Rule.REJECTION, costs=STEEP, count=1000).p > UNLIKELY


class ForgetsTheDraft(Sampler):
    """Penalties and DRY look at the text up to the draft, as if none of its tokens had been said."""

    def after(self, logits: NDArray[np.float32], tokens: Sequence[int], drafted: Sequence[int]) -> Distribution:
        allowed = None if self.constraint is None else self.constraint.allowed(drafted)
        return self.distribution(logits, tokens, allowed)


class ThinksOn(Constraint):
    """Takes a draft for thoughts until its end, if it begins in them: the closer within it is overlooked."""

    def allowed(self, drafted: Sequence[int]) -> Mask | None:
        mask = super().allowed(())
        return mask if mask is None else super().allowed(drafted)


@pytest.mark.parametrize("rule", Rule)
def test_penalties_that_forget_the_draft_fail(rule: Rule) -> None:
    assert runs(rule, sampler=ForgetsTheDraft, count=600).p < 1e-9


@pytest.mark.parametrize("rule", Rule)
def test_a_closer_overlooked_within_the_draft_fails(rule: Rule) -> None:
    """What then comes is forbidden, which the grammar notices at the latest when the text has it."""
    with pytest.raises(ValueError, match="not permitted"):
        runs(rule, constraint=ThinksOn, count=200)
