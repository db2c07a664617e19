"""The high scores of a row, found by reading it once."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_STRIPS = 32
"""Strips laid under each other: columns few enough to be looked through, and short enough to be looked into."""
_WORTH_FOLDING = 4096
_MANY = 16
"""With more than one column in so many to look into, looking at everything takes less time."""


@lru_cache(maxsize=16)
def _begins(size: int, width: int) -> NDArray[np.int64]:
    """Where each strip begins, one below the other. There are as many sizes as models in use."""
    return np.arange(0, size, width)[:, np.newaxis]


class Columns(NamedTuple):
    """Some columns of a row that is cut into strips of `width` tokens: token id = strip * width + place in the strip.

    `places`: where in a strip, ascending. `scores`, shape (strips, places): a copy.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float32]
    width: int


class Peaks:
    """A row of scores, shape (vocabulary size,), cut into strips that lie under each other as a grid.

    The highest score of each column tells where to look for high ones: the row itself, which is long, is read for
    that once, and afterwards only in the few columns that reach a height. `best` is the highest score of all.
    """

    def __init__(self, row: NDArray[np.float32]) -> None:
        self._row = row
        self._width = row.size // _STRIPS if row.size >= _WORTH_FOLDING else row.size
        self._folded = row.size // self._width * self._width
        self._strips = row[: self._folded].reshape(-1, self._width)
        self._highest: NDArray[np.float32] = np.maximum.reduce(self._strips, axis=0)
        best = np.maximum.reduce(self._highest)
        if self._folded < row.size:
            best = np.maximum(best, np.maximum.reduce(row[self._folded :]))
        self.best = float(best)

    def height_of(self, count: int) -> float:
        """A score that at least `count` tokens reach; most often little below the `count`-th highest."""
        if count > self._width:
            return -np.inf
        return float(np.partition(self._highest, -count)[-count])

    def reaching(self, height: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The ids, ascending, and the scores of all tokens with at least that score."""
        places = (self._highest >= height).nonzero()[0]
        if places.size > self._width // _MANY:
            ids = (self._row >= height).nonzero()[0]
            return ids, self._row.take(ids)
        ids = (places + _begins(self._folded, self._width)).ravel()
        if self._folded < self._row.size:
            ids = np.concatenate((ids, np.arange(self._folded, self._row.size)))
        scores = self._row.take(ids)
        high = (scores >= height).nonzero()[0]
        return ids.take(high), scores.take(high)

    def columns_reaching(self, height: float) -> Columns:
        """All tokens with at least that score, and most often some lower ones that lie above or below them.

        Takes half the time of `reaching`, where nobody has to know which ones they are.
        """
        places = (self._highest >= height).nonzero()[0]
        if places.size > self._width // _MANY or self._folded < self._row.size:
            ids, scores = self.reaching(height)
            return Columns(ids, scores[np.newaxis], self._row.size)
        return Columns(places, self._strips.take(places, axis=1), self._width)
