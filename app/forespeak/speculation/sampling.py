"""From a row of logits to a token: bias, grammar, penalties, filters, temperature, and a choice by keyed noise.

Everything here is a pure function of (settings, logits, tokens so far, what a grammar allows, seed, position). There is
no random state to keep, clone or roll back, so a position's token does not depend on how many positions were evaluated
at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forespeak.speculation.constraint import Constraint, Mask, NoTokenLeftError
from forespeak.speculation.peaks import Columns, Peaks
from forespeak.speculation.penalties import Dry, GrowingDry
from forespeak.speculation.settings import SamplingSettings

NEGLIGIBLE_NATS = 30.0
"""Tokens this far below the best one (e^-30, 1e-13) are left out before anything is sorted. Even 250,000 of them
together weigh less than a float32 logit can express."""

_SPARE = 4
"""Under a grammar, so many times as many tokens as top-k keeps are looked at before all that it allows are."""

SHOWN_NATS = 12.0
"""At temperature 0, where probabilities are only shown, tokens below e^-12 (six in a million) of the best one are left
out, and what they weigh with them. In replies of SmolLM2 135M that is 0.1 % together, 0.4 % at most, and 0.5 %, at most
1.5 %, in prose that is not its own; to count them all would take longer than everything else that a row is put to."""


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The tokens that survived the filters and their log-probabilities, which add up to one."""

    ids: NDArray[np.int64]
    log_probabilities: NDArray[np.float64]

    def probability(self, token: int) -> float:
        found = (self.ids == token).nonzero()[0]
        return math.exp(self.log_probabilities[found[0]]) if found.size else 0.0

    def top(self, count: int) -> list[tuple[int, float]]:
        """The `count` most probable tokens with their probabilities, best first."""
        count = min(count, self.ids.size)
        if count == 0:
            return []
        best = np.argpartition(-self.log_probabilities, count - 1)[:count]
        best = best[np.argsort(-self.log_probabilities[best], kind="stable")]
        return [(int(self.ids[i]), float(np.exp(self.log_probabilities[i]))) for i in best]


class GreedyDistribution(Distribution):
    """What there is at temperature 0: `token`, the most probable one, is taken whatever the noise.

    The probabilities are for showing: those at temperature 1 and without filters, among the tokens within SHOWN_NATS
    of the best one (and others that were looked at beside them), so too high by the share of the rest, most often a
    thousandth of themselves. Ids and log-probabilities are worked out when somebody asks, which is seldom.
    """

    __slots__ = ("_best", "_columns", "_sum", "token")
    token: int
    _best: np.float32
    _columns: Columns
    _sum: float

    def __init__(self, columns: Columns) -> None:
        # Of several best ones the first counts, that with the lowest id: strips follow each other in the vocabulary.
        strip, column = divmod(int(columns.scores.argmax()), columns.places.size)
        best = columns.scores[strip, column]
        hold = object.__setattr__
        hold(self, "token", strip * columns.width + int(columns.places[column]))
        hold(self, "_columns", columns)
        hold(self, "_best", best)
        hold(self, "_sum", float(np.add.reduce(np.exp(columns.scores - best), axis=None)))

    @property
    def lead(self) -> float:
        """By how many nats it is ahead of the next best token; infinity where none is within SHOWN_NATS."""
        return _lead(self._columns.scores)

    @property
    def ids(self) -> NDArray[np.int64]:
        begins = np.arange(self._columns.scores.shape[0])[:, np.newaxis] * self._columns.width
        return (begins + self._columns.places).ravel()

    @property
    def log_probabilities(self) -> NDArray[np.float64]:
        # One after the other: beside a huge score the logarithm would be lost.
        return (self._columns.scores.ravel().astype(np.float64) - self._best) - math.log(self._sum)

    def probability(self, token: int) -> float:
        if token == self.token:
            return 1.0 / self._sum
        places, scores, width = self._columns
        strip, place = divmod(token, width)
        column = int(places.searchsorted(place))
        if strip >= scores.shape[0] or column == places.size or places[column] != place:
            return 0.0
        return self._share(scores[strip, column])

    def top(self, count: int) -> list[tuple[int, float]]:
        places, scores, width = self._columns
        highest: NDArray[np.float32] = np.maximum.reduce(scores, axis=0)
        if 0 < count < places.size:
            # As many tokens as wanted are that high already, one in each of these columns.
            high = (highest >= np.partition(highest, -count)[-count]).nonzero()[0]
            places, scores = places.take(high), scores.take(high, axis=1)
        best = np.argsort(-scores, axis=None, kind="stable")[:count]
        strips, columns = np.divmod(best, places.size)
        tokens = (strips * width + places.take(columns)).tolist()
        return [(token, self._share(score)) for token, score in zip(tokens, scores.take(best), strict=True)]

    def _share(self, score: np.float32) -> float:
        return math.exp(score - self._best) / self._sum


def distribution(
    logits: NDArray[np.float32], settings: SamplingSettings, recent: Sequence[int], allowed: Mask | None = None
) -> Distribution:
    """What a token is chosen from, given one row of logits, shape (vocabulary size,).

    `recent` are the tokens before the place, the newest last; only the windows of the penalties matter. Tokens that
    are not `allowed` have no part. Raises NoTokenLeftError if none is left.
    """
    return Sampler(settings).distribution(logits, recent, allowed)


def filtered(logits: NDArray[np.float32], settings: SamplingSettings, allowed: Mask | None = None) -> Distribution:
    """The filters and the temperature, after everything that changes single scores.

    Raises NoTokenLeftError if no token with a score above -inf is `allowed`.
    """
    if settings.temperature == 0.0:
        if allowed is None:
            peaks = Peaks(logits)
            return GreedyDistribution(peaks.columns_reaching(peaks.best - SHOWN_NATS))
        ids, row = _contenders(logits, SHOWN_NATS, 0, allowed)
        return GreedyDistribution(Columns(ids, row[np.newaxis], logits.size))
    ids, row = _contenders(logits, NEGLIGIBLE_NATS * max(1.0, settings.temperature), settings.top_k, allowed)
    scores = row.astype(np.float64)
    best = float(scores.max())
    if 0 < settings.top_k < ids.size:
        # Ties with the k-th stay in: membership must not depend on the order in which a sort met them.
        keep = scores >= np.partition(scores, -settings.top_k)[-settings.top_k]
        ids, scores = ids[keep], scores[keep]
    if settings.top_p < 1.0:
        order = np.argsort(-scores, kind="stable")
        mass = np.cumsum(np.exp(_log_softmax(scores[order])))
        order = order[: int(np.searchsorted(mass, settings.top_p)) + 1]
        ids, scores = ids[order], scores[order]
    if settings.min_p > 0.0:
        keep = scores >= best + math.log(settings.min_p)
        ids, scores = ids[keep], scores[keep]
    # A temperature near zero may send the differences to -inf: a probability of zero, and meant so.
    with np.errstate(over="ignore"):
        return Distribution(ids, _log_softmax((scores - best) / settings.temperature))


def _contenders(
    logits: NDArray[np.float32], nats: float, top_k: int, allowed: Mask | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids, ascending, and scores of the tokens within `nats` of the best one, less many that top-k would drop anyway.

    Under a mask only the allowed ones count: the high ones are looked up in it, and where too few of those are allowed,
    all that are.
    """
    peaks = Peaks(logits)
    height = peaks.best - nats
    if top_k > 0:
        height = max(height, peaks.height_of(top_k if allowed is None else _SPARE * top_k))
    ids, scores = peaks.reaching(height)
    if allowed is None:
        return ids, scores
    # The draft's rows may be shorter than the target's mask, not longer.
    permitted = allowed[ids]
    ids, scores = ids[permitted], scores[permitted]
    if ids.size < max(top_k, 1):
        ids = allowed[: logits.size].nonzero()[0]
        scores = logits[ids]
    elif top_k == 0 and (lower := float(scores.max()) - nats) < height:
        ids, scores = peaks.reaching(lower)
        permitted = allowed[ids]
        ids, scores = ids[permitted], scores[permitted]
    if ids.size == 0 or np.isneginf(scores.max()):
        raise NoTokenLeftError("nothing that could follow is left")
    inside = scores >= float(scores.max()) - nats
    return ids[inside], scores[inside]


def _penalise(logits: NDArray[np.float32], settings: SamplingSettings, recent: Sequence[int]) -> None:
    window = np.asarray(recent[-settings.penalty_window :], dtype=np.int64)
    seen, counts = np.unique(window, return_counts=True)
    inside = seen < logits.size
    seen, counts = seen[inside], counts[inside]
    scores = logits[seen]
    scores = np.where(scores > 0, scores / settings.repeat_penalty, scores * settings.repeat_penalty)
    logits[seen] = scores - counts * settings.frequency_penalty - settings.presence_penalty


def _lead(scores: NDArray[np.floating[Any]]) -> float:
    if scores.size < 2:
        return math.inf
    second, best = np.partition(scores, -2, axis=None)[-2:]
    return float(best) - float(second)


def _log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = scores - np.maximum.reduce(scores)
    normalised: NDArray[np.float64] = shifted - np.log(np.add.reduce(np.exp(shifted)))
    return normalised


class Stream(IntEnum):
    """Independent noises for one seed. Only the equality rule may share the target's with its draft."""

    TARGET = 1
    DRAFT = 2
    ACCEPTANCE = 3
    RECOVERY = 4


_U64 = np.uint64
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def _mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with full avalanche."""
    h = (h ^ (h >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> _U64(27))) * _U64(0x94D049BB133111EB)
    return h ^ (h >> _U64(31))


def _mix_one(h: int) -> int:
    """The same for a single number."""
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB & _MASK
    return h ^ (h >> 31)


def uniform_noise(seed: int, stream: Stream, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Uniform numbers strictly between 0 and 1, one per id: a counter-based hash of the four arguments."""
    # Python's whole numbers: on a single one NumPy takes ten times as long.
    key = _mix_one((seed + int(stream) * _GOLDEN) & _MASK)
    key = _mix_one((key + (position + 1) * _GOLDEN) & _MASK)
    bits = _mix(_mix(ids.astype(np.uint64) * _U64(_GOLDEN) + _U64(key)) ^ _U64(key))
    # 52 bits: with one more, the half would round the largest number up to 1.
    return ((bits >> _U64(12)).astype(np.float64) + 0.5) * 2.0**-52


@dataclass(frozen=True, slots=True)
class Sampler:
    """The settings with their seed, as the loop, the rules and the draft sources use them.

    A token is argmax(log p + g) with g standard Gumbel noise (the Gumbel-max trick, Gumbel 1954), keyed by
    (seed, stream, position, token id) and computed for the surviving tokens only.
    """

    settings: SamplingSettings
    constraint: Constraint | None = None
    """What this one generation is held to. It moves with the text: the loop tells it what was emitted."""
    _dry: tuple[Dry, GrowingDry] | None = field(init=False, repr=False, compare=False, default=None)
    _bias: tuple[NDArray[np.int64], NDArray[np.float32]] | None = field(
        init=False, repr=False, compare=False, default=None
    )
    _banned: frozenset[int] = field(init=False, repr=False, compare=False, default=frozenset())
    _adjusts: bool = field(init=False, repr=False, compare=False, default=False)

    def __post_init__(self) -> None:
        settings = self.settings
        object.__setattr__(self, "_adjusts", settings.adjusts)
        if settings.repels:
            dry = Dry(
                settings.dry_multiplier,
                settings.dry_base,
                settings.dry_allowed_length,
                settings.dry_penalty_last_n,
                settings.dry_breakers,
            )
            object.__setattr__(self, "_dry", (dry, GrowingDry(dry)))
        if settings.logit_bias:
            ids, values = zip(*settings.logit_bias, strict=True)
            bias = (np.array(ids, dtype=np.int64), np.array(values, dtype=np.float32))
            object.__setattr__(self, "_bias", bias)
            object.__setattr__(self, "_banned", frozenset(np.compress(np.isneginf(bias[1]), bias[0]).tolist()))

    def after(self, logits: NDArray[np.float32], tokens: Sequence[int], drafted: Sequence[int]) -> Distribution:
        """What follows the text `tokens` and the draft so far, given the scores there.

        A list given as `tokens` must only grow from call to call: so DRY can do without reading all of it every time.
        Raises NoTokenLeftError if the constraint and the bans leave nothing.
        """
        allowed = None if self.constraint is None else self.constraint.allowed(drafted)
        if not self._adjusts:
            return filtered(logits, self.settings, allowed)
        recent = [*tokens[-self.settings.penalty_window :], *drafted] if self.settings.penalises else []
        repelled: Mapping[int, float] = {} if self._dry is None else self._dry[1].penalties(tokens, drafted)
        return filtered(self._adjusted(logits, recent, repelled), self.settings, allowed)

    def permitted(self, drafted: Sequence[int]) -> int:
        """How many leading tokens of a draft are neither banned nor against the constraint."""
        count = len(drafted)
        if self._banned:
            count = next((place for place, token in enumerate(drafted) if token in self._banned), count)
        return count if self.constraint is None else self.constraint.permitted(drafted[:count])

    def distribution(
        self, logits: NDArray[np.float32], recent: Sequence[int], allowed: Mask | None = None
    ) -> Distribution:
        """The same behind `recent`, whatever was asked before."""
        if not self._adjusts:
            return filtered(logits, self.settings, allowed)
        repelled = {} if self._dry is None else self._dry[0].penalties(recent)
        return filtered(self._adjusted(logits, recent, repelled), self.settings, allowed)

    def _adjusted(
        self, logits: NDArray[np.float32], recent: Sequence[int], repelled: Mapping[int, float]
    ) -> NDArray[np.float32]:
        adjusted = logits.copy()
        if self._bias is not None:
            ids, values = self._bias
            inside = ids < adjusted.size
            np.add.at(adjusted, ids[inside], values[inside])
        if self._banned and np.isneginf(adjusted.max()):
            raise NoTokenLeftError("nothing that could follow is left")
        if self.settings.penalises:
            _penalise(adjusted, self.settings, recent)
        for token, penalty in repelled.items():
            if token < adjusted.size:
                adjusted[token] -= penalty
        return adjusted

    def scores(self, choices: Distribution, position: int, stream: Stream = Stream.TARGET) -> NDArray[np.float64]:
        """What the choice maximises, for each id of `choices`: log p + g, or log p alone when greedy."""
        if isinstance(choices, GreedyDistribution) or choices.ids.size == 1:
            return choices.log_probabilities
        noise = uniform_noise(self.settings.seed, stream, position, choices.ids)
        perturbed: NDArray[np.float64] = choices.log_probabilities - np.log(-np.log(noise))
        return perturbed

    def choose(self, choices: Distribution, position: int, stream: Stream = Stream.TARGET) -> int:
        """The token at `position`, counted from the start of the prompt."""
        if isinstance(choices, GreedyDistribution):
            return choices.token
        return int(choices.ids[int(self.scores(choices, position, stream).argmax())])

    def choose_with_lead(
        self, choices: Distribution, position: int, stream: Stream = Stream.TARGET
    ) -> tuple[int, float]:
        """The same, and by how many nats its score is above that of the next best token; infinity where it is alone."""
        if isinstance(choices, GreedyDistribution):
            return choices.token, choices.lead
        scores = self.scores(choices, position, stream)
        best = int(scores.argmax())
        return int(choices.ids[best]), _lead(scores)

    def uniform(self, position: int, stream: Stream) -> float:
        """One uniform number in (0, 1) for a place."""
        return float(uniform_noise(self.settings.seed, stream, position, np.zeros(1, dtype=np.int64))[0])
