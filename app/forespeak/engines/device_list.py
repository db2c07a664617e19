"""What the engine's library can compute with, and what it finds to compute on, asked of a process of its own."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from forespeak.engines.asking import ask_child
from forespeak.engines.devices import Device

_MODULES = {
    "cuda": "CUDA",
    "metal": "Metal",
    "vulkan": "Vulkan",
    "hip": "ROCm",
    "sycl": "SYCL",
    "musa": "MUSA",
    "cann": "CANN",
    "opencl": "OpenCL",
}
"""Parts of file names of ggml's libraries for GPUs, and what llama.cpp calls them."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """llama.cpp as it is installed. `problem`: why it does not answer, in a sentence; nothing else is known then.

    `backends`: what it can compute with here; `modules`: what it was built for, whether or not that works here.
    """

    version: str | None = None
    build: str | None = None
    backends: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    problem: str | None = None


def gpus() -> tuple[Device, ...]:
    """The GPUs that the engine can use now; none where its library was built for processors only.

    Takes about a second where it was built for others. Nothing is raised.
    """
    return tuple(device for device in engine_facts().devices if device.is_gpu) if built_for() else ()


def engine_facts() -> EngineFacts:
    """All of it, asked of another process: a driver may abort or hang. Nothing is raised."""
    answer = ask_child(_tell, "llama.cpp")
    return answer if isinstance(answer, EngineFacts) else EngineFacts(problem=str(answer))


def built_for() -> tuple[str, ...]:
    """Which GPU libraries lie beside llama.cpp's own; the package itself is not imported for that."""
    spec = importlib.util.find_spec("llama_cpp")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    names = [file.name for folder in folders for file in (Path(folder) / "lib").glob("*ggml-*")]
    return tuple(label for part, label in _MODULES.items() if any(f"ggml-{part}" in name for name in names))


def _tell(answer: Connection) -> None:
    try:
        from forespeak.engines.llamacpp import bindings

        facts = EngineFacts(
            version=bindings.version(),
            build=bindings.system_info().strip(" |"),
            backends=tuple(bindings.backends()),
            modules=built_for(),
            devices=tuple(bindings.devices()),
        )
    except (ImportError, OSError, RuntimeError) as error:
        facts = EngineFacts(problem=f"llama.cpp could not be loaded: {error}", modules=built_for())
    answer.send(facts)
