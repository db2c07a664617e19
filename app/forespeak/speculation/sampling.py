"""From a row of logits to a token: penalties, filters, temperature, and a choice by keyed noise.

Everything here is a pure function of (settings, logits, tokens so far, seed, position). There is no random state to
keep, clone or roll back, so a position's token does not depend on how many positions were evaluated at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

NEGLIGIBLE_NATS = 30.0
"""Tokens this far below the best one (e^-30, 1e-13) are left out before anything is sorted. Even 250,000 of them
together weigh less than a float32 logit can express."""


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How a token is chosen. The order is llama.cpp's: penalties, top-k, top-p, min-p, temperature.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0, `repeat_penalty` 1 and the other penalties at 0 switch
    a filter off. Penalties look at the last `penalty_window` tokens, the prompt's included. Raises ValueError for
    values out of range.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_window: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        bounds: tuple[tuple[str, float, float], ...] = (
            ("temperature", 0.0, 100.0),
            ("top_k", 0, math.inf),
            ("top_p", 0.0, 1.0),
            ("min_p", 0.0, 1.0),
            ("repeat_penalty", 1e-3, 1e3),
            ("frequency_penalty", -100.0, 100.0),
            ("presence_penalty", -100.0, 100.0),
            ("penalty_window", 0, math.inf),
            ("seed", 0, 2**64 - 1),
        )
        for name, low, high in bounds:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} must lie between {low} and {high}, not {value}")

    @property
    def penalises(self) -> bool:
        return self.penalty_window > 0 and (
            self.repeat_penalty != 1.0 or self.frequency_penalty != 0.0 or self.presence_penalty != 0.0
        )


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The tokens that survived the filters and their log-probabilities, which add up to one.

    `greedy` means that the most probable token is taken whatever the noise; the probabilities are then those at
    temperature 1 and without filters, for showing.
    """

    ids: NDArray[np.int64]
    log_probabilities: NDArray[np.float64]
    greedy: bool = False

    def probability(self, token: int) -> float:
        found = np.flatnonzero(self.ids == token)
        return float(np.exp(self.log_probabilities[found[0]])) if found.size else 0.0

    def top(self, count: int) -> list[tuple[int, float]]:
        """The `count` most probable tokens with their probabilities, best first."""
        count = min(count, self.ids.size)
        if count == 0:
            return []
        best = np.argpartition(-self.log_probabilities, count - 1)[:count]
        best = best[np.argsort(-self.log_probabilities[best], kind="stable")]
        return [(int(self.ids[i]), float(np.exp(self.log_probabilities[i]))) for i in best]


def distribution(logits: NDArray[np.float32], settings: SamplingSettings, recent: Sequence[int]) -> Distribution:
    """What a token is chosen from, given one row of logits, shape (vocabulary size,).

    `recent` are the tokens before the place, the newest last; only the penalty window of them matters.
    """
    if settings.penalises:
        logits = penalised(logits, settings, recent)
    best = float(logits.max())
    if settings.temperature == 0.0:
        ids = np.flatnonzero(logits >= best - NEGLIGIBLE_NATS)
        return Distribution(ids, _log_softmax(logits[ids].astype(np.float64)), greedy=True)
    ids = np.flatnonzero(logits >= best - NEGLIGIBLE_NATS * max(1.0, settings.temperature))
    scores = logits[ids].astype(np.float64)
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


def penalised(logits: NDArray[np.float32], settings: SamplingSettings, recent: Sequence[int]) -> NDArray[np.float32]:
    """A copy of the logits with the three penalties applied to the tokens of the window, as llama.cpp does."""
    window = np.asarray(recent[-settings.penalty_window :], dtype=np.int64)
    seen, counts = np.unique(window, return_counts=True)
    inside = seen < logits.size
    seen, counts = seen[inside], counts[inside]
    adjusted = logits.copy()
    scores = adjusted[seen]
    scores = np.where(scores > 0, scores / settings.repeat_penalty, scores * settings.repeat_penalty)
    adjusted[seen] = scores - counts * settings.frequency_penalty - settings.presence_penalty
    return adjusted


def _log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = scores - scores.max()
    normalised: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
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


def uniform_noise(seed: int, stream: Stream, position: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Uniform numbers strictly between 0 and 1, one per id: a counter-based hash of the four arguments."""
    key = np.array([(seed + int(stream) * _GOLDEN) & _MASK], dtype=np.uint64)
    key = _mix(_mix(key) + _U64((position + 1) * _GOLDEN & _MASK))
    bits = _mix(_mix(key + ids.astype(np.uint64) * _U64(_GOLDEN)) ^ key)
    # 52 bits: with one more, the half would round the largest number up to 1.
    return ((bits >> _U64(12)).astype(np.float64) + 0.5) * 2.0**-52


@dataclass(frozen=True, slots=True)
class Sampler:
    """The settings with their seed, as the loop, the rules and the draft sources use them.

    A token is argmax(log p + g) with g standard Gumbel noise (the Gumbel-max trick, Gumbel 1954), keyed by
    (seed, stream, position, token id) and computed for the surviving tokens only.
    """

    settings: SamplingSettings

    def recent(self, tokens: Sequence[int], drafted: Sequence[int]) -> list[int]:
        """The tokens before a place, as far back as the penalties look: the end of the text, then the draft so far."""
        if not self.settings.penalises:
            return []
        return [*tokens[-self.settings.penalty_window :], *drafted]

    def distribution(self, logits: NDArray[np.float32], recent: Sequence[int]) -> Distribution:
        return distribution(logits, self.settings, recent)

    def scores(self, choices: Distribution, position: int, stream: Stream = Stream.TARGET) -> NDArray[np.float64]:
        """What the choice maximises, for each id of `choices`: log p + g, or log p alone when greedy."""
        if choices.greedy or choices.ids.size == 1:
            return choices.log_probabilities
        noise = uniform_noise(self.settings.seed, stream, position, choices.ids)
        perturbed: NDArray[np.float64] = choices.log_probabilities - np.log(-np.log(noise))
        return perturbed

    def choose(self, choices: Distribution, position: int, stream: Stream = Stream.TARGET) -> int:
        """The token at `position`, counted from the start of the prompt."""
        return int(choices.ids[int(np.argmax(self.scores(choices, position, stream)))])

    def uniform(self, position: int, stream: Stream) -> float:
        """One uniform number in (0, 1) for a place."""
        return float(uniform_noise(self.settings.seed, stream, position, np.zeros(1, dtype=np.int64))[0])
