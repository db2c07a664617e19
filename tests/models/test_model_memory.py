"""Caches and buffers: by hand, and against what llama.cpp reserves for the same file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forespeak.models.model_layout import layout_of_file
from forespeak.models.model_memory import ContextSettings, cache_bytes, compute_bytes, memory_of, work_bytes
from memory_child import Question, Reserved, reserved
from models import architectures
from models.architectures import ALL, Architecture

MIB = 1 << 20
KINDS = {False: "F16", True: "F32"}


def test_a_cache_by_type_and_length(tmp_path: Path) -> None:
    layout = layout_of_file(architectures.llama().write(tmp_path / "m.gguf"))
    # 8 layers, keys and values of 1,024 each, 4,096 positions.
    assert sum(cache_bytes(layout, ContextSettings(4096))) == 8 * 2048 * 4096 * 2
    assert sum(cache_bytes(layout, ContextSettings(4096, "F32"))) == 8 * 2048 * 4096 * 4
    assert sum(cache_bytes(layout, ContextSettings(4096, "BF16"))) == 8 * 2048 * 4096 * 2
    assert sum(cache_bytes(layout, ContextSettings(4096, "Q8_0"))) == 8 * 2048 // 32 * 34 * 4096
    assert sum(cache_bytes(layout, ContextSettings(4096, "Q4_0"))) == 8 * 2048 // 32 * 18 * 4096
    # Positions come 256 at a time.
    assert cache_bytes(layout, ContextSettings(4000)) == cache_bytes(layout, ContextSettings(4096))


def test_a_windows_cache_ends_at_the_window_unless_all_is_kept(tmp_path: Path) -> None:
    layout = layout_of_file(architectures.gemma3().write(tmp_path / "m.gguf"))
    whole = 2 * 1024 * 8192 * 2
    assert cache_bytes(layout, ContextSettings(8192)) == [whole] * 12
    # 1,024 and a batch of 128, to the next 256.
    assert cache_bytes(layout, ContextSettings(8192, windows=True))[4:6] == [2 * 1024 * 1280 * 2, whole]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Reserved]:
    """By architecture, and whether windows end their cache: what llama.cpp would allocate."""
    folder = tmp_path_factory.mktemp("architectures")
    asked = {
        (make.__name__, windows): Question(folder / make.__name__, 2048, kind=KINDS[windows], windows=windows)
        for make in ALL
        for windows in (False, True)
    }
    for make in ALL:
        make().write(folder / make.__name__)
    return dict(zip(asked, reserved(list(asked.values())), strict=True))


@pytest.mark.parametrize("windows", [False, True], ids=["F16", "F32-windows"])
@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_llama_cpp_reserves_the_same(
    tmp_path: Path, answers: dict[tuple[str, bool], Reserved], make: Callable[[], Architecture], *, windows: bool
) -> None:
    found = answers[make.__name__, windows]
    layout = layout_of_file(make().write(tmp_path / "m.gguf"))
    settings = ContextSettings(2048, KINDS[windows], windows=windows)
    assert sum(cache_bytes(layout, settings)) == pytest.approx(found.cache, abs=0.02 * MIB)
    assert compute_bytes(layout, settings) == pytest.approx(found.compute, rel=0.1)


def test_a_processor_needs_room_to_multiply_with_half_precision(tmp_path: Path) -> None:
    layout = layout_of_file(architectures.llama().write(tmp_path / "m.gguf"))
    assert work_bytes(layout, ContextSettings(2048)) == 2 * 2048 * 128 * 24
    assert work_bytes(layout, ContextSettings(2048, "F32")) == 0


def test_layers_go_to_the_gpu_from_the_last_on(tmp_path: Path) -> None:
    layout = layout_of_file(architectures.llama().write(tmp_path / "m.gguf"))
    settings = ContextSettings(4096, batch=512, flash_attention=True)
    layer, cache = layout.layers[0].weight_bytes, 2048 * 4096 * 2
    none = memory_of(layout, settings, 0)
    assert (none.gpu, none.host_weights, none.host_cache) == (0, layout.weight_bytes, 8 * cache)
    three = memory_of(layout, settings, 3)
    # The output counts as a layer behind the last one.
    assert three.gpu_weights == 2 * layer + layout.output_bytes
    assert (three.gpu_cache, three.host_cache) == (2 * cache, 6 * cache)
    everything = memory_of(layout, settings, -1)
    assert everything.host_weights == layout.input_bytes
    assert everything.host_cache == 0
    assert memory_of(layout, settings, 99) == everything


def test_a_tied_output_is_held_twice_when_it_is_on_the_gpu(tmp_path: Path) -> None:
    layout = layout_of_file(architectures.gemma3().write(tmp_path / "m.gguf"))
    settings = ContextSettings(4096)
    everything = memory_of(layout, settings, -1)
    assert everything.host_weights == layout.input_bytes
    assert everything.gpu_weights == layout.weight_bytes
    assert memory_of(layout, settings, 0).host_weights == layout.weight_bytes
