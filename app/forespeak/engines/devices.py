"""On what a pair computes and with what: the load settings, held against the devices that there are.

Engine, memory plan and command line ask the same functions, so they never disagree. Nothing here asks a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forespeak.engines.engine import CPU_DEVICE, CacheType, LoadRequest, LoadSettings, Split
from forespeak.errors import UserFacingError

_DISCRETE, _INTEGRATED = "GPU", "integrated GPU"


@dataclass(frozen=True, slots=True)
class Device:
    """A device that an engine lists. Memory in bytes, as the driver tells it.

    `kind`: CPU, GPU, integrated GPU or accelerator; `backend`: what drives it, such as CUDA, Vulkan, Metal or ROCm;
    `hardware_id`: where it is plugged in, by which one card is known again behind two backends.
    """

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int
    backend: str = ""
    hardware_id: str | None = None
    splits_rows: bool = False

    @property
    def is_gpu(self) -> bool:
        return self.kind in {_DISCRETE, _INTEGRATED}

    @property
    def is_integrated(self) -> bool:
        return self.kind == _INTEGRATED


LayerChoice = Callable[[LoadRequest, Sequence[Device]], LoadRequest]
"""(request, GPUs with what is free on each) -> the request with as many layers on them as fit. Never raises."""


@dataclass(frozen=True, slots=True)
class ModelSetting:
    """How one model of a request is loaded. `devices`: the GPUs that get layers, none for the processor alone.

    `gpu_layers` -1: all. `flash_attention` None: where every device of the model can.
    """

    devices: tuple[Device, ...]
    gpu_layers: int
    split: Split
    cache_type: CacheType
    flash_attention: bool | None

    @property
    def on_gpu(self) -> bool:
        return bool(self.devices)


PROCESSOR = ModelSetting((), 0, Split.NONE, CacheType.F16, flash_attention=False)


def automatic_gpus(devices: Sequence[Device]) -> tuple[Device, ...]:
    """The GPUs that are used where none is named: llama.cpp's own choice (`llama_prepare_model_devices`).

    One card behind two backends counts once, by the first of them; integrated ones only where there is no other, and
    of one backend.
    """
    gpus: list[Device] = []
    for device in devices:
        if device.kind == _DISCRETE and not _is_among(device, gpus):
            gpus.append(device)
    integrated = [device for device in devices if device.is_integrated]
    return tuple(gpus or [device for device in integrated if device.backend == integrated[0].backend])


def _is_among(device: Device, others: Sequence[Device]) -> bool:
    return device.hardware_id is not None and any(each.hardware_id == device.hardware_id for each in others)


def target_setting(settings: LoadSettings, devices: Sequence[Device]) -> ModelSetting:
    """How the target of a pair is loaded. Raises UserFacingError for what cannot be."""
    return _setting(settings, _gpus_of(settings.device, settings.split, devices), settings.gpu_layers)


def draft_setting(settings: LoadSettings, devices: Sequence[Device]) -> ModelSetting:
    """How its draft is: whole on one GPU, since what is small only loses by being shared out.

    Raises UserFacingError for what cannot be.
    """
    return _setting(settings, _gpus_of(settings.device_of_draft, Split.NONE, devices), settings.layers_of_draft)


def _gpus_of(name: str | None, split: Split, devices: Sequence[Device]) -> tuple[Device, ...]:
    if name is not None:
        if name.casefold() == CPU_DEVICE.casefold():
            return ()
        named = [device for device in devices if device.is_gpu and device.name.casefold() == name.casefold()]
        if not named:
            known = ", ".join([CPU_DEVICE, *(device.name for device in devices if device.is_gpu)])
            raise UserFacingError(
                f"There is no device “{name}”.",
                f"The engine can use these: {known}.",
                "Choose one of them; “forespeak doctor” says why a GPU is missing.",
            )
        return (named[0],)
    gpus = automatic_gpus(devices)
    if split is Split.NONE and gpus:
        return (max(gpus, key=lambda device: device.free_bytes),)
    return gpus


def _setting(settings: LoadSettings, gpus: tuple[Device, ...], layers: int) -> ModelSetting:
    if layers == 0:
        gpus = ()
    split = settings.split if len(gpus) > 1 else Split.NONE
    unable = [device.name for device in gpus if not device.splits_rows]
    if split is Split.ROW and unable:
        raise UserFacingError(
            "The model cannot be shared out by rows.",
            f"This build of llama.cpp cannot do that on {unable[0]}.",
            "Share it out by layers, or use one device.",
        )
    _see_that_cache_can_be_read(settings)
    cache_type, flash_attention = settings.cache_type, settings.flash_attention
    if settings.reproducible:
        cache_type, flash_attention = CacheType.F32, False
    elif flash_attention is None and cache_type.is_quantised:
        # Nothing else reads such values.
        flash_attention = True
    elif flash_attention is None and not gpus:
        # ggml's takes its rows one by one on processors: five rows behind 1,500 tokens take 2.5 times as long with it.
        flash_attention = False
    return ModelSetting(gpus, layers if gpus else 0, split, cache_type, flash_attention)


def _see_that_cache_can_be_read(settings: LoadSettings) -> None:
    """Raises UserFacingError where cache type and flash attention contradict each other (`llama_init_from_model`)."""
    if settings.reproducible or settings.cache_can_be_read:
        return
    raise UserFacingError(
        f"A cache in {settings.cache_type.value} needs flash attention, and that is switched off.",
        "llama.cpp reads values in so few bits by flash attention only.",
        f"Leave flash attention on automatic, or choose the cache type {CacheType.F16.value}.",
    )
