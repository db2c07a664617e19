"""What of the load settings MLX can do: which it takes over, and which it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from forespeak.engines.engine import CPU_DEVICE, CacheType, LoadRequest, LoadSettings
from forespeak.engines.mlx.runtime import has_gpu
from forespeak.errors import UserFacingError

_BITS: Mapping[CacheType, int | None] = MappingProxyType({CacheType.F16: None, CacheType.Q8_0: 8, CacheType.Q4_0: 4})
"""Bits of a value in a cache; None: as the network computes it, which for most is 16 bits."""


def cache_bits(settings: LoadSettings) -> int | None:
    """Bits of a value in the cache, None for values as the network computes them. Only for what `see_that_it_can`."""
    # Quantised values are rounded in groups, which no batch changes, but the reproducible setting is the exact one.
    return None if settings.reproducible else _BITS[settings.cache_type]


def see_that_it_can(request: LoadRequest) -> None:
    """Raises UserFacingError for settings that MLX has nothing like.

    What has no meaning here, since MLX decides it itself, is passed over: threads, flash attention, the split between
    GPUs. It computes all of a model on one device.
    """
    settings = request.settings
    if settings.cache_type not in _BITS and not settings.reproducible:
        raise UserFacingError(
            f"MLX has no cache in {settings.cache_type.value}.",
            "It keeps the text in the numbers that the network computes in, or in 8 or 4 bits.",
            "Choose the cache type F16 (as the network computes), Q8_0 or Q4_0.",
        )
    for name in (settings.device, settings.draft_device):
        # There is one at most, and llama.cpp, whose list the names are from, calls it by another name.
        if name is not None and not _is_processor(name) and not has_gpu():
            raise UserFacingError(
                f"MLX does not compute on “{name}”.",
                "Here it has the processor alone.",
                f"Choose the device {CPU_DEVICE}, leave it on automatic, or choose a GGUF file of the same model.",
            )
    if request.draft is not None and _draft_on_processor(settings) != on_processor(settings):
        raise UserFacingError(
            "MLX cannot put target and draft on two devices.",
            "One of them is to be computed on the processor alone.",
            "Choose the same device for both, or leave the draft's on automatic.",
        )


def on_processor(settings: LoadSettings) -> bool:
    """Whether the processor alone is asked for. MLX does not share a model's layers out."""
    return settings.gpu_layers == 0 or _is_processor(settings.device)


def _draft_on_processor(settings: LoadSettings) -> bool:
    return settings.layers_of_draft == 0 or _is_processor(settings.device_of_draft)


def _is_processor(name: str | None) -> bool:
    return name is not None and name.casefold() == CPU_DEVICE.casefold()
