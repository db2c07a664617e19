"""How much memory this machine has and how much of it is free now: main memory, GPUs, or one for both."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")
_NO_LIMIT = 1 << 60
"""Version 1 writes a number near 2**63 where there is no limit."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device that computes, by the driver's word. Bytes.

    `name` is for people, and unique; `device` is what the engine calls it. The rest is as in the engine's list.
    """

    name: str
    free_bytes: int
    total_bytes: int
    device: str = ""
    integrated: bool = False
    backend: str = ""
    hardware_id: str | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """Bytes. `available_bytes` can be had without swapping: what is free, and what the system would give back.

    `unified`: the GPU uses main memory, and `gpus` says how much of it.
    """

    total_bytes: int
    available_bytes: int
    gpus: tuple[Gpu, ...] = ()
    unified: bool = False

    def with_freed(self, count: int, on_gpus: Mapping[str, int] | None = None) -> Machine:
        """The machine once this much is given back: `count` bytes of main memory, and by name those of GPUs."""
        given = {gpu.name: count for gpu in self.gpus} if self.unified else dict(on_gpus or {})
        gpus = tuple(
            replace(gpu, free_bytes=min(gpu.total_bytes, gpu.free_bytes + max(0, given.get(gpu.name, 0))))
            for gpu in self.gpus
        )
        available = min(self.total_bytes, self.available_bytes + max(0, count))
        return replace(self, available_bytes=available, gpus=gpus)


def now(gpus: Sequence[Gpu] = ()) -> Machine:
    """This machine's memory as it is now. `gpus`: what the engine's library lists; this room asks no driver."""
    import psutil

    memory = psutil.virtual_memory()
    total, available = int(memory.total), int(memory.available)
    limit = container_limit()
    if limit is not None:
        total, available = min(total, limit[0]), min(available, limit[1])
    unified = bool(gpus) and sys.platform == "darwin" and platform.machine() == "arm64"
    return Machine(total, max(0, available), tuple(gpus), unified)


def private_bytes(pid: int) -> int:
    """What ending a process would give back: its own pages, without mapped files. 0 if it cannot be asked."""
    import psutil

    try:
        found = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return max(0, int(found.rss) - int(getattr(found, "shared", 0)))


def container_limit(root: Path = _CGROUPS, own: Path = _OWN_GROUP) -> tuple[int, int] | None:
    """(limit, still available) of the control groups that this process is in; None where nothing is limited.

    Files in the page cache count as used there, yet are given back when memory is needed, so they count as available.
    """
    try:
        lines = own.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    found: list[tuple[int, int]] = []
    for line in lines:
        number, controllers, group = (*line.split(":", 2), "", "", "")[:3]
        if number == "0" and not controllers:
            folder, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            folder, names = root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        path = PurePosixPath(group)
        for place in (path, *path.parents):
            entry = _group(folder / str(place).lstrip("/"), *names)
            if entry is not None:
                found.append(entry)
    if not found:
        return None
    return min(limit for limit, _ in found), min(available for _, available in found)


def _group(folder: Path, limit_name: str, usage_name: str, cache_name: str) -> tuple[int, int] | None:
    """One group's limit and what is left of it; None: no limit, or no such group."""
    limit, usage = _number(folder / limit_name), _number(folder / usage_name)
    if limit is None or limit >= _NO_LIMIT:
        return None
    cache = 0
    try:
        for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == cache_name and value.isdecimal():
                cache = int(value)
    except (OSError, UnicodeDecodeError):
        pass
    return limit, max(0, limit - max(0, (usage or 0) - cache))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None
