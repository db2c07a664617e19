"""The machine under a comparison: what it is, and what else kept it busy meanwhile."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from forespeak import __version__

BUSY_CORES = 0.25
"""From this many processor cores in use by other programs, on average over a run, the run counts as disturbed."""

_VERSIONS = ("llama-cpp-python", "mlx", "mlx-lm", "numpy")


@dataclass(frozen=True, slots=True)
class MachineNotes:
    """What figures depend on beside the models. `load` is the load average of the last 1, 5 and 15 minutes."""

    system: str
    processor: str
    cores: int
    logical_cores: int
    memory_bytes: int
    load: tuple[float, float, float]
    versions: tuple[tuple[str, str], ...]


def machine_notes() -> MachineNotes:
    logical = os.cpu_count() or 1
    return MachineNotes(
        system=platform.platform(),
        processor=processor_name(),
        cores=psutil.cpu_count(logical=False) or logical,
        logical_cores=logical,
        memory_bytes=psutil.virtual_memory().total,
        load=psutil.getloadavg(),
        versions=(("forespeak", __version__), ("python", platform.python_version()), *_installed()),
    )


def busy_words(others_cores: Sequence[float]) -> str | None:
    """What is said of figures that others have disturbed, given the cores that they used in each run; None if none."""
    disturbed = [cores for cores in others_cores if cores >= BUSY_CORES]
    if not disturbed:
        return None
    return (
        f"Other programs were busy during {len(disturbed)} of {len(others_cores)} runs, with up to "
        f"{max(disturbed):.1f} processor cores: these figures may be off. Measure on a quiet machine."
    )


def processor_name() -> str:
    if sys.platform == "linux":
        try:
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
        except OSError:
            pass
    return platform.processor() or platform.machine()


def _installed() -> list[tuple[str, str]]:
    found = []
    for name in _VERSIONS:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found


class Disturbance:
    """How many cores other programs kept busy, on average, between two looks.

    `engine` is the process that computes what is measured, once there is one: then all other processes are others, be
    they children of this one. `clock` and `others` are for tests: seconds, and core-seconds that others have used so
    far.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        others: Callable[[], float] | None = None,
        engine: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._others: Callable[[], float] = others or (lambda: _others_core_seconds(engine()))
        self._at, self._used = clock(), self._others()

    def since_last_look(self) -> float:
        now, used = self._clock(), self._others()
        elapsed, spent = now - self._at, used - self._used
        self._at, self._used = now, used
        # The system counts in hundredths of a second, and ours and all are not read at the same moment.
        return max(0.0, spent / elapsed) if elapsed > 0 else 0.0


def _others_core_seconds(engine: int | None) -> float:
    """What all processes have used since the system's start, less this one and its engine, or all its children.

    Work at low priority counts too: it gives way on the processor, but not in caches and memory.
    """
    total = psutil.cpu_times()
    busy = total.user + total.system + getattr(total, "nice", 0.0)
    this = psutil.Process()
    own = 0.0
    for process in (this, *_children_that_count(this, engine)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue  # it has just ended; what it used now counts as ours through its parent
        own += times.user + times.system
        own += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return float(busy - own)


def _children_that_count(this: psutil.Process, engine: int | None) -> list[psutil.Process]:
    if engine is None:
        return this.children(recursive=True)
    try:
        return [psutil.Process(engine)]
    except psutil.Error:
        return []  # it has just ended
