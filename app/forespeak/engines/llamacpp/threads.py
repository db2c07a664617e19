"""How many threads to compute with: all cores of an idle machine, one less for each core that others keep busy.

A matrix product is shared out in equal parts and the slowest thread is waited for, so a thread that has to share its
core holds up all the others: beside one busy core, two threads on two cores are slower than one. Scores do not depend
on the number of threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil

SAMPLE_SECONDS = 0.5
_STALE_SECONDS = 3.0
_TAKEN_FROM = 0.7
"""A core counts as taken when others use this much of it: a process that wants a whole core gets about that much of
one that it shares with us, and a window that paints a reply stays well below."""


class ThreadGovernor:
    """Watches what other processes use of our cores, at most twice a second, and says how many threads are left.

    `clock`, `others` are for tests: seconds, and core-seconds that other processes have used so far.
    """

    def __init__(
        self,
        cores: int,
        clock: Callable[[], float] = time.monotonic,
        others: Callable[[], float] | None = None,
    ) -> None:
        self._cores = cores
        self._clock = clock
        self._others = others_core_seconds if others is None else others
        self._count = cores
        self._sampled_at = clock()
        self._used = self._others()

    def count(self) -> int:
        """How many threads the next evaluation should have."""
        now = self._clock()
        elapsed = now - self._sampled_at
        if elapsed >= SAMPLE_SECONDS:
            used = self._others()
            # After a pause the average tells of the pause; it only gives the next sample its start.
            if elapsed < _STALE_SECONDS:
                load = (used - self._used) / elapsed
                taken = int(max(load, 0.0) + 1.0 - _TAKEN_FROM)
                self._count = max(1, self._cores - taken)
            self._sampled_at, self._used = now, used
        return self._count


def usable_cores() -> int:
    """Physical cores that this process may use; a core's second thread adds no arithmetic."""
    allowed = len(_allowed_cpus())
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def others_core_seconds() -> float:
    """Seconds that other processes have kept our processors busy since the system's start, summed over processors.

    Work at low priority does not count, since it gives way, unless we have such a priority ourselves.
    """
    times = psutil.cpu_times(percpu=True)
    cpus = [times[cpu] for cpu in _allowed_cpus() if cpu < len(times)]
    busy = sum(cpu.user + cpu.system for cpu in cpus)
    if hasattr(os, "nice") and os.nice(0) > 0:
        # Our own time is there, and nowhere else.
        busy += sum(getattr(cpu, "nice", 0.0) for cpu in cpus)
    own = os.times()
    return busy - own.user - own.system


def _allowed_cpus() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
