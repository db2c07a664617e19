"""The engine of this process: llama.cpp for GGUF files, MLX for folders, each imported when it is first needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forespeak.engines.devices import LayerChoice
from forespeak.engines.engine import (
    ConversionRequest,
    Converted,
    GenerationRequest,
    Loaded,
    LoadRequest,
    Notice,
    PairCheck,
    Progress,
)
from forespeak.engines.pair_knowledge import PairMemory, ParityBench
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Event

if TYPE_CHECKING:
    from forespeak.engines.pair_engine import PairEngine


_WITHOUT_MLX = (
    "There is none for Windows: choose a GGUF file of the same model."
    if sys.platform == "win32"
    else "Install it beside Forespeak (pip install 'forespeak[mlx]'), or choose a GGUF file of the same model."
)


def is_mlx(path: Path) -> bool:
    """Whether a path is a model in the MLX format: those are folders, and a GGUF model is loaded by a file."""
    return path.is_dir()


class EngineByFormat:
    """An Engine that hands each pair to the engine of its target. Making one imports neither."""

    def __init__(
        self, pair_check: PairCheck, memory: PairMemory | None = None, layer_choice: LayerChoice | None = None
    ) -> None:
        self._pair_check = pair_check
        self._memory = memory
        self._layer_choice = layer_choice
        self._engine: PairEngine[Any] | None = None
        self._runs_mlx = False

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        return self._for(is_mlx(request.target)).load(request, progress, cancelled)

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        return self._chosen().generate(request, cancelled)

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        return self._for(mlx=False).convert(request, progress, cancelled)

    def bench(self, context_length: int) -> AbstractContextManager[ParityBench]:
        return self._chosen().bench(context_length)

    @property
    def engine(self) -> str:
        """Name and version of what computes; empty before anything is loaded."""
        return "" if self._engine is None else self._engine.engine

    @property
    def loaded_request(self) -> LoadRequest | None:
        return None if self._engine is None else self._engine.loaded_request

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _chosen(self) -> PairEngine[Any]:
        if self._engine is None:
            raise UserFacingError("No model is loaded.", "", "Choose a target model first.")
        return self._engine

    def _for(self, mlx: bool) -> PairEngine[Any]:
        if self._engine is None or self._runs_mlx != mlx:
            self.close()
            self._engine = None
            self._engine, self._runs_mlx = self._made(mlx), mlx
        return self._engine

    def _made(self, mlx: bool) -> PairEngine[Any]:
        if not mlx:
            from forespeak.engines.llamacpp.engine import LlamaEngine

            return LlamaEngine(self._pair_check, self._memory, self._layer_choice)
        try:
            from forespeak.engines.mlx.engine import MlxEngine
        except ImportError as error:
            raise UserFacingError(
                "A model in the MLX format needs mlx-lm, which is not installed here.",
                f"mlx-lm is Apple's library that runs such models ({error}).",
                _WITHOUT_MLX,
            ) from error
        return MlxEngine(self._pair_check, self._memory)
