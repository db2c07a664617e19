"""How often drafted tokens are usually accepted, by how the two models are related and by the kind of text.

A rate is that of one place: the probability that a drafted token is accepted, given that those before it were. Two
sources, and neither is much, which is why every rate here comes with a wide range:

- Published speed-ups: 405B + 3B 3.61x, 70B + 1B 2.86x and 70B + 8B 2.23x (TensorRT-LLM, H200); 32B + 0.5B 2.07x, 8B +
  1B 1.36x and 1.05x by prompt (LM Studio, 3090 Ti). With the costs of those models they ask for rates between about
  0.65 and 0.85 that hardly depend on the draft's size. With drafts of a fixed length that nobody tuned less was seen:
  14B + 0.5B 1.37x, 14B + 3B 1.25x (5060 Ti).
- Our own: a 135M model in F32 with its copies in Q4_1 and Q2_K (of which a fifth is Q3_K and the rest finer, since the
  rows do not suit it), six kinds of prompts, greedy and at T = 0.8 (`tests/benchmarks/bench_acceptance.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from forespeak.pairing.model_names import Kinship
from forespeak.pairing.model_shape import ModelShape, WeightFormat

KINDS = ("code", "prose", "rewrite", "json", "list", "translation")
"""The kinds of work that a prediction is for unless others are named; those of the suite of prompts."""


@dataclass(frozen=True, slots=True)
class UsualAcceptance:
    """Rates as log-odds: `middle`, and `spread` on either side, between which the truth lies four times in five."""

    middle: float
    spread: float

    def rate(self, kind: str, deviation: float = 0.0) -> float:
        """For a kind of text; `deviation` -1.0 and 1.0 are the ends of the range."""
        return _from_odds(self.middle + _KIND_SHIFTS.get(kind, 0.0) + deviation * self.spread)


_KIND_SHIFTS = {
    "code": 0.3,
    "json": 0.2,
    "rewrite": 0.5,
    "math": 0.2,
    "list": 0.1,
    "documents": 0.2,
    "chat": -0.2,
    "translation": -0.3,
    "cjk": -0.4,
    "prose": -0.55,
}
"""In log-odds, against the mean of KINDS."""

_REQUANTISED = {
    WeightFormat.F16: 0.99,
    WeightFormat.BITS_8: 0.985,
    WeightFormat.BITS_6: 0.98,
    WeightFormat.BITS_5: 0.97,
    WeightFormat.BITS_4: 0.965,
    WeightFormat.BITS_3: 0.78,
    WeightFormat.BITS_2: 0.65,
}
"""Of a target's own weights in a coarser format."""
_SAME_FORMAT = 0.995
_FAMILY, _BY_DOUBLING = 0.83, 0.015
"""A smaller model of the family, and what is lost with each halving of its size against the target's."""
_RELATED, _OTHER = 0.72, 0.55
_COARSE = {WeightFormat.BITS_3: 0.3, WeightFormat.BITS_2: 1.0}
"""What a coarse format takes from a small draft's log-odds."""


def usual_acceptance(kin: Kinship, target: ModelShape, draft: ModelShape) -> UsualAcceptance:
    """What to expect of a pair of which nothing is measured."""
    if kin is Kinship.SAME_WEIGHTS:
        if draft.fidelity.bits >= target.fidelity.bits:
            return UsualAcceptance(_odds(_SAME_FORMAT), 1.0)
        return UsualAcceptance(_odds(_REQUANTISED[draft.fidelity]), 0.6)
    if kin is Kinship.SAME_FAMILY:
        halvings = max(0.0, math.log2(target.parameters / draft.parameters))
        middle, spread = _odds(_FAMILY - _BY_DOUBLING * halvings), 0.8
    else:
        related = kin is Kinship.RELATED
        middle, spread = _odds(_RELATED if related else _OTHER), 0.9 if related else 1.0
    return UsualAcceptance(middle - _COARSE.get(draft.fidelity, 0.0), spread)


def known_acceptance(accepted: float, tested: float, usual: UsualAcceptance) -> UsualAcceptance:
    """The usual rate, corrected by tokens of this pair that were judged."""
    weight = 8.0
    rate = (accepted + weight * _from_odds(usual.middle)) / (tested + weight)
    rate = min(max(rate, 0.01), 0.995)
    # Four in five: 1.28 standard deviations of a count, in log-odds.
    counted = 1.28 / math.sqrt((tested + weight) * rate * (1.0 - rate))
    return UsualAcceptance(_odds(rate), min(usual.spread, max(0.15, counted)))


@dataclass(frozen=True, slots=True)
class LookupHabit:
    """What looking the text up finds: before which share of steps, and how often a place of what it found is right."""

    found: float
    right: float


_LOOKUP = {
    "code": LookupHabit(0.12, 0.70),
    "prose": LookupHabit(0.03, 0.50),
    "rewrite": LookupHabit(0.42, 0.95),
    "json": LookupHabit(0.10, 0.50),
    "list": LookupHabit(0.25, 0.58),
    "translation": LookupHabit(0.12, 0.70),
    "chat": LookupHabit(0.04, 0.50),
    "math": LookupHabit(0.12, 0.60),
    "cjk": LookupHabit(0.04, 0.50),
    "documents": LookupHabit(0.30, 0.85),
}
"""The first six as a chain of prompt lookup and ngram-mod had it with a 135M model that adapts how much it tests; the
others are placed among them."""
_OTHER_HABIT = LookupHabit(0.10, 0.60)


def lookup_habit(kind: str, deviation: float = 0.0) -> LookupHabit:
    """For a kind of text; `deviation` -1.0 and 1.0 are the ends of a range that holds the truth four times in five."""
    habit = _LOOKUP.get(kind, _OTHER_HABIT)
    return LookupHabit(
        _from_odds(_odds(habit.found) + 0.8 * deviation), _from_odds(_odds(habit.right) + 0.6 * deviation)
    )


def _odds(rate: float) -> float:
    return math.log(rate / (1.0 - rate))


def _from_odds(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))
