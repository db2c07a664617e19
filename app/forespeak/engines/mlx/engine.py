"""A loaded pair in this process: the Engine protocol over MLX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from forespeak.engines.engine import ConversionRequest, Converted, Loaded, LoadRequest, LoadSettings, ModelSummary
from forespeak.engines.mlx.loading import beside, conditions_of, is_f32, load_model, placement_of, summary
from forespeak.engines.mlx.model import MlxModel
from forespeak.engines.mlx.runtime import ENGINE, device_name, on_gpu
from forespeak.engines.mlx.settings import see_that_it_can
from forespeak.engines.pair_engine import PairEngine, ProgressListener
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.engines.steady import steady
from forespeak.errors import UserFacingError


class MlxEngine(PairEngine[MlxModel]):
    """Folders in the MLX format, by mlx-lm's networks. Blocking; one call at a time, always from one thread."""

    computer = "MLX"

    @property
    def engine(self) -> str:
        return ENGINE

    def convert(
        self, request: ConversionRequest, progress: ProgressListener, cancelled: Callable[[], bool]
    ) -> Converted | None:
        raise UserFacingError(
            f"“{request.source.name}” cannot be unpacked.",
            "Only GGUF files are unpacked to F32.",
            "Choose a GGUF file.",
        )

    def _settled(self, request: LoadRequest) -> LoadRequest:
        see_that_it_can(request)
        return request

    def _prepare(self, request: LoadRequest) -> None:
        """Nothing outlives a target."""

    def _load_model(
        self,
        request: LoadRequest,
        path: Path,
        start: float,
        share: float,
        progress: ProgressListener,
        cancelled: Callable[[], bool],
    ) -> MlxModel | None:
        return load_model(request, path, start, share, progress, cancelled)

    def _hindrance(self, draft: MlxModel) -> str | None:
        if draft.no_rollback is not None:
            return (
                "This draft model keeps what it has read in a state from which nothing can be taken back, so what it "
                "drafts in vain could not be forgotten."
            )
        if draft.rollback_limit is not None:
            draft.shorten_context(draft.rollback_limit[0])
        return None

    def _beside(self, model: MlxModel, settings: LoadSettings) -> MlxModel:
        return beside(model, settings)

    def _steady(self, model: MlxModel) -> None:
        steady(model, weights_are_f32=is_f32(model))

    def _conditions(self, request: LoadRequest, target: MlxModel, with_draft: bool) -> PairConditions:
        return conditions_of(request, target, with_draft)

    def _summary(self, path: Path, model: MlxModel) -> ModelSummary:
        return summary(path, model)

    def _loaded(self, request: LoadRequest, loaded: Loaded) -> Loaded:
        target, draft = (None if model is None else placement_of(model) for model in (self._target, self._draft))
        return replace(
            loaded,
            devices=(device_name(),),
            computes_on_cpu=not on_gpu(),
            placement=target,
            draft_placement=draft,
        )
