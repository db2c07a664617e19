"""Whether MLX is here, and what it computes on, asked of a process of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import metadata
from multiprocessing.connection import Connection

from forespeak.engines.asking import ask_child

_MISSING = "not installed; models in the MLX format need it (pip install 'forespeak[mlx]')"
_NOT_BUNDLED = "not in this bundle; models in the MLX format need Forespeak installed from its source"


@dataclass(frozen=True, slots=True)
class MlxFacts:
    """`mlx` and `mlx_lm` are versions, None for what is not installed. `device` is what MLX chooses by itself.

    `memory_bytes`: what a GPU has of it, 0 for the processor. `problem`: why it does not answer, in a sentence.
    """

    mlx: str | None = None
    mlx_lm: str | None = None
    device: str | None = None
    memory_bytes: int = 0
    problem: str | None = None

    @property
    def words(self) -> str:
        """For people: the device, or what is missing."""
        if self.problem is not None:
            return self.problem
        if self.device is None and sys.platform == "win32":
            return "there is none for Windows"
        if self.device is None:
            return _NOT_BUNDLED if getattr(sys, "frozen", False) else _MISSING
        return self.device + (f", {self.memory_bytes / 1e9:.1f} GB" if self.memory_bytes else "")


def mlx_facts() -> MlxFacts:
    """Takes a second where MLX is installed, since its driver may abort or hang. Nothing is raised."""
    mlx, mlx_lm = _version("mlx"), _version("mlx-lm")
    if mlx is None or mlx_lm is None:
        return MlxFacts(mlx, mlx_lm)
    answer = ask_child(_tell, "MLX")
    if not isinstance(answer, tuple):
        return MlxFacts(mlx, mlx_lm, problem=str(answer))
    device, memory_bytes = answer
    return MlxFacts(mlx, mlx_lm, device, memory_bytes)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _tell(answer: Connection) -> None:
    try:
        from forespeak.engines.mlx.runtime import device_memory, device_name

        answer.send((device_name(), device_memory()))
    except (ImportError, OSError, RuntimeError) as error:
        answer.send(f"MLX could not be loaded: {error}")
