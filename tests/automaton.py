"""A grammar for tests: a finite automaton over tokens, read forwards and rolled back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from forespeak.speculation.constraint import Mask


class Automaton:
    """State 0 comes first; `steps` says where each token leads. Forbidden tokens raise, as a real matcher would."""

    def __init__(self, steps: Mapping[int, Mapping[int, int]], complete: Collection[int], size: int) -> None:
        self._steps = steps
        self._complete = frozenset(complete)
        self._size = size
        self._states = [0]
        self.masks = 0
        """How many masks were computed."""

    def mask(self) -> Mask:
        self.masks += 1
        mask = np.zeros(self._size, dtype=np.bool_)
        mask[list(self._steps[self._states[-1]])] = True
        return mask

    def permits(self, token: int) -> bool:
        return token in self._steps[self._states[-1]]

    def is_complete(self) -> bool:
        return self._states[-1] in self._complete

    def consume(self, token: int) -> None:
        if not self.permits(token):
            raise ValueError(f"token {token} is not permitted in state {self._states[-1]}")
        self._states.append(self._steps[self._states[-1]][token])

    def rollback(self, count: int) -> None:
        if not 0 < count < len(self._states):
            raise ValueError(f"{count} of {len(self._states) - 1} tokens cannot be rolled back")
        del self._states[-count:]
