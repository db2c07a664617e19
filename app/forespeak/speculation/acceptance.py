"""How likely a drafted token is to be accepted: learned from what was, by the draft's own confidence and by place."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from forespeak.speculation.trace import Origin, Step

_CONFIDENCES = (0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.98, 0.99, 0.997)
"""Borders of the ranges of q that are told apart: finest near 1, where a long draft is decided."""
_BUCKETS = len(_CONFIDENCES) + 1
_PRIOR_WEIGHT = 4.0
_PLACES = (1, 2, 3, 4, 6, 9, 16)
"""Borders of the ranges of places that are told apart, the first token's being 0."""
_PLACE_WEIGHT = 8.0
"""A place is taken to be like the others until so many tokens were expected to be accepted there."""
_BEST_PLACE = 1.1
_MEMORY = 200.0
"""Tested tokens that an estimate remembers: texts change, and what was true of the last one fades."""


class Acceptance:
    """Counts of accepted and tested tokens, overall and by the draft's probability q of the token.

    Only tokens whose test meant something count: those accepted and the first one rejected of each step. A bucket with
    few counts leans on a prior that rises with q, as it does for every pair we have measured. The place then counts by
    how many tokens were accepted there against how many their confidences had promised.
    """

    def __init__(self, prior: float = 0.8) -> None:
        self._prior = prior
        self._tested = 0.0
        self._accepted = 0.0
        self._tested_by = [0.0] * _BUCKETS
        self._accepted_by = [0.0] * _BUCKETS
        self._promised_at = [0.0] * (len(_PLACES) + 1)
        self._accepted_at = [0.0] * (len(_PLACES) + 1)

    def observe(self, step: Step) -> None:
        accepted = [token.draft_probability for token in step.emitted if token.origin is Origin.ACCEPTED]
        for place, q in enumerate(accepted):
            self._count_tested(place, q, 1.0)
        if step.rejected:
            self._count_tested(len(accepted), step.rejected[0].draft_probability, 0.0)
        elif step.ignored:
            # Not found worth a test: it says as much about the draft as the test it would probably have failed.
            self._count(self.given(step.ignored[0].draft_probability))

    @property
    def mean(self) -> float:
        """The probability that the next drafted token is accepted, given those before it were."""
        return (self._accepted + _PRIOR_WEIGHT * self._prior) / (self._tested + _PRIOR_WEIGHT)

    @property
    def hopeful(self) -> float:
        """The mean and half a standard deviation of what is not known yet: worth trying until it is known better."""
        mean = self.mean
        return min(0.995, mean + 0.5 * math.sqrt(mean * (1.0 - mean) / (self._tested + _PRIOR_WEIGHT)))

    def given(self, q: float | None, place: int | None = None) -> float:
        """The probability that a token is accepted which the draft itself gives probability `q`, at its `place` from 0
        on or at any place.
        """
        chance = self.mean
        if q is not None:
            bucket = _bucket(q)
            prior = min(0.99, chance * (0.49 + 0.75 * q))
            chance = (self._accepted_by[bucket] + _PRIOR_WEIGHT * prior) / (self._tested_by[bucket] + _PRIOR_WEIGHT)
        return chance if place is None else min(0.999, chance * self._worth_of(place))

    def chances(self, probabilities: Sequence[float]) -> list[float]:
        """For each token of a draft, the probability that it and all before it are accepted."""
        chances, so_far = [], 1.0
        for place, q in enumerate(probabilities):
            so_far *= self.given(q, place)
            chances.append(so_far)
        return chances

    def fade(self, share: float) -> None:
        """Let all that was counted so far count for this share of what it did."""
        self._tested *= share
        self._accepted *= share
        for counts in (self._tested_by, self._accepted_by, self._promised_at, self._accepted_at):
            counts[:] = [count * share for count in counts]

    def learned(self) -> dict[str, object]:
        """The counts, as JSON values."""
        return {
            "tested": self._tested,
            "accepted": self._accepted,
            "tested_by_confidence": list(self._tested_by),
            "accepted_by_confidence": list(self._accepted_by),
            "promised_by_place": list(self._promised_at),
            "accepted_by_place": list(self._accepted_at),
        }

    def recall(self, learned: object) -> None:
        """Go on from there. Raises ValueError, KeyError or TypeError for what was not `learned`."""
        if not isinstance(learned, dict):
            raise TypeError("no object")
        tested, accepted = _counts([learned["tested"], learned["accepted"]], 2)
        tested_by = _counts(learned["tested_by_confidence"], _BUCKETS)
        accepted_by = _counts(learned["accepted_by_confidence"], _BUCKETS)
        promised_at = _counts(learned["promised_by_place"], len(_PLACES) + 1)
        accepted_at = _counts(learned["accepted_by_place"], len(_PLACES) + 1)
        if any(right > seen for right, seen in zip([accepted, *accepted_by], [tested, *tested_by], strict=True)):
            raise ValueError("counts out of range")
        self._tested, self._accepted, self._tested_by, self._accepted_by = tested, accepted, tested_by, accepted_by
        self._promised_at, self._accepted_at = promised_at, accepted_at

    def _worth_of(self, place: int) -> float:
        """By what factor tokens at a place fare better or worse than their confidence says."""
        at = bisect_right(_PLACES, place)
        return min(_BEST_PLACE, (self._accepted_at[at] + _PLACE_WEIGHT) / (self._promised_at[at] + _PLACE_WEIGHT))

    def _count_tested(self, place: int, q: float | None, accepted: float) -> None:
        at = bisect_right(_PLACES, place)
        self._promised_at[at] += self.given(q)
        self._accepted_at[at] += accepted
        self._count(accepted)
        if q is not None:
            self._tested_by[_bucket(q)] += 1
            self._accepted_by[_bucket(q)] += accepted

    def _count(self, accepted: float) -> None:
        if self._tested >= _MEMORY:
            self.fade(0.5)
        self._tested += 1
        self._accepted += accepted


def _bucket(q: float) -> int:
    return bisect_right(_CONFIDENCES, q)


def _counts(values: Iterable[Any], length: int) -> list[float]:
    """Raises ValueError or TypeError for what are no counts, or not so many."""
    counts = [float(value) for value in values]
    if len(counts) != length:
        raise ValueError("counts of another kind")
    if any(not 0.0 <= count <= 2 * _MEMORY for count in counts):
        raise ValueError("counts out of range")
    return counts
