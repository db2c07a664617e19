"""A chain of draft sources in which each is judged by itself: the next draft is the one that promises most.

Those that look the text up are asked first and for nothing: a proposal costs next to no time, and what it would have
been worth shows in the tokens that follow. The draft model, which does cost time, is asked only where no continuation
was found that promises more than what drafting with the model brings on the average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.adaptive_lookup import AdaptiveLookup, trimmed
from forespeak.speculation.chain import Chain
from forespeak.speculation.costs import RunningCosts
from forespeak.speculation.draft import EMPTY_DRAFT, Draft, DraftSource
from forespeak.speculation.trace import Source, SpeculationState, Step

_FOLLOW = 0.01
"""Weight of the newest step in the running averages: a copied paragraph must not count for what is to be expected."""
_FIRST_STEPS = 20
"""For how many plain steps the averages stand at the beginning of a reply."""


class AdaptiveChain(Chain):
    """The source of one generation's drafts; `controller` is the DraftController that goes with it.

    Every member but the draft model has its judge in `lookups`; `model` is the draft model's, if it is a member. The
    judges live as long as the pair. A draft has at most `longest` tokens.
    """

    def __init__(
        self,
        members: Mapping[Source, DraftSource],
        lookups: Mapping[Source, AdaptiveLookup],
        model: AdaptiveDraftLength | None,
        costs: RunningCosts,
        longest: int,
    ) -> None:
        super().__init__(members)
        self._lookups = {source: lookups[source] for source in members if not source.uses_model}
        for judge in self._lookups.values():
            judge.begin()
        self._model = model
        self._costs = costs
        self._longest = longest
        self._tokens_mean = 1.0
        self._seconds_mean = costs.target(1)

    @property
    def _rate(self) -> float:
        """Tokens per second lately, whoever drafted."""
        return self._tokens_mean / self._seconds_mean

    def propose(self, limit: int) -> Draft:
        drafting = self._model is not None and self._model.active and Source.DRAFT_MODEL not in self.obstacles
        rate = max(self._rate, self._costs.plain_rate)
        best, most, catch_up = EMPTY_DRAFT, 0.0, 0.0
        if self._model is not None and drafting:
            self._model.elsewhere = self._rate
            rate, catch_up = self._model.rate, self._costs.draft_catch_up
            # What it emits itself it need not read later.
            most = max(self._model.worth + rate * catch_up, 0.0)
        found = self._look_up(min(limit, self._longest))
        doubt = _doubt(found)
        for judge, draft in found:
            length, worth = judge.worth_testing(draft, rate, catch_up, doubt)
            if length and worth > most:
                best, most = trimmed(draft, length), worth
        if best.tokens or self._model is None:
            return best
        allowed = min(limit, self._model.limit())
        return self.ask(Source.DRAFT_MODEL, allowed) if allowed > 0 else EMPTY_DRAFT

    def _look_up(self, limit: int) -> list[tuple[AdaptiveLookup, Draft]]:
        """The continuations that were found, each with its judge."""
        found = []
        for source, judge in self._lookups.items():
            draft = self.ask(source, limit)
            judge.consider(draft)
            if draft.tokens:
                found.append((judge, draft))
        return found

    @property
    def controller(self) -> ChainDraftLength:
        return ChainDraftLength(self)

    # What the controller does

    @property
    def longest(self) -> int:
        return self._longest

    def learn(self, step: Step) -> None:
        """From a step, whoever drafted for it."""
        self._costs.observe(step)
        if step.index:
            seconds = step.draft_seconds + step.target_seconds
            follow = max(_FOLLOW, 1.0 / (step.index + _FIRST_STEPS))
            self._tokens_mean += follow * (len(step.emitted) - self._tokens_mean)
            self._seconds_mean += follow * (seconds - self._seconds_mean)
        if self._model is not None:
            self._model.learn(step)
        if step.index:
            for judge in self._lookups.values():
                judge.learn(step)

    @property
    def state(self) -> SpeculationState:
        """Of the member that is at work; where all rest, each with its reason."""
        obstacles = self.obstacles
        states = {
            source: SpeculationState(False, obstacles[source]) if source in obstacles else self._state_of(source)
            for source in self.sources
        }
        if len(states) == 1:
            return next(iter(states.values()))
        working = [state for state in states.values() if state.active]
        main = max(working, key=lambda state: state.draft_length, default=next(iter(states.values())))
        words = " ".join(f"{_capital(source.label)}: {_uncapital(state.reason)}" for source, state in states.items())
        return SpeculationState(bool(working), words, main.draft_length if working else 0, main.costs)

    def _state_of(self, source: Source) -> SpeculationState:
        if source.uses_model:
            assert self._model is not None
            return self._model.state
        return self._lookups[source].state


class ChainDraftLength:
    """A DraftController that leaves the decision to an AdaptiveChain, which knows what was found."""

    def __init__(self, chain: AdaptiveChain) -> None:
        self._chain = chain

    @property
    def state(self) -> SpeculationState:
        return self._chain.state

    def next_length(self) -> int:
        return self._chain.longest

    def observe(self, step: Step) -> None:
        self._chain.learn(step)


def _doubt(found: Sequence[tuple[AdaptiveLookup, Draft]]) -> float:
    """How much less sure each may be where they begin differently: they cannot all be right."""
    if len(found) < 2:
        return 1.0
    chances: dict[int, float] = {}
    for judge, draft in found:
        first = draft.tokens[0]
        chances[first] = max(chances.get(first, 0.0), judge.chance(draft.support[0]))
    return 1.0 / max(1.0, sum(chances.values()))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _uncapital(words: str) -> str:
    return words[:1].lower() + words[1:]
