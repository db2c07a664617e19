"""How much of what was looked up in the text is worth a test.

A looked-up continuation costs nothing but its place in the target's batch, and what it would have been worth shows in
the next tokens whether it was tested or not. So every continuation that is found teaches, without any exploring, and
each one is judged by itself: by how much of the text before it agrees with the place where it was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forespeak.speculation.adaptive import milliseconds
from forespeak.speculation.costs import RunningCosts
from forespeak.speculation.draft import EMPTY_DRAFT, Draft
from forespeak.speculation.trace import SpeculationState, Step, StepCosts

_SUPPORTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Lower ends of the ranges of support that are told apart."""
_PRIORS = tuple(1.0 - 1.5 / (1.0 + support) ** 0.75 for support in _SUPPORTS)
"""Below what all texts together show (1 - 1.5 / (1 + support)): those are mostly the ones that repeat themselves, and
what is lost on the others is not got back."""
_PRIOR_WEIGHT = 6.0
_MEMORY = 48.0
"""Tokens that an estimate remembers, per range."""
_FIRST_TRUST = 0.4
"""How far what was learned of other texts is believed of a first token at the beginning of a reply."""
_BELIEF = 3.0
_FOLLOW = 0.05
_STATE_EVERY = 8
_IDLE_STEPS = 32


class AdaptiveLookup:
    """The judge of one model-free source, for as long as its pair is loaded."""

    def __init__(self, costs: RunningCosts) -> None:
        self._costs = costs
        self._begun = _Estimates()
        """Of the first tokens of continuations: whether the text goes on as it did there is decided here."""
        self._going = _Estimates()
        """Of those behind a right one."""
        self.begin()
        self._pending = EMPTY_DRAFT
        self._steps = 0
        self._since_tested = 0
        self._found = 0.0
        """Share of steps before which a continuation was found, a running average."""
        self._length = 0.0
        """Tokens of its drafts that were tested, a running average."""
        self._drafts = 0
        self._told: SpeculationState | None = None
        self._told_at = 0

    def begin(self) -> None:
        """A reply begins: whether it will copy nobody knows yet."""
        self._beginning = _Trust(_FIRST_TRUST, newest=0.06, most=1.1)
        self._continuing = _Trust(1.0, newest=0.05, most=1.02)

    def consider(self, draft: Draft) -> None:
        """This is what the source proposes for the coming step, tested or not."""
        self._pending = draft

    def worth_testing(self, draft: Draft, rate: float, catch_up: float = 0.0, doubt: float = 1.0) -> tuple[int, float]:
        """How many leading tokens to test, and what that is worth, in tokens, against a plain step; 0, 0.0 for none.

        `rate`: tokens per second that time is worth elsewhere. `catch_up`: seconds that another source will need for
        each token that is emitted without it. `doubt`: a factor on the chance that the draft begins right, for what
        others propose in its place.
        """
        price = 1.0 - rate * catch_up
        keep, best, gain, chance = 0, 0.0, 0.0, doubt
        for place, support in enumerate(draft.support):
            chance *= self.chance(support) if place == 0 else self._chance_to_go_on(support)
            gain += chance
            value = price * gain - rate * (self._costs.target(place + 2) - self._costs.target(1))
            if value > best:
                keep, best = place + 1, value
        return keep, best

    def chance(self, support: int) -> float:
        """The probability that a continuation begins right, if `support` tokens before it agree."""
        return min(0.99, self._begun.estimate(_range_of(support)) * self._beginning.factor)

    def _chance_to_go_on(self, support: int) -> float:
        return min(0.995, self._going.estimate(_range_of(support)) * self._continuing.factor)

    def learn(self, step: Step) -> None:
        """From a step, whoever drafted for it: what was proposed before it is compared with what came."""
        draft, self._pending = self._pending, EMPTY_DRAFT
        self._steps += 1
        self._found += _FOLLOW * (bool(draft.tokens) - self._found)
        for place, token in enumerate(step.emitted[: len(draft.tokens)]):
            right, range_ = token.id == draft.tokens[place], _range_of(draft.support[place])
            estimates, trust = (self._going, self._continuing) if place else (self._begun, self._beginning)
            trust.see(estimates.estimate(range_), right)
            estimates.count(range_, right)
            if not right:
                break
        self._since_tested += 1
        if step.tested_count and step.source is draft.source and draft.source is not None:
            self._since_tested = 0
            self._drafts += 1
            self._length += max(_FOLLOW, 1.0 / self._drafts) * (step.tested_count - self._length)

    @property
    def state(self) -> SpeculationState:
        """Told anew now and then."""
        resting = self._since_tested >= _IDLE_STEPS
        due = self._steps % _STATE_EVERY == 0 and self._steps != self._told_at
        if self._told is None or self._told.active is resting or due:
            self._told, self._told_at = self._describe(resting=resting), self._steps
        return self._told

    def learned(self) -> dict[str, object]:
        """What was seen, as JSON values."""
        return {"begun": self._begun.learned(), "going": self._going.learned()}

    def recall(self, learned: dict[str, object]) -> None:
        """Go on from there. Raises ValueError, KeyError or TypeError for what was not `learned`."""
        begun, going = _Estimates(), _Estimates()
        begun.recall(learned["begun"])
        going.recall(learned["going"])
        self._begun, self._going = begun, going

    def _describe(self, *, resting: bool) -> SpeculationState:
        plain, length = self._costs.target(1), max(1, round(self._length))
        check = self._costs.target(length + 1)
        costs = StepCosts(plain, check, 0.0)
        found = f"a continuation was found before {self._found * 100:.0f} % of the last steps"
        if resting and self._found < 0.02:
            return SpeculationState(False, "Paused: the text does not repeat anything yet.", 0, costs)
        if resting:
            likely = f"{self.chance(2) * 100:.0f} %"
            more = milliseconds(self._costs.target(2) - plain)
            words = f"Paused: {found}, but its tokens are right in {likely} only, and a check costs {more} more."
            return SpeculationState(False, words, 0, costs)
        words = f"A check of {length + 1} tokens costs {milliseconds(check)}, a plain step {milliseconds(plain)}"
        return SpeculationState(True, f"{words}; {found}.", length, costs)


class _Trust:
    """How the last few tokens of this reply fared against what was to be expected of them.

    One reply copies, the next one does not, and the ranges one by one would notice too slowly. `first`: the factor to
    begin with, which counts for as much as `_BELIEF` tokens; `newest`: weight of the newest token later on; `most`: the
    factor at most.
    """

    def __init__(self, first: float, *, newest: float, most: float) -> None:
        self._expected, self._came = 1.0, first
        self._newest = newest
        self._most = most
        self._seen = 0

    @property
    def factor(self) -> float:
        return min(self._most, self._came / self._expected)

    def see(self, expected: float, right: bool) -> None:
        self._seen += 1
        weight = max(self._newest, 1.0 / (self._seen + _BELIEF))
        self._expected += weight * (expected - self._expected)
        self._came += weight * (right - self._came)


class _Estimates:
    """Shares of right tokens by how much of the text before them agreed."""

    def __init__(self) -> None:
        self._right = [0.0] * len(_SUPPORTS)
        self._seen = [0.0] * len(_SUPPORTS)

    def estimate(self, place: int) -> float:
        prior = _PRIORS[place]
        if place:
            # Where little agreement means much, more means no less.
            prior = max(prior, 0.5 * prior + 0.5 * self._weighed(place - 1, _PRIORS[place - 1]))
        return self._weighed(place, prior)

    def count(self, place: int, right: bool) -> None:
        if self._seen[place] >= _MEMORY:
            self._seen[place] *= 0.5
            self._right[place] *= 0.5
        self._seen[place] += 1.0
        self._right[place] += right

    def learned(self) -> list[list[float]]:
        return [list(self._right), list(self._seen)]

    def recall(self, learned: object) -> None:
        if not isinstance(learned, list):
            raise TypeError("no counts")
        right, seen = map(_counts, learned)
        if any(r > s for r, s in zip(right, seen, strict=True)):
            raise ValueError("more tokens were right than seen")
        self._right, self._seen = right, seen

    def _weighed(self, place: int, prior: float) -> float:
        return (self._right[place] + _PRIOR_WEIGHT * prior) / (self._seen[place] + _PRIOR_WEIGHT)


def trimmed(draft: Draft, length: int) -> Draft:
    """The draft's leading tokens; looked-up ones that are not worth a test were never drafted in earnest."""
    if length == len(draft.tokens):
        return draft
    return replace(draft, tokens=draft.tokens[:length], support=draft.support[:length]) if length else EMPTY_DRAFT


def _range_of(support: int) -> int:
    place = len(_SUPPORTS) - 1
    while place and support < _SUPPORTS[place]:
        place -= 1
    return place


def _counts(value: object) -> list[float]:
    if not isinstance(value, Sequence) or len(value) != len(_SUPPORTS):
        raise TypeError("no counts")
    counts = [float(count) for count in value]
    if any(not 0.0 <= count <= _MEMORY for count in counts):
        raise ValueError("counts out of range")
    return counts
