"""Asking the engine's library for GPUs without loading it here."""

from __future__ import annotations

import multiprocessing
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from forespeak.engines import gpu_list
from forespeak.engines.gpu_list import GpuMemory, gpus


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
    spec = None
    if folder is not None:
        spec = ModuleSpec("llama_cpp", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)


def test_a_build_for_processors_is_not_even_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: pytest.fail("a process was started"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libggml-cpu.so").touch()
    pretend(monkeypatch, tmp_path)
    assert gpus() == ()
    pretend(monkeypatch, None)
    assert gpus() == ()


@pytest.mark.parametrize("name", ["libggml-cuda.so", "libggml-metal.dylib", "ggml-vulkan.dll"])
def test_a_build_for_gpus_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / name).touch()
    pretend(monkeypatch, tmp_path)
    assert gpu_list._built_for_gpus()


def test_the_process_tells_what_the_library_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real library is asked; whether it lists a GPU depends on the machine, that it answers does not."""
    monkeypatch.setattr(gpu_list, "_built_for_gpus", lambda: True)
    found = gpus()
    assert all(isinstance(each, GpuMemory) and each.total_bytes >= each.free_bytes >= 0 for each in found)


class Answer:
    """A pipe's end that remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, item: object) -> None:
        self.sent.append(item)


def test_only_gpus_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from forespeak.engines.llamacpp import bindings

    listed = [
        bindings.Device("CPU", "A processor", "CPU", 5, 9),
        bindings.Device("CUDA0", "A card", "GPU", 3, 4),
        bindings.Device("Vulkan0", "Part of a processor", "integrated GPU", 1, 2),
    ]
    monkeypatch.setattr(bindings, "devices", lambda: listed)
    answer = Answer()
    gpu_list._tell(answer)  # type: ignore[arg-type]
    assert answer.sent == [[("A card", 3, 4), ("Part of a processor", 1, 2)]]
