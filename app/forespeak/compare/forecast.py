"""How many runs are left, and how long they take, judged by those that are finished."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Protocol

from forespeak.compare.plan import Comparison, Task, Way

_RECENT = 12
"""Runs of a kind whose mean tells how long the next one takes."""


class Timed(Protocol):
    """A finished run."""

    @property
    def task(self) -> Task: ...
    @property
    def seconds(self) -> float: ...
    @property
    def failure(self) -> str | None: ...


class Forecast:
    """Runs of the same pair and way are taken to last equally long."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._left: Counter[tuple[int, Way]] = Counter()
        self._took: defaultdict[tuple[int, Way], list[float]] = defaultdict(list)
        self.done = 0
        for pair in range(len(comparison.pairs)):
            self.keep(pair, comparison.ways_of(comparison.pairs[pair]))

    @property
    def total(self) -> int:
        return self.done + self._left.total()

    @property
    def seconds_left(self) -> float | None:
        known = self._means()
        if not known:
            return None
        usual = sum(known.values()) / len(known)
        return sum(count * known.get(kind, usual) for kind, count in self._left.items())

    def seconds_of(self, task: Task) -> float:
        """How long a run probably takes; 0 while nothing is known."""
        known = self._means()
        usual = sum(known.values()) / len(known) if known else 0.0
        return known.get((task.pair, task.way), usual)

    def keep(self, pair: int, ways: Sequence[Way]) -> None:
        """These are the ways of the pair that will be measured."""
        self.drop(pair)
        each = self._comparison.runs * len(self._comparison.prompts)
        for way in ways:
            others = [other for other in ways if other != way]
            # At a temperature at which nothing else is measured, neither is this.
            temperatures = [
                temperature
                for temperature in self._comparison.temperatures_of(pair, way)
                if any(temperature in self._comparison.temperatures_of(pair, other) for other in others)
            ]
            self._left[pair, way] = each * len(temperatures)

    def drop(self, pair: int) -> None:
        for kind in [kind for kind in self._left if kind[0] == pair]:
            del self._left[kind]

    def add(self, run: Timed) -> None:
        kind = (run.task.pair, run.task.way)
        self.done += 1
        self._left[kind] -= 1
        if run.failure is None:
            self._took[kind].append(run.seconds)

    def _means(self) -> dict[tuple[int, Way], float]:
        return {kind: sum(took[-_RECENT:]) / len(took[-_RECENT:]) for kind, took in self._took.items()}
