"""A loaded pair in this process: the Engine protocol over llama.cpp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

from forespeak.engines.engine import ConversionRequest, Converted, Loaded, LoadRequest, ModelSummary, PairCheck
from forespeak.engines.llamacpp import bindings
from forespeak.engines.llamacpp.loading import (
    ENGINE,
    beside,
    conditions_of,
    convert,
    load_model,
    summary,
    uses_gpu,
)
from forespeak.engines.llamacpp.model import LlamaModel
from forespeak.engines.llamacpp.threads import ThreadGovernor, usable_cores
from forespeak.engines.pair_engine import PairEngine, ProgressListener
from forespeak.engines.pair_knowledge import PairConditions, PairMemory
from forespeak.engines.steady import steady

_ALL_F32 = "0"


class LlamaEngine(PairEngine[LlamaModel]):
    """GGUF files, evaluated by llama.cpp. Blocking; one call at a time."""

    computer = "llama.cpp"

    def __init__(self, pair_check: PairCheck, memory: PairMemory | None = None) -> None:
        super().__init__(pair_check, memory)
        self._thread_count: Callable[[], int] = usable_cores

    @property
    def engine(self) -> str:
        return ENGINE

    def convert(
        self, request: ConversionRequest, progress: ProgressListener, cancelled: Callable[[], bool]
    ) -> Converted | None:
        return convert(request, progress, cancelled)

    def _prepare(self, request: LoadRequest) -> None:
        fixed = request.threads
        self._thread_count = ThreadGovernor(usable_cores()).count if fixed is None else lambda: fixed

    def _load_model(
        self,
        request: LoadRequest,
        path: Path,
        start: float,
        share: float,
        progress: ProgressListener,
        cancelled: Callable[[], bool],
    ) -> LlamaModel | None:
        return load_model(request, path, start, share, progress, cancelled, self._thread_count)

    def _beside(self, model: LlamaModel, request: LoadRequest) -> LlamaModel:
        return beside(model, request)

    def _steady(self, model: LlamaModel) -> None:
        steady(model, weights_are_f32=model.native.metadata("general.file_type") == _ALL_F32)

    def _conditions(self, request: LoadRequest, target: LlamaModel, with_draft: bool) -> PairConditions:
        return conditions_of(request, target, with_draft)

    def _summary(self, path: Path, model: LlamaModel) -> ModelSummary:
        return summary(path, model)

    def _loaded(self, request: LoadRequest, loaded: Loaded) -> Loaded:
        return replace(
            loaded,
            devices=tuple(device.description for device in bindings.devices()),
            threads=self._thread_count(),
            computes_on_cpu=not uses_gpu(request),
        )

    def _twin(self) -> Self:
        twin = super()._twin()
        twin._thread_count = self._thread_count
        return twin
