"""Rows of scores that do not depend on how many tokens were evaluated with them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from forespeak.speculation.language_model import LanguageModel

_STEADY = 1e-3
_LEAST_BATCHES = (1, 9, 17, 33)
"""Kernels change with the size of a batch; beyond some size, they are the same for all."""
_PREFIX, _SINGLES, _MANY = 40, 6, 20
"""Attention adds up in another order from the 33rd place on: nothing shows before."""


class FillableModel(LanguageModel, Protocol):
    """A model that can fill its evaluations up."""

    least_batch: int
    """Evaluations of fewer tokens are filled up to that many, which are then forgotten."""

    @property
    def no_rollback(self) -> str | None: ...


def steady(model: FillableModel, *, weights_are_f32: bool) -> None:
    """Find the smallest size of an evaluation from which on scores do not move, and have none smaller.

    With F32 weights and caches that is usually one. With others, engines compute a few rows in another way than many,
    and scores move by up to a few units. Takes a few dozen evaluations; the cache is empty afterwards.
    """
    if model.no_rollback is not None:
        return
    # Whether few rows move at all depends on the text: with other weights no test could show that they never do.
    for least in _LEAST_BATCHES if weights_are_f32 else _LEAST_BATCHES[1:]:
        model.least_batch = least
        if _movement(model) <= _STEADY:
            return
    model.least_batch = 1


def _movement(model: FillableModel) -> float:
    """The largest difference of a score between tokens evaluated one by one, a few at once, and many at once."""
    text = [(17 + 29 * place) % model.vocabulary.size for place in range(_PREFIX + _MANY)]
    prefix, behind = text[:_PREFIX], text[_PREFIX:]
    model.truncate(0)
    model.evaluate(prefix, 0)
    singly = np.concatenate([model.evaluate([token], 1).copy() for token in behind[:_SINGLES]])
    moved = 0.0
    for count in (_SINGLES, _MANY):
        model.truncate(_PREFIX)
        rows = model.evaluate(behind[:count], count)[:_SINGLES]
        moved = max(moved, float(np.abs(rows - singly).max()))
    model.truncate(0)
    return moved
