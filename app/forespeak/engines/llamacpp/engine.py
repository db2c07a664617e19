"""A loaded pair in this process: the Engine protocol over llama.cpp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

from forespeak.engines.devices import Device, LayerChoice, draft_setting, target_setting
from forespeak.engines.engine import (
    ConversionRequest,
    Converted,
    Loaded,
    LoadRequest,
    LoadSettings,
    ModelSummary,
    PairCheck,
)
from forespeak.engines.llamacpp import bindings
from forespeak.engines.llamacpp.loading import (
    ENGINE,
    beside,
    conditions_of,
    convert,
    load_model,
    summary,
)
from forespeak.engines.llamacpp.model import LlamaModel
from forespeak.engines.llamacpp.threads import ThreadGovernor, usable_cores
from forespeak.engines.pair_engine import PairEngine, ProgressListener
from forespeak.engines.pair_knowledge import PairConditions, PairMemory
from forespeak.engines.steady import steady

_ALL_F32 = "0"


class LlamaEngine(PairEngine[LlamaModel]):
    """GGUF files, evaluated by llama.cpp. Blocking; one call at a time.

    `layer_choice` says how many layers go onto GPUs where a request leaves that open; None: all of them.
    """

    computer = "llama.cpp"

    def __init__(
        self, pair_check: PairCheck, memory: PairMemory | None = None, layer_choice: LayerChoice | None = None
    ) -> None:
        super().__init__(pair_check, memory)
        self._layer_choice = layer_choice
        self._thread_count: Callable[[], int] = usable_cores

    @property
    def engine(self) -> str:
        return ENGINE

    def convert(
        self, request: ConversionRequest, progress: ProgressListener, cancelled: Callable[[], bool]
    ) -> Converted | None:
        return convert(request, progress, cancelled)

    def _settled(self, request: LoadRequest) -> LoadRequest:
        listed = bindings.devices()
        # What cannot be is told before anything is unloaded for it.
        target_setting(request.settings, listed)
        draft_setting(request.settings, listed)
        gpus = [self._with_own_memory(device) for device in listed if device.is_gpu]
        if self._layer_choice is None or not gpus:
            return request
        return self._layer_choice(request, gpus)

    def _with_own_memory(self, device: Device) -> Device:
        """The device as it is without the loaded pair, which gives way to the next one."""
        own = sum(
            buffer.size_bytes
            for model in (self._target, self._draft)
            if model is not None
            for buffer in model.placement.buffers
            if buffer.device == device.name
        )
        return replace(device, free_bytes=min(device.total_bytes, device.free_bytes + own))

    def _prepare(self, request: LoadRequest) -> None:
        fixed = request.settings.threads
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
        # A pair's target is loaded first.
        setting_of = target_setting if self._target is None else draft_setting
        settings = request.settings
        setting = setting_of(settings, bindings.devices())
        return load_model(settings, setting, path, start, share, progress, cancelled, self._thread_count)

    def _beside(self, model: LlamaModel, settings: LoadSettings) -> LlamaModel:
        return beside(model, settings)

    def _steady(self, model: LlamaModel) -> None:
        steady(model, weights_are_f32=model.native.metadata("general.file_type") == _ALL_F32)

    def _conditions(self, request: LoadRequest, target: LlamaModel, with_draft: bool) -> PairConditions:
        return conditions_of(request, target, self._draft if with_draft else None)

    def _summary(self, path: Path, model: LlamaModel) -> ModelSummary:
        return summary(path, model)

    def _loaded(self, request: LoadRequest, loaded: Loaded) -> Loaded:
        target, draft = (None if model is None else model.placement for model in (self._target, self._draft))
        return replace(
            loaded,
            devices=tuple(device.description for device in bindings.devices()),
            threads=self._thread_count(),
            computes_on_cpu=any(
                placement is not None and placement.gpu_layers < placement.layers for placement in (target, draft)
            ),
            placement=target,
            draft_placement=draft,
        )

    def _twin(self) -> Self:
        twin = super()._twin()
        twin._thread_count = self._thread_count
        return twin
