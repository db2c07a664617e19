"""What an evaluation costs: measured once when a pair is loaded, then followed while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from forespeak.speculation.language_model import LanguageModel
from forespeak.speculation.trace import Step

BATCH_SIZES = (1, 5, 2, 9, 3, 17, 33)
"""In the order of their worth, should the time not last for all. The curve is no straight line: from one token to two
it often jumps, and then it hardly rises."""
_UNKNOWN_SLOPE = 0.1
_TABLE = 64


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of one target evaluation by the number of its tokens, and of one drafted token.

    `target` holds (tokens, seconds), ascending in tokens, at least one pair. `draft_catch_up` is what it adds to a
    draft's first evaluation to read one token more: the last of a draft that was accepted as a whole, or one that was
    emitted while drafting paused.
    """

    target: tuple[tuple[int, float], ...]
    draft_token: float = 0.0
    draft_catch_up: float = 0.0

    def target_seconds(self, tokens: int) -> float:
        """Between two measured sizes a straight line; beyond the last one the steeper of its slope and the mean one.

        The last two alone may be level by accident, and a check of any length would look free. Where a single size is
        known, each token more is taken to cost a tenth of it, until steps show what it does.
        """
        (first, least), (n1, t1) = self.target[0], self.target[-1]
        if tokens <= first:
            return least
        if n1 == first:
            return least * (1.0 + _UNKNOWN_SLOPE * (tokens - first))
        if tokens > n1:
            n0, t0 = self.target[-2]
            return t1 + max((t1 - t0) / (n1 - n0), (t1 - least) / (n1 - first)) * (tokens - n1)
        (n0, t0), (n1, t1) = next(pair for pair in pairwise(self.target) if tokens <= pair[1][0])
        return t0 + (t1 - t0) * (tokens - n0) / (n1 - n0)


_FOLLOW = 0.1
"""Weight of the newest step in the running factors, once a few are known."""
_FIRST_STEPS = 3
_WILDEST = 2.0
"""One step says no more than that: the system now and then takes the processor away for a while."""
_OWN_SHARE = 0.6
"""What a check that took longer than expected says about checks alone; the rest is the machine, or the context."""


class RunningCosts:
    """Costs as they were measured, times what they have become: a longer context, a busier machine.

    One for a loaded pair; whoever drives a generation tells it of each step once. Plain steps and checks have a factor
    of their own, since a long context makes them dearer in different measure; whatever changes both moves both.
    """

    def __init__(self, costs: Costs) -> None:
        self._target_seconds = [costs.target_seconds(tokens) for tokens in range(_TABLE)]
        self._measured = costs
        self._scale = 1.0
        self._check_scale = 1.0
        self._draft_scale = 1.0
        self._steps = 0
        self._drafts = 0

    def target(self, tokens: int) -> float:
        """Seconds of a target evaluation of that many tokens, now."""
        # Asked dozens of times in a step.
        measured = self._target_seconds[tokens] if tokens < _TABLE else self._measured.target_seconds(tokens)
        seconds = self._scale * measured
        return seconds if tokens == 1 else self._check_scale * seconds

    @property
    def plain_rate(self) -> float:
        """Tokens per second without drafts."""
        return 1.0 / self.target(1)

    @property
    def draft_token(self) -> float:
        """Seconds of a drafted token, now."""
        return self._draft_scale * self._measured.draft_token

    @property
    def draft_catch_up(self) -> float:
        """Seconds that a draft model takes to read one token more, now."""
        return self._draft_scale * self._measured.draft_catch_up

    def observe(self, step: Step) -> None:
        """Follow what a step's evaluation took. The prompt's own says nothing about a step and is passed over."""
        if step.index == 0:
            return
        tokens = 1 + step.tested_count
        surprise = min(max(step.target_seconds / self.target(tokens), 1.0 / _WILDEST), _WILDEST) - 1.0
        self._steps += 1
        follow = max(_FOLLOW, 1.0 / (self._steps + _FIRST_STEPS))
        own = _OWN_SHARE if tokens > 1 else 0.0
        self._scale *= 1.0 + (1.0 - own) * follow * surprise
        self._check_scale *= 1.0 + own * follow * surprise

    def observe_draft(self, seconds: float, drafted: int, read: int) -> None:
        """Follow what a draft model took for a draft before which it read `read` tokens beyond the newest."""
        expected = drafted * self.draft_token + read * self.draft_catch_up
        if expected <= 0.0:
            return
        surprise = min(max(seconds / expected, 1.0 / _WILDEST), _WILDEST) - 1.0
        self._drafts += 1
        self._draft_scale *= 1.0 + max(_FOLLOW, 1.0 / (self._drafts + _FIRST_STEPS)) * surprise


def measure_target(
    model: LanguageModel, *, budget_seconds: float = 1.2, clock: Callable[[], float] = time.perf_counter
) -> tuple[tuple[int, float], ...]:
    """Time evaluations of made-up text by their size: (tokens, seconds), for `Costs`. The cache is empty afterwards.

    Each size is timed up to three times; the quickest counts, since nothing makes an evaluation quicker than it is.
    When the budget is used up, what is known has to do: one size at the least, and each that was begun.
    """
    deadline = clock() + budget_seconds
    measured: dict[int, float] = {}
    for size in BATCH_SIZES:
        if size > min(model.batch_limit, model.output_limit, model.context_length):
            continue
        if measured and clock() > deadline:
            break
        measured[size] = _quickest(model, size, deadline, clock)
    # More tokens never take less time; where the clock says so it is noise.
    sizes = sorted(measured)
    return tuple((size, max(measured[smaller] for smaller in sizes if smaller <= size)) for size in sizes)


def measure_draft(
    model: LanguageModel, *, budget_seconds: float = 0.4, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Seconds that a draft model takes for one token, and what a second one in the same evaluation adds.

    The cache is empty afterwards.
    """
    deadline = clock() + budget_seconds
    one, two = (_quickest(model, size, deadline, clock) for size in (1, 2))
    return one, max(two - one, 0.0)


def _quickest(model: LanguageModel, size: int, deadline: float, clock: Callable[[], float]) -> float:
    # Any tokens do: an evaluation takes as long whatever it reads.
    tokens = [(17 + 3 * place) % model.vocabulary.size for place in range(size)]
    best = float("inf")
    for turn in range(4):
        model.truncate(0)
        before = clock()
        model.evaluate(tokens, size)
        now = clock()
        # The first one of its size also makes a graph and buffers; it counts only if there is no time for another.
        if turn > 0 or now > deadline:
            best = min(best, now - before)
        if now > deadline:
            break
    model.truncate(0)
    return best
