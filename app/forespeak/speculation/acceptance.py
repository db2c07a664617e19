"""How likely a drafted token is to be accepted: learned from what was, by the draft's own confidence and by place."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from forespeak.speculation.trace import Step

_CONFIDENCES = (0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
"""Borders of the ranges of confidence that are told apart: fine at both ends. A good draft errs only where it hardly
prefers its token to another; near 1 a poor one's long drafts are decided."""
_BUCKETS = len(_CONFIDENCES) + 1
_PRIOR_WEIGHT = 4.0
_LEAST_SURE = 5.0
"""Times the odds of any token are those of being rejected where the draft has no confidence at all; they fall with (1 -
confidence). Roughly what a good and a poor pair of SmolLM2 showed, greedy and at T = 0.8; counts soon outweigh it."""
_PLACES = (1, 2, 3, 4, 6, 9, 16)
"""Borders of the ranges of places that are told apart, the first token's being 0."""
_PLACE_WEIGHT = 8.0
"""A place is taken to be like the others until so many tokens were expected to be accepted there."""
_BEST_PLACE = 1.1
_MEMORY = 200.0
"""Tested tokens that an estimate remembers: texts change, and what was true of the last one fades."""


class Acceptance:
    """Counts of accepted and tested tokens, overall and by the draft's confidence in the token (see `draft_model`).

    Only tokens whose test meant something count: those accepted and the first one rejected of each step. A bucket with
    few counts leans on a prior that rises with confidence, as it does for every pair we have measured. The place then
    counts by how many tokens were accepted there against how many their confidences had promised.
    """

    def __init__(self, prior: float = 0.8) -> None:
        self._prior = prior
        self._tested = 0.0
        self._accepted = 0.0
        self._tested_by = [0.0] * _BUCKETS
        self._accepted_by = [0.0] * _BUCKETS
        self._promised_at = [0.0] * (len(_PLACES) + 1)
        self._accepted_at = [0.0] * (len(_PLACES) + 1)

    def observe(self, step: Step, confidences: Sequence[float]) -> None:
        """From a step, and what the draft's confidence in each token was that it drafted for it."""
        accepted = step.accepted_count
        for place in range(accepted):
            self._count_tested(place, confidences[place], 1.0)
        if step.rejected:
            self._count_tested(accepted, confidences[accepted], 0.0)
        elif step.ignored:
            # Not found worth a test: it says as much about the draft as the test it would probably have failed.
            self._count(self.given(confidences[accepted]))

    @property
    def mean(self) -> float:
        """The probability that the next drafted token is accepted, given those before it were."""
        return (self._accepted + _PRIOR_WEIGHT * self._prior) / (self._tested + _PRIOR_WEIGHT)

    @property
    def hopeful(self) -> float:
        """The mean and half a standard deviation of what is not known yet: worth trying until it is known better."""
        mean = self.mean
        return min(0.995, mean + 0.5 * math.sqrt(mean * (1.0 - mean) / (self._tested + _PRIOR_WEIGHT)))

    def given(self, confidence: float, place: int | None = None) -> float:
        """The probability that a token is accepted in which the draft has that confidence, at its `place` from 0 on or
        at any place.
        """
        bucket, rejected = _bucket(confidence), 1.0 - self.mean
        less_sure = _LEAST_SURE * (1.0 - confidence) * rejected
        prior = min(0.99, self.mean / (self.mean + less_sure))
        chance = (self._accepted_by[bucket] + _PRIOR_WEIGHT * prior) / (self._tested_by[bucket] + _PRIOR_WEIGHT)
        return chance if place is None else min(0.999, chance * self._worth_of(place))

    def chances(self, confidences: Sequence[float]) -> list[float]:
        """For each token of a draft, the probability that it and all before it are accepted."""
        chances, so_far = [], 1.0
        for place, confidence in enumerate(confidences):
            so_far *= self.given(confidence, place)
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

    def _count_tested(self, place: int, confidence: float, accepted: float) -> None:
        at, bucket = bisect_right(_PLACES, place), _bucket(confidence)
        self._promised_at[at] += self.given(confidence)
        self._accepted_at[at] += accepted
        self._count(accepted)
        self._tested_by[bucket] += 1
        self._accepted_by[bucket] += accepted

    def _count(self, accepted: float) -> None:
        if self._tested >= _MEMORY:
            self.fade(0.5)
        self._tested += 1
        self._accepted += accepted


def _bucket(confidence: float) -> int:
    return bisect_right(_CONFIDENCES, confidence)


def _counts(values: Iterable[Any], length: int) -> list[float]:
    """Raises ValueError or TypeError for what are no counts, or not so many."""
    counts = [float(value) for value in values]
    if len(counts) != length:
        raise ValueError("counts of another kind")
    if any(not 0.0 <= count <= 2 * _MEMORY for count in counts):
        raise ValueError("counts out of range")
    return counts
