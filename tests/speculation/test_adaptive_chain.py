"""Chains against simulated machines: real lookups in made-up texts, a draft model as good as we say, measured costs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.adaptive_chain import AdaptiveChain
from forespeak.speculation.adaptive_lookup import AdaptiveLookup
from forespeak.speculation.chain import Chain
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.draft import Draft, DraftSource, Evaluation
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.ngram_cache import NgramCache
from forespeak.speculation.sampling import Distribution, Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Origin, Source, Step, Token
from speculation.played_step import played_draft

LONGEST = 32
MACHINES = {
    "F32+Q4_1": Costs(((1, 0.033), (2, 0.043), (5, 0.045), (9, 0.056), (17, 0.080)), 0.009, 0.003),
    "Q8_0+Q2_K": Costs(((1, 0.015), (2, 0.026), (5, 0.035), (9, 0.054), (17, 0.090)), 0.008, 0.003),
    "Q4_1+Q4_1": Costs(((1, 0.009), (2, 0.016), (5, 0.025), (9, 0.040), (17, 0.070)), 0.009, 0.003),
    "GPU 8B+1B": Costs(((1, 0.020), (2, 0.0205), (5, 0.021), (9, 0.022), (17, 0.024)), 0.002, 0.0001),
}


def text_of(copied: float, length: int, seed: int) -> list[int]:
    """Words, of which now and then a run is copied from before; `copied` is the share of tokens in such runs."""
    generator = random.Random(seed)
    # A few frequent words, as in any language: most short matches mean nothing.
    text = [min(int(generator.paretovariate(0.6)), 3000) for _ in range(200)]
    while len(text) < length:
        if generator.random() < copied / (20 - 19 * copied):
            start = generator.randrange(len(text) - 40)
            text += text[start : start + generator.randrange(10, 40)]
        else:
            text.append(min(int(generator.paretovariate(0.6)), 3000))
    return text[:length]


class Oracle:
    """A draft model that knows the text and is right with probability `quality`; its confidence says when it is."""

    def __init__(self, text: Sequence[int], quality: float, gate: AdaptiveDraftLength | None, seed: int) -> None:
        self._text = text
        self._quality = quality
        self._gate = gate
        self._generator = random.Random(seed)
        self._at = 0
        self._unread = 0
        self.read = 0
        """Tokens read beyond the newest before the last draft."""
        self.blocked = None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._at = len(tokens)

    def observe(self, evaluation: Evaluation) -> None: ...

    def propose(self, limit: int) -> Draft:
        self.read = self._unread if self._gate is None else self._gate.may_read(self._unread)
        tokens: list[int] = []
        confidences: list[float] = []
        while len(tokens) < limit:
            right = self._generator.random() < self._quality
            truth = self._text[self._at + len(tokens)] if self._at + len(tokens) < len(self._text) else 0
            tokens.append(truth if right else -1)
            confidences.append(self._generator.uniform(0.8, 1.0) if right else self._generator.uniform(0.1, 0.9))
            if self._gate is not None and not self._gate.worth_another(confidences):
                break
        keep = len(tokens) if self._gate is None else self._gate.worth_testing(confidences)
        choices = tuple(_of(token, q) for token, q in zip(tokens, confidences, strict=True))
        return Draft(tuple(tokens[:keep]), Source.DRAFT_MODEL, choices, tuple(tokens[keep:]))

    def accept(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)
        self._unread += len(tokens)


def _of(token: int, q: float) -> Distribution:
    return Distribution(np.array([token, -2]), np.log(np.array([q, 1.0 - q])))


class Run:
    """Plays a text through a source at a machine's costs."""

    def __init__(self, costs: Costs, text: Sequence[int], prompt: int) -> None:
        self.costs = costs
        self.text = text
        self.prompt = prompt

    def rate(self, source: DraftSource | None, longest: int, oracle: Oracle | None = None) -> float:
        at, index, seconds = self.prompt, 0, 0.0
        if source is not None:
            source.begin(self.text[:at], Sampler(SamplingSettings()))
        while at < len(self.text) - LONGEST - 1:
            index += 1
            draft = Draft() if source is None else source.propose(longest)
            truth = self.text[at : at + len(draft.tokens)]
            accepted = 0
            while accepted < len(draft.tokens) and draft.tokens[accepted] == truth[accepted]:
                accepted += 1
            emitted = self.text[at : at + accepted + 1]
            step = played_draft(index, draft, emitted, self.costs, read=0 if oracle is None else oracle.read)
            if draft.source is Source.DRAFT_MODEL:
                assert oracle is not None
                oracle._unread = int(accepted == len(draft.drafted))
            seconds += step.draft_seconds + step.target_seconds
            at += len(emitted)
            if source is not None:
                source.accept(emitted)
            if isinstance(source, AdaptiveChain):
                source.learn(step)
        return (at - self.prompt) / seconds


def adaptive(machine: Costs, *sources: Source) -> AdaptiveChain:
    costs = RunningCosts(machine)
    members: dict[Source, DraftSource] = {
        source: NgramCache() if source is Source.NGRAM_CACHE else PromptLookup()
        for source in sources or (Source.PROMPT_LOOKUP,)
    }
    judges = {source: AdaptiveLookup(costs) for source in members}
    return AdaptiveChain(members, judges, None, costs, LONGEST)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("copied", [0.0, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("source", [Source.PROMPT_LOOKUP, Source.NGRAM_CACHE], ids=lambda source: source.value)
def test_a_lookup_is_never_slower_than_none_and_as_good_as_the_best_fixed_length(
    machine: str, copied: float, source: Source
) -> None:
    costs = MACHINES[machine]
    run = Run(costs, text_of(copied, 1500, 1), 300)
    plain = run.rate(None, 0)
    fixed = {
        length: run.rate(PromptLookup() if source is Source.PROMPT_LOOKUP else NgramCache(), length)
        for length in (1, 2, 4, 8, 16, 32)
    }
    rate = run.rate(adaptive(costs, source), LONGEST)
    assert rate >= 0.98 * plain
    # A reply has to show that it copies before long drafts are tested.
    assert rate >= (0.97 if copied < 0.9 else 0.96) * max(fixed.values())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("copied", [0.0, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("quality", [0.1, 0.6, 0.9])
def test_a_chain_is_as_good_as_its_best_member(machine: str, copied: float, quality: float) -> None:
    measured = MACHINES[machine]
    run = Run(measured, text_of(copied, 1500, 2), 300)
    lookup_alone = run.rate(adaptive(measured), LONGEST)

    def with_model(*sources: Source) -> float:
        costs = RunningCosts(measured)
        judge = AdaptiveDraftLength(costs, 16)
        oracle = Oracle(run.text, quality, judge, 5)
        members: dict[Source, DraftSource] = {Source.PROMPT_LOOKUP: PromptLookup(), Source.DRAFT_MODEL: oracle}
        chosen = {source: members[source] for source in sources}
        lookups = {Source.PROMPT_LOOKUP: AdaptiveLookup(costs)}
        return run.rate(AdaptiveChain(chosen, lookups, judge, costs, LONGEST), LONGEST, oracle)

    model_alone = with_model(Source.DRAFT_MODEL)
    both = with_model(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    assert both >= 0.96 * run.rate(None, 0)
    # Where nearly all is copied, what the model needs to catch up is lost.
    assert both >= (0.92 if copied < 0.9 else 0.75) * max(lookup_alone, model_alone)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("copied", [0.0, 0.3, 0.7, 0.95])
def test_two_lookups_are_as_good_as_the_better_one(machine: str, copied: float) -> None:
    costs = MACHINES[machine]
    run = Run(costs, text_of(copied, 1500, 3), 300)
    alone = [run.rate(adaptive(costs, source), LONGEST) for source in (Source.PROMPT_LOOKUP, Source.NGRAM_CACHE)]
    both = run.rate(adaptive(costs, Source.PROMPT_LOOKUP, Source.NGRAM_CACHE), LONGEST)
    assert both >= 0.98 * run.rate(None, 0)
    # Whom to believe where they contradict each other has to be learned.
    assert both >= 0.94 * max(alone)


class Says(PromptLookup):
    """Always proposes the same token."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self.token = token

    def propose(self, limit: int) -> Draft:
        return Draft((self.token,), Source.PROMPT_LOOKUP, support=(32,))


def test_lookups_that_contradict_each_other_are_believed_less() -> None:
    # A check of two tokens pays where the drafted one is right in more than 0.6 of all cases.
    costs = RunningCosts(Costs(((1, 0.010), (2, 0.016), (17, 0.1))))
    first, second = Says(7), Says(7)
    members: dict[Source, DraftSource] = {Source.PROMPT_LOOKUP: first, Source.NGRAM_CACHE: second}
    judges = {source: AdaptiveLookup(costs) for source in members}
    chain = AdaptiveChain(members, judges, None, costs, LONGEST)
    chain.begin([1, 2, 3], Sampler(SamplingSettings()))
    for index in range(1, 60):
        chain.propose(LONGEST)
        token = Token(7 if index % 4 else 8, "x", Origin.TARGET)
        chain.accept([token.id])
        # Never faster than plain steps: what is drafted here is not the matter.
        chain.learn(Step(index, (token,), target_seconds=0.010))
    assert chain.propose(LONGEST).tokens == (7,)
    second.token = 9
    assert chain.propose(LONGEST).tokens == ()


def test_the_state_names_each_source_and_its_reason() -> None:
    costs = RunningCosts(Costs(((1, 0.01), (2, 0.03), (17, 0.4)), 0.02))
    judge = AdaptiveDraftLength(costs, 16)
    members: dict[Source, DraftSource] = {
        Source.PROMPT_LOOKUP: PromptLookup(),
        Source.DRAFT_MODEL: Oracle([], 0.5, judge, 1),
    }
    chain = AdaptiveChain(members, {Source.PROMPT_LOOKUP: AdaptiveLookup(costs)}, judge, costs, LONGEST)
    assert "Draft model: paused: a draft of 1 token costs 40 ms" in chain.controller.state.reason
    assert chain.controller.next_length() == LONGEST
    chain.begin([1, 2, 3], Sampler(SamplingSettings()))
    for index in range(1, 41):
        chain.propose(LONGEST)
        token = Token(100 + index, "x", Origin.TARGET)
        chain.accept([token.id])
        chain.controller.observe(Step(index, (token,), target_seconds=0.01))
    state = chain.controller.state
    assert not state.active
    assert state.reason.startswith("Prompt lookup: paused: the text does not repeat anything yet.")
    assert isinstance(chain, Chain)
