"""What an engine is given to know of pairs from above, and what it gives for it: memory, and a check of parity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from forespeak.engines.engine import CacheType, GenerationRequest, LoadRequest, Notice, Progress, Split
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.speculation.events import Event
from forespeak.speculation.language_model import LanguageModel
from forespeak.speculation.sampling import Sampler


@dataclass(frozen=True, slots=True)
class PairConditions:
    """A pair and all that its costs depend on. `engine` is name and version of what computes.

    Devices are those that are really used, by their descriptions, and layers those that are really on GPUs, -1 for all.
    """

    target: Path
    draft: Path | None
    engine: str
    devices: tuple[str, ...]
    threads: int
    gpu_layers: int
    reproducible: bool
    context_length: int
    draft_devices: tuple[str, ...] = ()
    draft_gpu_layers: int = 0
    split: Split = Split.NONE
    cache_type: CacheType = CacheType.F16
    flash_attention: bool = False


class PairMemory(Protocol):
    """Where what a pair has learned outlives the engine. What is kept are JSON values. Never raises."""

    def recall(self, conditions: PairConditions) -> Mapping[str, Any] | None:
        """What was kept last under these very conditions; None if nothing was, or it cannot be read."""
        ...

    def keep(self, conditions: PairConditions, learned: Mapping[str, Any], *, soon: bool = False) -> None:
        """Write it down. With `soon`, only if that is due: it is kept again before long."""
        ...


class ParityBench(Protocol):
    """A loaded pair in the reproducible setting, with caches of its own beside those of the chat."""

    @property
    def engine(self) -> str:
        """Name and version of what computes."""
        ...

    @property
    def target(self) -> LanguageModel: ...

    def prompt(self, request: GenerationRequest) -> list[int]:
        """The tokens that a generation for this request begins with."""
        ...

    def sampler(self, request: GenerationRequest) -> Sampler:
        """What chooses its tokens."""
        ...

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]: ...


@runtime_checkable
class ReproducibleEngine(Protocol):
    """An engine whose loaded pair can be checked."""

    def bench(self, context_length: int) -> AbstractContextManager[ParityBench]:
        """The loaded pair in the reproducible setting. Raises UserFacingError."""
        ...

    @property
    def loaded_request(self) -> LoadRequest | None:
        """What is loaded; None for nothing."""
        ...


ParityCheck = Callable[
    [ReproducibleEngine, ParityRequest, Callable[[Progress], None], Callable[[], bool]], ParityResult
]
"""(engine, request, progress, cancelled) -> what was found until it was done or cancelled. Raises UserFacingError."""
