"""Whether a model fits: by its size at once, by its memory plan when its header was read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from forespeak.engines.engine import CacheType, LoadRequest, LoadSettings
from forespeak.models.formats import ModelFormat
from forespeak.models.machine_memory import Machine
from forespeak.models.roots import own_root
from forespeak.ui.memory_fits import MemoryFits
from models import architectures
from models.library_folders import write_mlx
from ui.fake_library import item
from ui.hub_doubles import MACHINE


def small(total: int, free: int) -> Machine:
    return replace(MACHINE, total_bytes=total, available_bytes=free, gpus=())


def test_a_header_makes_the_verdict_exact(tmp_path: Path) -> None:
    entry = item("tiny", own_root(tmp_path), size_bytes=500_000)
    architectures.qwen3().write(entry.path)
    fits = MemoryFits(lambda: small(64_000_000_000, 32_000_000_000))
    by_size = fits.known(entry)
    assert by_size.words == "Fits"
    assert "context of a usual length" in by_size.why
    read = fits.read(entry)
    assert read is not None
    assert read.why.startswith("The model needs ")
    assert "With a context of " in read.why
    assert fits.known(entry) == read
    assert fits.read(entry) is None, "nothing new"


def test_the_plan_counts_what_is_free_now(tmp_path: Path) -> None:
    machines = [small(64_000_000_000, 32_000_000_000)]
    entry = item("tiny", own_root(tmp_path), size_bytes=500_000)
    architectures.qwen3().write(entry.path)
    fits = MemoryFits(lambda: machines[-1])
    fits.read(entry)
    machines.append(small(64_000_000_000, 1_000_000))
    assert fits.known(entry).words == "Too large"


def test_the_plan_is_of_a_load_as_it_is_set(tmp_path: Path) -> None:
    entry = item("tiny", own_root(tmp_path), size_bytes=500_000)
    architectures.qwen3().write(entry.path)
    requests = [LoadRequest(entry.path, settings=LoadSettings(context_length=256))]
    fits = MemoryFits(lambda: small(64_000_000_000, 32_000_000_000), lambda _: requests[-1])
    fits.read(entry)
    assert "With a context of 256 " in fits.known(entry).why
    requests.append(LoadRequest(entry.path, settings=LoadSettings(context_length=512, cache_type=CacheType.F32)))
    assert "With a context of 512 " in fits.known(entry).why


def test_what_cannot_be_read_is_judged_by_its_size(tmp_path: Path) -> None:
    fits = MemoryFits(lambda: small(64_000_000_000, 32_000_000_000))
    gone = item("gone", own_root(tmp_path), size_bytes=500_000_000)
    assert fits.read(gone) is None
    assert fits.known(gone).words == "Fits"
    folder = replace(gone, format=ModelFormat.MLX)
    assert fits.read(folder) is None


def test_a_folder_is_planned_for_as_a_file_is(tmp_path: Path) -> None:
    fits = MemoryFits(lambda: small(64_000_000_000, 32_000_000_000))
    entry = replace(item("mlx", own_root(tmp_path), size_bytes=500_000), format=ModelFormat.MLX)
    write_mlx(entry.path)
    read = fits.read(entry)
    assert read is not None
    assert read.words == "Fits"
    assert "With a context of " in read.why
