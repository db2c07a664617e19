"""The costs of a pair that was just loaded: recalled where they still hold, else measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from forespeak.engines.drafting import Drafting
from forespeak.engines.pair_knowledge import PairConditions, PairMemory
from forespeak.speculation.language_model import LanguageModel

TOLERANCE = 0.3
"""How far a few quick timings may be from those of earlier before everything is measured anew."""
_TURNS = 3


class PairCosts:
    """Joins what a loaded pair learns with where it is kept; without a `memory`, costs are measured at each load."""

    def __init__(
        self, drafting: Drafting, memory: PairMemory | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._drafting = drafting
        self._memory = memory
        self._clock = clock
        self._conditions: PairConditions | None = None
        self._timings: list[float] = []

    def settle(
        self,
        conditions: PairConditions,
        target: LanguageModel,
        draft: LanguageModel | None,
        *,
        target_is_new: bool = True,
    ) -> None:
        """Recall or measure. The costs of a target that stayed loaded are known. Both caches are empty afterwards."""
        kept = None if self._memory is None else self._memory.recall(conditions)
        self._conditions = None if self._memory is None else conditions
        self._timings = [] if self._memory is None else self._quick_timings(target, draft)
        learned: Any = None if kept is None else kept.get("drafting")
        earlier = None if kept is None else kept.get("timings")
        if learned is not None and self._still_holds(earlier) and self._recall(learned, costs=True):
            self._timings = list(earlier or ())
            return
        if target_is_new:
            self._drafting.measure_target(target)
        if draft is not None:
            self._drafting.measure_draft(draft)
        if learned is not None:
            self._recall(learned, costs=False)

    def keep(self, *, soon: bool = False) -> None:
        """Write down what has been learned until now; with `soon`, only if that is due."""
        if self._memory is not None and self._conditions is not None:
            values = {"timings": self._timings, "drafting": self._drafting.learned()}
            self._memory.keep(self._conditions, values, soon=soon)

    def close(self) -> None:
        """The pair is unloaded."""
        self.keep()
        self._conditions = None

    def _recall(self, learned: Any, *, costs: bool) -> bool:  # noqa: ANN401 -- checked by whom it belongs to
        try:
            self._drafting.recall(learned, costs=costs)
        except (ValueError, TypeError, AttributeError):
            return False
        return True

    def _still_holds(self, earlier: Any) -> bool:  # noqa: ANN401 -- from a file
        if not isinstance(earlier, list) or len(earlier) != len(self._timings):
            return False
        return all(
            isinstance(then, float) and abs(now - then) <= TOLERANCE * then
            for now, then in zip(self._timings, earlier, strict=True)
        )

    def _quick_timings(self, *models: LanguageModel | None) -> list[float]:
        """Seconds of one token, for each model."""
        return [self._quickest(model) for model in models if model is not None]

    def _quickest(self, model: LanguageModel) -> float:
        best = float("inf")
        for turn in range(_TURNS):
            model.truncate(0)
            before = self._clock()
            model.evaluate([0], 1)
            # The first one also makes a graph and reads the weights from the disk.
            if turn > 0:
                best = min(best, self._clock() - before)
        model.truncate(0)
        return best
