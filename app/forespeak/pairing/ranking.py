"""What a draft should bring: tokens per second with and without it, predicted before anything is loaded.

The prediction maximises what the adaptive controller maximises (`speculation.adaptive`): a draft of k tokens, each
accepted with probability a, yields 1 + a + ... + a^k tokens in t_target(k + 1) + k * t_draft seconds (Leviathan et al.,
arXiv 2211.17192, section 3.4, with a cost for each size of check); drafts may also end where the draft model grows
unsure. Costs come from `machine_speed`, acceptance from `usual_acceptance`. What the prompt takes is left out, and so
is a long context. A measurement of the pair replaces a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forespeak.pairing.machine_speed import ModelCosts
from forespeak.pairing.usual_acceptance import KINDS, UsualAcceptance, lookup_habit
from forespeak.speculation.costs import Costs

LONGEST_DRAFT = 24
LONGEST_LOOKUP = 48
_OWN_STEP, _OWN_TOKEN = 0.5e-3, 0.3e-3
"""Seconds of our own time for a step, and for each drafted token more."""
_PAUSED = 0.99
"""Of plain speed, what is left with a draft that is tried now and then and does not pay."""
_SURE, _UNSURE = 0.95, 0.45
"""How often tokens are accepted of which the draft is sure, and the others: with the first of those a draft ends."""


@dataclass(frozen=True, slots=True)
class Range:
    """A figure, and the ends of a range that should hold the truth four times in five."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class KindPrediction:
    """For one kind of text. `draft_length` 0: drafting pauses, since no length pays."""

    kind: str
    speed_up: float
    acceptance: float
    draft_length: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """Rates are tokens per second. `speed_up` is the geometric mean over `kinds`.

    `unpaused` is the speed-up if drafting never paused: it tells apart drafts that do not pay.
    """

    plain: Range
    speculative: Range
    speed_up: Range
    unpaused: float
    kinds: tuple[KindPrediction, ...]
    basis: tuple[str, ...] = ()

    @property
    def pays(self) -> bool:
        return self.speed_up.value > 1.0

    @property
    def is_sure(self) -> bool:
        """Whether even the pessimistic end, or not even the hopeful one, is a gain."""
        return self.speed_up.low > 1.0 or self.speed_up.high <= 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a test of the pair showed; a ratio is of paired runs. `measured_at` is an ISO time with its zone.

    `by_kind`: (kind of text, speed-up). `tokens`: how many the figures rest on.
    """

    plain: float
    speculative: float
    speed_up: Range
    acceptance: float | None
    tokens: int
    by_kind: tuple[tuple[str, float], ...]
    measured_at: str
    engine: str
    version: str


@dataclass(frozen=True, slots=True)
class _Deviation:
    """How far from the middle each uncertain thing is taken to be, in halves of its range."""

    acceptance: float = 0.0
    draft: float = 0.0
    check: float = 0.0


_MIDDLE = _Deviation()


def predict(
    target: ModelCosts, draft: ModelCosts, acceptance: UsualAcceptance, kinds: Sequence[str] = KINDS
) -> Prediction:
    """What a draft model should bring. Raises ValueError without kinds."""
    steps = _steps(target, LONGEST_DRAFT)

    def gains(deviation: _Deviation) -> list[_Gain]:
        check = _check(steps, deviation.check * target.spread)
        # Of both models' costs only the ratio matters, and what is wrong about the machine is wrong about both.
        factor = math.exp(deviation.draft * draft.spread)
        one, two = (factor * draft.seconds(tokens) for tokens in (1, 2))
        return [
            _best(acceptance.rate(kind, deviation.acceptance), check, one, two - one, LONGEST_DRAFT) for kind in kinds
        ]

    return _prediction(
        target,
        kinds,
        gains,
        (_Deviation(acceptance=1.0), _Deviation(draft=-1.0), _Deviation(check=-1.0)),
        (_basis("The target", target), _basis("The draft", draft)),
    )


def predict_lookup(target: ModelCosts, kinds: Sequence[str] = KINDS) -> Prediction:
    """What looking the next tokens up in the text should bring: it costs nothing but its place in the check."""
    steps = _steps(target, LONGEST_LOOKUP)

    def gains(deviation: _Deviation) -> list[_Gain]:
        check = _check(steps, deviation.check * target.spread)
        found = []
        for kind in kinds:
            habit = lookup_habit(kind, deviation.acceptance)
            found.append(_best(habit.right, check, 0.0, 0.0, LONGEST_LOOKUP, found=habit.found))
        return found

    return _prediction(
        target,
        kinds,
        gains,
        (_Deviation(acceptance=1.0), _Deviation(check=-1.0)),
        (_basis("The target", target),),
    )


@dataclass(frozen=True, slots=True)
class _Gain:
    """`speed_up` with pauses, `unpaused` without."""

    speed_up: float
    unpaused: float
    acceptance: float
    length: int


def _steps(target: ModelCosts, longest: int) -> list[float]:
    """Seconds of evaluations of 1, 2, ... `longest` + 1 tokens."""
    costs = Costs(target.curve)
    return [costs.target_seconds(tokens) for tokens in range(1, longest + 2)]


def _check(steps: Sequence[float], deviation: float) -> Callable[[int], float]:
    """Seconds of a step by its tokens. What a check costs more than a single token is what is known least."""
    plain, factor = steps[0], math.exp(deviation)
    table = [0.0, *(plain + _OWN_STEP + factor * (seconds - plain) for seconds in steps)]
    return table.__getitem__


def _best(
    accepted: float,
    check: Callable[[int], float],
    draft: float,
    catch_up: float,
    longest: int,
    *,
    found: float = 1.0,
) -> _Gain:
    """The length that promises most. `found`: the share of steps before which there is anything to draft."""
    plain = check(1)

    def speed_up(yielded: float, seconds: float) -> float:
        return (found * yielded + 1.0 - found) * plain / (found * seconds + (1.0 - found) * plain)

    def seconds(tokens: int, all_accepted: float) -> float:
        # A draft that was accepted as a whole has not read its own last token.
        return check(tokens + 1) + tokens * (draft + _OWN_TOKEN) + all_accepted * catch_up

    best, length, yielded, chance = 0.0, 1, 1.0, 1.0
    for tokens in range(1, longest + 1):
        chance *= accepted
        yielded += chance
        gain = speed_up(yielded, seconds(tokens, chance))
        if gain > best:
            best, length = gain, tokens
    if found == 1.0 and _UNSURE < accepted < _SURE:
        best, length = max((best, length), _by_confidence(accepted, speed_up, seconds, longest))
    paused = best <= _PAUSED
    return _Gain(max(best, _PAUSED), best, accepted, 0 if paused else length)


def _by_confidence(
    accepted: float, speed_up: Callable[[float, float], float], seconds: Callable[[int, float], float], longest: int
) -> tuple[float, int]:
    """(gain, mean length) of drafts that end with the first token of which the draft itself is not sure.

    Its confidence tells two kinds of tokens apart, which together are accepted as often as `accepted` says.
    """
    sure = (accepted - _UNSURE) / (_SURE - _UNSURE)
    best, length = 0.0, 1.0
    # Over the runs of sure tokens that an unsure one has ended: what they yield and take, and how long the drafts are.
    ended_yield = ended_seconds = ended_tokens = 0.0
    reached, yielded, chance = 1.0, 1.0, 1.0
    for tokens in range(1, longest + 1):
        last = chance * _UNSURE
        ended = reached * (1.0 - sure)
        ended_yield += ended * (yielded + last)
        ended_seconds += ended * seconds(tokens, last)
        ended_tokens += ended * tokens
        reached, chance = reached * sure, chance * _SURE
        yielded += chance
        gain = speed_up(ended_yield + reached * yielded, ended_seconds + reached * seconds(tokens, chance))
        if gain > best:
            best, length = gain, ended_tokens + reached * tokens
    return best, max(1, round(length))


def _prediction(
    target: ModelCosts,
    kinds: Sequence[str],
    gains: Callable[[_Deviation], list[_Gain]],
    hopes: Sequence[_Deviation],
    basis: tuple[str, ...],
) -> Prediction:
    if not kinds:
        raise ValueError("a prediction is for some kind of text")

    def mean(found: list[_Gain]) -> float:
        return sum(math.log(gain.speed_up) for gain in found) / len(kinds)

    middle = gains(_MIDDLE)
    value = mean(middle)
    ups = [mean(gains(hope)) - value for hope in hopes]
    downs = [value - mean(gains(_Deviation(-hope.acceptance, -hope.draft, -hope.check))) for hope in hopes]
    # Independent of each other, so their squares add up.
    up, down = math.hypot(*ups), math.hypot(*downs)
    plain = 1.0 / (target.seconds(1) + _OWN_STEP)
    speed_up = Range(math.exp(value), math.exp(value - down), math.exp(value + up))
    fast = plain * speed_up.value
    return Prediction(
        Range(plain, plain * math.exp(-target.spread), plain * math.exp(target.spread)),
        Range(fast, fast * math.exp(-math.hypot(down, target.spread)), fast * math.exp(math.hypot(up, target.spread))),
        speed_up,
        math.exp(sum(math.log(gain.unpaused) for gain in middle) / len(kinds)),
        tuple(
            KindPrediction(kind, gain.speed_up, gain.acceptance, gain.length)
            for kind, gain in zip(kinds, middle, strict=True)
        ),
        basis,
    )


def _basis(who: str, costs: ModelCosts) -> str:
    return f"{who}'s speed: {costs.basis.value}."


def rank_key(prediction: Prediction | None, measurement: Measurement | None = None) -> tuple[float, float]:
    """For sorting, greatest first: by the measured speed-up if there is one, else by the predicted one.

    Drafts that do not pay are told apart by what they would lose if drafting did not pause.
    """
    if measurement is not None:
        return measurement.speed_up.value, 0.0
    if prediction is None:
        return 0.0, 0.0
    return prediction.speed_up.value, prediction.unpaused
