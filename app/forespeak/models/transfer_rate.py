"""How fast bytes come, and how fast they may."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_WINDOW = 5.0
_SAMPLE = 0.2
_BURST = 0.1
"""Seconds. What was not used of a limit before that is lost, so that no pause is followed by a flood."""


class Limiter:
    """A limit in bytes per second, shared by all who take from it. Thread-safe."""

    def __init__(self, bytes_per_second: float | None = None) -> None:
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._rate = bytes_per_second
        self._changes = 0

    def set(self, bytes_per_second: float | None) -> None:
        """None is no limit. Those who wait under the former limit go on at once."""
        with self._lock:
            self._rate = bytes_per_second
            self._free_at = 0.0
            self._changes += 1

    def take(self, count: int, wait: Callable[[float], bool]) -> None:
        """Return once `count` more bytes may have come. `wait(seconds)` sleeps; True from it ends the wait early."""
        with self._lock:
            if self._rate is None:
                return
            now = time.monotonic()
            self._free_at = max(self._free_at, now - _BURST) + count / self._rate
            until, changes = self._free_at, self._changes
        while (left := until - time.monotonic()) > 0 and changes == self._changes:
            if wait(min(left, 0.25)):
                return


class Speed:
    """Bytes per second over the last few seconds, which fall to 0 where nothing comes. For one writing thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, done: int) -> None:
        """`done` bytes are there in all. Fewer than before starts anew."""
        now = self._clock()
        if self._samples and done < self._samples[-1][1]:
            self._samples.clear()
        if len(self._samples) >= 2 and now - self._samples[-2][0] < _SAMPLE:
            self._samples[-1] = (now, done)
        else:
            self._samples.append((now, done))
        # Of the samples out of the window one is kept: what came since then came within the window, or nearly.
        while len(self._samples) > 2 and self._samples[1][0] < now - _WINDOW:
            self._samples.popleft()

    def per_second(self) -> float | None:
        """None while too little has been seen to tell."""
        samples = tuple(self._samples)
        if len(samples) < 2:
            return None
        now = self._clock()
        start = samples[0]
        for sample in samples[1:]:
            if sample[0] > now - _WINDOW:
                break
            start = sample
        seconds = now - max(start[0], now - 2 * _WINDOW)
        return (samples[-1][1] - start[1]) / seconds if seconds >= _SAMPLE else None
