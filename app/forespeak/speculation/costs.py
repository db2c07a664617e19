"""What an evaluation costs: measured once when a pair is loaded, then followed while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forespeak.speculation.language_model import LanguageModel

BATCH_SIZES = (1, 2, 3, 5, 9, 17)
"""The curve is no straight line: from one token to two it often jumps, and then it hardly rises."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of one target evaluation by the number of its tokens, and of one drafted token.

    `target` holds (tokens, seconds), ascending in tokens, at least one pair.
    """

    target: tuple[tuple[int, float], ...]
    draft_token: float = 0.0

    def target_seconds(self, tokens: int) -> float:
        """Between two measured sizes a straight line; beyond the last one its slope goes on."""
        if tokens <= self.target[0][0] or len(self.target) == 1:
            return self.target[0][1]
        segment = next((pair for pair in pairwise(self.target) if tokens <= pair[1][0]), self.target[-2:])
        (n0, t0), (n1, t1) = segment
        return t0 + (t1 - t0) * (tokens - n0) / (n1 - n0)


def measure_costs(
    target: LanguageModel,
    draft: LanguageModel | None,
    *,
    budget_seconds: float = 1.5,
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """Time evaluations of made-up text on empty caches, and leave the caches empty.

    Each size is timed at least once and, while the budget lasts, up to three times; the quickest counts, since nothing
    makes an evaluation quicker than it is. The caches must have room for the largest size.
    """
    # Any tokens do: an evaluation takes as long whatever it reads.
    text = [token % target.vocabulary.size for token in range(17, 17 + 3 * max(BATCH_SIZES), 3)]
    started = clock()

    def quickest(model: LanguageModel, tokens: Sequence[int]) -> float:
        best = float("inf")
        for turn in range(3):
            if turn > 0 and clock() - started > budget_seconds:
                break
            model.truncate(0)
            before = clock()
            model.evaluate(tokens, len(tokens))
            best = min(best, clock() - before)
        model.truncate(0)
        return best

    # The first evaluation of a context also makes its graphs and buffers.
    for model in (target, draft):
        if model is not None:
            model.truncate(0)
            model.evaluate(text[:1], 1)
    sizes = [size for size in BATCH_SIZES if size <= min(target.batch_limit, target.output_limit)]
    measured: list[tuple[int, float]] = []
    for size in sizes:
        seconds = quickest(target, text[:size])
        # More tokens never take less time; where the clock says so it is noise.
        measured.append((size, max(seconds, measured[-1][1]) if measured else seconds))
    return Costs(tuple(measured), quickest(draft, text[:1]) if draft is not None else 0.0)
