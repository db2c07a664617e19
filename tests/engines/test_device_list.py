"""Asking the engine's library for devices without loading it here."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import dying_child
from forespeak.engines import device_list
from forespeak.engines.device_list import EngineFacts, built_for, engine_facts, gpus
from forespeak.engines.devices import Device

CARD = Device("CUDA0", "A card", "GPU", 3, 4, "CUDA", "0000:01:00.0")
PART = Device("Vulkan0", "Part of a processor", "integrated GPU", 1, 2, "Vulkan")


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


@pytest.mark.parametrize(
    ("name", "label"),
    [("libggml-cuda.so", "CUDA"), ("libggml-metal.dylib", "Metal"), ("ggml-vulkan.dll", "Vulkan")],
)
def test_a_build_for_gpus_is_known_by_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, label: str
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libggml-cpu-hipster.so").touch()
    (tmp_path / "lib" / name).touch()
    pretend(monkeypatch, tmp_path)
    assert built_for() == (label,)


def test_the_process_tells_what_the_library_lists() -> None:
    """The real library is asked; whether it lists a GPU depends on the machine, that it answers does not."""
    facts = engine_facts()
    assert facts.problem is None
    assert facts.version
    assert "CPU" in facts.backends
    assert {device.backend for device in facts.devices} <= set(facts.backends)
    processor = next(device for device in facts.devices if device.name == "CPU")
    assert processor.total_bytes >= processor.free_bytes > 0
    assert not processor.is_gpu


def test_only_gpus_are_for_the_memory_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (CARD, Device("CPU", "A processor", "CPU", 5, 9, "CPU"), PART)
    monkeypatch.setattr(device_list, "built_for", lambda: ("CUDA",))
    monkeypatch.setattr(device_list, "engine_facts", lambda: EngineFacts(devices=listed))
    assert gpus() == (CARD, PART)


def test_a_library_that_aborts_is_a_problem_and_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_list, "_tell", dying_child.abort)
    assert str(engine_facts().problem).startswith("llama.cpp ended its process")


class Answer:
    """A pipe's end that remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, item: object) -> None:
        self.sent.append(pickle.dumps(item))


def test_a_library_that_cannot_be_loaded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "forespeak.engines.llamacpp.bindings", None)
    monkeypatch.delattr("forespeak.engines.llamacpp.bindings", raising=False)
    answer = Answer()
    device_list._tell(answer)  # type: ignore[arg-type]
    facts = pickle.loads(answer.sent[0])
    assert str(facts.problem).startswith("llama.cpp could not be loaded")
