"""The two rules: one place at a time, exactly; then the words that whole generations write, by statistics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from chi_square import chi_square_p
from exact_continuations import exact_continuations
from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft import Draft, DraftSource, Evaluation
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.events import Finished
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Distribution, Sampler, Stream, distribution
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source, Step
from forespeak.speculation.verify import residual, verify, verify_by_rejection, verify_coupled
from scripted import Scores, ScriptedModel, blended, letters, random_scores

UNLIKELY = 1e-4
"""Fixed seeds: a test that passes once passes always, and this is how lucky it needed to be."""
IMPOSSIBLE = 1e-9
"""What a biased sampler must fall below."""


def of(shares: dict[int, float]) -> Distribution:
    return Distribution(np.array(list(shares)), np.log(np.array(list(shares.values()))))


def plain(seed: int = 0) -> Sampler:
    return Sampler(SamplingSettings(seed=seed))


# One place, exactly.


def test_the_residual_by_hand() -> None:
    rest = residual(of({7: 0.5, 2: 0.3, 5: 0.2}), of({5: 0.6, 7: 0.1, 9: 0.3}))
    # max(p - q, 0): 0.4 for 7, 0.3 for 2, nothing for 5; together 0.7.
    assert {int(i): float(np.exp(p)) for i, p in zip(rest.ids, rest.log_probabilities, strict=True)} == pytest.approx(
        {7: 4 / 7, 2: 3 / 7}
    )


def test_the_residual_of_equals_is_the_target() -> None:
    target = of({0: 0.25, 1: 0.75})
    assert residual(target, of({1: 0.75, 0: 0.25})) is target


@pytest.mark.parametrize("seed", range(50))
def test_accept_with_p_over_q_else_draw_the_residual(seed: int) -> None:
    p, q = of({0: 0.2, 1: 0.5, 2: 0.3}), of({0: 0.7, 1: 0.2, 2: 0.1})
    sampler = plain(seed=seed)
    verdict = verify_by_rejection(Draft((0,), Source.DRAFT_MODEL, (q,)), lambda place: p, sampler, position=11)
    if sampler.uniform(11, Stream.ACCEPTANCE) < 0.2 / 0.7:
        assert (verdict.accepted, verdict.token) == (1, sampler.choose(p, 12, Stream.TARGET))
        assert len(verdict.distributions) == 2
    else:
        recovered = sampler.choose(of({1: 0.3 / 0.5, 2: 0.2 / 0.5}), 11, Stream.RECOVERY)
        assert (verdict.accepted, verdict.token) == (0, recovered)
        assert verdict.distributions == (p,)


@pytest.mark.parametrize("seed", range(20))
def test_what_the_target_favours_at_least_as_much_as_the_draft_is_always_accepted(seed: int) -> None:
    p = of({0: 0.6, 1: 0.4})
    for q in (p, of({0: 0.5, 1: 0.5})):
        assert verify_by_rejection(Draft((0,), None, (q,)), lambda place: p, plain(seed=seed), 0).accepted == 1


def test_what_the_target_excludes_is_always_rejected() -> None:
    p = of({0: 0.6, 1: 0.4})
    for seed in range(20):
        for draft in (Draft((3,), None, (of({3: 0.9, 0: 0.1}),)), Draft((3,))):
            verdict = verify_by_rejection(draft, lambda place: p, plain(seed=seed), 0)
            assert verdict.accepted == 0
            assert verdict.token in {0, 1}


def test_a_rejected_guess_is_never_drawn_again() -> None:
    p = of({0: 0.5, 1: 0.3, 2: 0.2})
    for seed in range(200):
        verdict = verify_by_rejection(Draft((0,)), lambda place: p, plain(seed=seed), 0)
        assert verdict.accepted or verdict.token != 0


@pytest.mark.parametrize("seed", range(20))
def test_coupled_accepts_exactly_what_the_target_chooses(seed: int) -> None:
    p = of({0: 0.4, 1: 0.3, 2: 0.3})
    sampler = plain(seed=seed)
    own = [sampler.choose(p, 5 + place) for place in range(5)]
    verdict = verify_coupled(Draft(tuple(own[:4])), lambda place: p, sampler, 5)
    assert (verdict.accepted, verdict.token, len(verdict.distributions)) == (4, own[4], 5)
    wrong = [own[0], own[1], (own[2] + 1) % 3, own[3]]
    verdict = verify_coupled(Draft(tuple(wrong)), lambda place: p, sampler, 5)
    assert (verdict.accepted, verdict.token, len(verdict.distributions)) == (2, own[2], 3)


@pytest.mark.parametrize("rule", Rule)
def test_places_are_asked_in_order_and_not_past_a_rejection(rule: Rule) -> None:
    asked: list[int] = []

    def target_at(place: int) -> Distribution:
        asked.append(place)
        return of({place: 1.0})

    verdict = verify(rule, Draft((0, 1, 9, 3)), target_at, plain(), 0)
    assert (verdict.accepted, verdict.token) == (2, 2)
    assert asked == [0, 1, 2]


@pytest.mark.parametrize("rule", Rule)
def test_at_temperature_zero_both_rules_match_the_best_token(rule: Rule) -> None:
    sampler = Sampler(SamplingSettings(temperature=0.0))
    best = sampler.distribution(np.array([0.0, 2.0, 1.9], dtype=np.float32), [])
    for drafted, accepted in ((1, 1), (2, 0)):
        verdict = verify(rule, Draft((drafted,), None, (best,)), lambda place: best, sampler, 0)
        assert (verdict.accepted, verdict.token) == (accepted, 1)


# Whole generations, by statistics: the first, second and third new token over many seeds, against the exact joint
# distribution by enumeration. The vocabulary is tiny and repeats, so prompt lookup has guesses in most steps.

SIZE = 4
PROMPT = [0, 1, 2, 0, 1, 3, 2, 0, 1]
RUNS = 1100
TARGET = random_scores(SIZE, 5, order=2, spread=1.2)
DRAFT = blended(TARGET, random_scores(SIZE, 6, order=2, spread=1.5), 0.5)
PLAIN = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
SETTINGS = {
    "plain": PLAIN,
    "hot": replace(PLAIN, temperature=1.7),
    "top-k": replace(PLAIN, temperature=0.8, top_k=3),
    "top-p": replace(PLAIN, top_p=0.85),
    "min-p": replace(PLAIN, min_p=0.2),
    "penalties": replace(PLAIN, repeat_penalty=1.6, frequency_penalty=0.2, presence_penalty=0.1, penalty_window=6),
    "bias and DRY": replace(
        PLAIN,
        logit_bias=((3, -0.7), (0, 0.6)),
        dry_multiplier=0.7,
        dry_base=1.4,
        dry_allowed_length=1,
        dry_penalty_last_n=9,
        dry_breakers=((3,),),
    ),
}


def exact(scores: Scores, chosen: SamplingSettings, length: int = 3) -> dict[tuple[int, ...], float]:
    return exact_continuations(
        lambda text: distribution(scores((*PROMPT, *text)), chosen, [*PROMPT, *text]),
        length,
    )


def draft_model(rule: Rule) -> DraftSource:
    return DraftModel(ScriptedModel(DRAFT, letters(SIZE)), SIZE, rule, lambda: False)


def words(sampler: Sampler, rule: Rule, source: DraftSource, length: int = 3) -> Iterator[Step]:
    target = ScriptedModel(TARGET, letters(SIZE))
    chosen = DecodeSettings(rule=rule, max_tokens=5)
    for event in generate(target, source, PROMPT, sampler, FixedDraftLength(length), chosen):
        if isinstance(event, Step):
            yield event
        if isinstance(event, Finished):
            assert event.stats.generated_tokens == 5


def p_values(counts: Counter[tuple[int, ...]], joint: dict[tuple[int, ...], float]) -> dict[str, float]:
    """For the three tokens together, and for each on its own: fewer cells see some errors more sharply."""
    values = {"joint": chi_square_p(counts, joint)}
    for place, name in enumerate(("first", "second", "third")):
        single: Counter[int] = Counter()
        shares: dict[int, float] = {}
        for text, count in counts.items():
            single[text[place]] += count
        for text, share in joint.items():
            shares[text[place]] = shares.get(text[place], 0.0) + share
        values[name] = chi_square_p(single, shares)
    return values


Writer = Callable[[int], Iterator[Step]]
"""From a seed to the steps of a generation."""


def counted(writer: Writer) -> tuple[Counter[tuple[int, ...]], int, int]:
    """The first three tokens of RUNS generations; how many drafted tokens were accepted, and how many rejected."""
    counts: Counter[tuple[int, ...]] = Counter()
    accepted = rejected = 0
    for seed in range(RUNS):
        steps = list(writer(seed))
        counts[tuple(token.id for step in steps for token in step.emitted)[:3]] += 1
        accepted += sum(step.accepted_count for step in steps)
        rejected += sum(len(step.rejected) for step in steps)
    return counts, accepted, rejected


@pytest.mark.parametrize(
    ("rule", "source", "name"),
    [
        *((Rule.REJECTION, "draft model", name) for name in SETTINGS),
        *((Rule.REJECTION, "prompt lookup", name) for name in SETTINGS),
        *((Rule.COUPLED, "draft model", name) for name in ("plain", "top-p", "penalties", "bias and DRY")),
    ],
)
def test_the_words_follow_the_targets_distribution(rule: Rule, source: str, name: str) -> None:
    def writer(seed: int) -> Iterator[Step]:
        drafts = draft_model(rule) if source == "draft model" else PromptLookup()
        return words(Sampler(replace(SETTINGS[name], seed=seed)), rule, drafts)

    counts, accepted, rejected = counted(writer)
    assert min(accepted, rejected) > RUNS // 5, "both ways through the rule must be taken often"
    values = p_values(counts, exact(TARGET, SETTINGS[name]))
    assert min(values.values()) > UNLIKELY, values


# Negative controls: the traps that others fell into must fail the same test, or it proves nothing.


class OneNoise(Sampler):
    """Draft, acceptance and recovery share the target's noise."""

    def scores(self, choices: Distribution, position: int, stream: Stream = Stream.TARGET) -> NDArray[np.float64]:
        return Sampler.scores(self, choices, position, Stream.TARGET)

    def uniform(self, position: int, stream: Stream) -> float:
        return Sampler.uniform(self, position, Stream.TARGET)


class Meddling:
    """A draft model whose drafts are changed on their way out."""

    def __init__(self, change: Callable[[Draft], Draft]) -> None:
        self._honest = draft_model(Rule.REJECTION)
        self._change = change

    @property
    def blocked(self) -> str | None:
        return self._honest.blocked

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._honest.begin(tokens, sampler)

    def observe(self, evaluation: Evaluation) -> None:
        self._honest.observe(evaluation)

    def propose(self, limit: int) -> Draft:
        return self._change(self._honest.propose(limit))

    def accept(self, tokens: Sequence[int]) -> None:
        self._honest.accept(tokens)


def unfiltered(draft: Draft) -> Draft:
    """The q of the test is not the q that was sampled from: flattened, as if the temperature had been forgotten."""
    flat = tuple(
        Distribution(choices.ids, np.full(choices.ids.size, -math.log(choices.ids.size)))
        for choices in draft.distributions
    )
    return Draft(draft.tokens, draft.source, flat)


def picky(draft: Draft) -> Draft:
    """Samples that look unlikely are dropped."""
    length = 0
    while length < len(draft.tokens) and (draft.probability(length) or 0.0) >= 0.3:
        length += 1
    return Draft(draft.tokens[:length], draft.source, draft.distributions[:length])


@pytest.mark.parametrize("fault", ["one noise", "another q", "unlikely samples dropped"])
def test_a_biased_sampler_fails(fault: str) -> None:
    def writer(seed: int) -> Iterator[Step]:
        chosen = replace(PLAIN, seed=seed)
        if fault == "one noise":
            return words(OneNoise(chosen), Rule.REJECTION, draft_model(Rule.REJECTION))
        return words(Sampler(chosen), Rule.REJECTION, Meddling(unfiltered if fault == "another q" else picky))

    counts, _, _ = counted(writer)
    values = p_values(counts, exact(TARGET, PLAIN))
    assert min(values.values()) < IMPOSSIBLE, values
    assert values["first"] > UNLIKELY, "the first token is the prompt's own: no draft can bias it"
