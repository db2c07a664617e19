"""How likely a drafted token is to be accepted: learned from what was, by the draft's own confidence in it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from forespeak.speculation.trace import Origin, Step

_CONFIDENCES = (0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.96, 0.98, 0.99, 0.997)
"""Borders of the ranges of q that are told apart: finest near 1, where a long draft is decided."""
_BUCKETS = len(_CONFIDENCES) + 1
_PRIOR_WEIGHT = 4.0
_MEMORY = 200.0
"""Tested tokens that an estimate remembers: texts change, and what was true of the last one fades."""


class Acceptance:
    """Counts of accepted and tested tokens, overall and by the draft's probability q of the token.

    Only tokens whose test meant something count: those accepted and the first one rejected of each step. A bucket with
    few counts leans on a prior that rises with q, as it does for every pair we have measured.
    """

    def __init__(self, prior: float = 0.8) -> None:
        self._prior = prior
        self._tested = 0.0
        self._accepted = 0.0
        self._tested_by = [0.0] * _BUCKETS
        self._accepted_by = [0.0] * _BUCKETS

    def observe(self, step: Step) -> None:
        for token in step.emitted:
            if token.origin is Origin.ACCEPTED:
                self._count(token.draft_probability, 1.0)
        if step.rejected:
            self._count(step.rejected[0].draft_probability, 0.0)
        elif step.ignored:
            # Not found worth a test: it says as much about the draft as the test it would probably have failed.
            q = step.ignored[0].draft_probability
            self._count(q, self.given(q), by_confidence=False)

    @property
    def mean(self) -> float:
        """The probability that the next drafted token is accepted, given those before it were."""
        return (self._accepted + _PRIOR_WEIGHT * self._prior) / (self._tested + _PRIOR_WEIGHT)

    @property
    def hopeful(self) -> float:
        """The mean and half a standard deviation of what is not known yet: worth trying until it is known better."""
        mean = self.mean
        return min(0.995, mean + 0.5 * math.sqrt(mean * (1.0 - mean) / (self._tested + _PRIOR_WEIGHT)))

    def given(self, q: float | None) -> float:
        """The probability that a token is accepted which the draft itself gives probability `q`."""
        if q is None:
            return self.mean
        bucket = _bucket(q)
        prior = min(0.99, self.mean * (0.49 + 0.75 * q))
        return (self._accepted_by[bucket] + _PRIOR_WEIGHT * prior) / (self._tested_by[bucket] + _PRIOR_WEIGHT)

    def chances(self, probabilities: Sequence[float]) -> list[float]:
        """For each token of a draft, the probability that it and all before it are accepted."""
        chances, so_far = [], 1.0
        for q in probabilities:
            so_far *= self.given(q)
            chances.append(so_far)
        return chances

    def learned(self) -> dict[str, object]:
        """The counts, as JSON values."""
        return {
            "tested": self._tested,
            "accepted": self._accepted,
            "tested_by_confidence": list(self._tested_by),
            "accepted_by_confidence": list(self._accepted_by),
        }

    def recall(self, learned: object) -> None:
        """Go on from there. Raises ValueError, KeyError or TypeError for what was not `learned`."""
        if not isinstance(learned, dict):
            raise TypeError("no object")
        tested, accepted = float(learned["tested"]), float(learned["accepted"])
        tested_by = [float(count) for count in learned["tested_by_confidence"]]
        accepted_by = [float(count) for count in learned["accepted_by_confidence"]]
        if len(tested_by) != _BUCKETS or len(accepted_by) != _BUCKETS:
            raise ValueError("counts of another kind")
        pairs = zip([accepted, *accepted_by], [tested, *tested_by], strict=True)
        if any(not 0.0 <= right <= seen <= 2 * _MEMORY for right, seen in pairs):
            raise ValueError("counts out of range")
        self._tested, self._accepted, self._tested_by, self._accepted_by = tested, accepted, tested_by, accepted_by

    def _count(self, q: float | None, accepted: float, *, by_confidence: bool = True) -> None:
        if self._tested >= _MEMORY:
            self._tested *= 0.5
            self._accepted *= 0.5
            for counts in (self._tested_by, self._accepted_by):
                counts[:] = [count * 0.5 for count in counts]
        self._tested += 1
        self._accepted += accepted
        if q is not None and by_confidence:
            self._tested_by[_bucket(q)] += 1
            self._accepted_by[_bucket(q)] += accepted


def _bucket(q: float) -> int:
    return bisect_right(_CONFIDENCES, q)
