"""What is free: the system's word, a container's limits, a GPU's driver."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from forespeak.models.machine_memory import Gpu, Machine, container_limit, now, private_bytes

GB = 10**9


def group(root: Path, path: str, **files: str) -> None:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="ascii")


def test_now_is_what_the_system_says_or_less() -> None:
    found = now()
    assert 0 < found.available_bytes <= found.total_bytes <= psutil.virtual_memory().total
    assert found.gpus == ()
    assert not found.unified
    card = Gpu("Card", GB, 2 * GB)
    assert now([card]).gpus == (card,)


def test_a_container_may_have_less_than_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.models.machine_memory.container_limit", lambda: (2 * GB, 1000))
    found = now()
    assert found.total_bytes == min(2 * GB, psutil.virtual_memory().total)
    assert found.available_bytes == 1000


def test_the_tightest_group_above_counts_and_cached_files_do_not(tmp_path: Path) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("0::/app/work\n", encoding="ascii")
    group(root, "", memory__stat="inactive_file 1\n")
    group(
        root,
        "app",
        memory__max=f"{8 * GB}\n",
        memory__current=f"{5 * GB}\n",
        memory__stat=f"anon 7\ninactive_file {GB}\n",
    )
    group(root, "app/work", memory__max="max\n", memory__current=f"{GB}\n", memory__stat="")
    assert container_limit(root, own) == (8 * GB, 4 * GB)
    group(root, "app/work", memory__max=f"{3 * GB}\n")
    assert container_limit(root, own) == (3 * GB, 2 * GB)


def test_the_first_version_of_groups(tmp_path: Path) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("7:cpu,cpuacct:/x\n5:memory:/x\n0::/\n", encoding="ascii")
    group(
        root / "memory",
        "x",
        memory__limit_in_bytes=f"{4 * GB}",
        memory__usage_in_bytes=f"{3 * GB}",
        memory__stat=f"total_inactive_file {GB}\n",
    )
    group(root / "memory", "", memory__limit_in_bytes=str(2**63 - 4096), memory__usage_in_bytes="1")
    assert container_limit(root, own) == (4 * GB, 2 * GB)


@pytest.mark.parametrize("text", ["", "nonsense", "0::/nowhere\n"])
def test_without_limits_there_is_none(tmp_path: Path, text: str) -> None:
    own = tmp_path / "own"
    own.write_text(text, encoding="ascii")
    assert container_limit(tmp_path / "cgroup", own) is None
    assert container_limit(tmp_path / "cgroup", tmp_path / "not there") is None


def test_what_a_process_gives_back_is_its_own() -> None:
    mine = private_bytes(os.getpid())
    resident = psutil.Process().memory_info().rss
    assert 0 < mine <= 2 * resident
    if sys.platform == "linux":
        assert mine < resident
    assert private_bytes(2**22 + 1) == 0


def test_freed_memory_is_available_again_but_never_more_than_there_is() -> None:
    machine = Machine(8 * GB, 2 * GB, (Gpu("Card", GB, 4 * GB),))
    freed = machine.with_freed(3 * GB, {"Card": 2 * GB, "other": GB})
    assert (freed.available_bytes, freed.gpus[0].free_bytes) == (5 * GB, 3 * GB)
    assert machine.with_freed(99 * GB).available_bytes == 8 * GB
    shared = Machine(8 * GB, 2 * GB, (Gpu("Apple", GB, 6 * GB),), unified=True).with_freed(3 * GB)
    assert (shared.available_bytes, shared.gpus[0].free_bytes) == (5 * GB, 4 * GB)
