"""Which GPUs the engine's library can use and how much memory they have, asked of a process of its own."""

from __future__ import annotations

import importlib.util
import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

_ANSWER_SECONDS = 20.0
_BACKENDS = ("cuda", "metal", "vulkan", "hip", "sycl", "musa", "cann", "opencl")


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """A device that computes, by the driver's word. Bytes."""

    name: str
    free_bytes: int
    total_bytes: int


def gpus() -> tuple[GpuMemory, ...]:
    """The GPUs that the engine can use now; none where its library was built for processors only.

    A driver may abort or hang, so another process is asked; that takes about a second. Nothing is raised.
    """
    if not _built_for_gpus():
        return ()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_tell, args=(theirs,), daemon=True)
    child.start()
    theirs.close()
    try:
        answer = ours.recv() if ours.poll(_ANSWER_SECONDS) else ()
    except (EOFError, OSError):
        answer = ()
    finally:
        ours.close()
        child.terminate()
        child.join()
    return tuple(GpuMemory(*each) for each in answer)


def _built_for_gpus() -> bool:
    """Whether a library for GPUs lies beside llama.cpp's; the package itself is not imported for that."""
    spec = importlib.util.find_spec("llama_cpp")
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return any(
        backend in file.name
        for folder in folders
        for file in (Path(folder) / "lib").glob("*ggml-*")
        for backend in _BACKENDS
    )


def _tell(answer: Connection) -> None:
    try:
        from forespeak.engines.llamacpp import bindings

        found = [
            (each.description, each.free_bytes, each.total_bytes) for each in bindings.devices() if "GPU" in each.kind
        ]
    except (ImportError, OSError, RuntimeError):
        found = []
    answer.send(found)
