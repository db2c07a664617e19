"""Whether a request's models fit into memory, asked before anything is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from forespeak.engines.devices import Device, ModelSetting, draft_setting, target_setting
from forespeak.engines.engine import DEFAULT_CONTEXT_LENGTH, LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.machine_memory import Gpu, Machine, now
from forespeak.models.memory import (
    Fit,
    MemoryPlan,
    MemorySettings,
    Quant,
    Suggestion,
    SuggestionKind,
    fitting_layers,
    plan_of_files,
)
from forespeak.models.model_layout import layout_of_file

CPU_BATCH, GPU_BATCH = 128, 512
"""As in `engines.llamacpp.loading`."""
OUTPUT_ROWS = 49
"""The longest draft and one more, as there."""

OPTIONS = {
    SuggestionKind.CONTEXT: "--context {context}",
    SuggestionKind.REPRODUCIBLE: "without --reproducible",
    SuggestionKind.CACHE_TYPE: "--cache-type {cache}",
    SuggestionKind.GPU_LAYERS: "--gpu-layers {layers}",
    SuggestionKind.NO_DRAFT: "--draft none",
}
"""What the command line is told to follow an advice."""


def machine_now() -> Machine:
    """The machine's memory with the GPUs that the engine can use. Takes a second where there are such; reads files."""
    return now(gpus_now())


def gpus_now() -> list[Gpu]:
    """The GPUs that the engine can use, and what is free there. Takes a second where there are such."""
    from forespeak.engines.device_list import gpus

    return as_gpus(gpus())


def as_gpus(devices: Sequence[Device]) -> list[Gpu]:
    """Devices for a memory plan, which tells them apart by what people call them."""
    often = {name for name, count in Counter(device.description for device in devices).items() if count > 1}
    return [
        Gpu(
            f"{device.description} ({device.name})" if device.description in often else device.description,
            device.free_bytes,
            device.total_bytes,
            device.name,
            device.is_integrated,
            device.backend,
            device.hardware_id,
        )
        for device in devices
    ]


def memory_settings(request: LoadRequest, machine: Machine) -> MemorySettings:
    """What our engine makes of a request. Raises UserFacingError for what it refuses."""
    devices = [_device(gpu) for gpu in machine.gpus]
    target, draft = target_setting(request.settings, devices), draft_setting(request.settings, devices)
    return MemorySettings(
        context_length=request.settings.context_length,
        cache_type=target.cache_type.value,
        flash_attention=_uses_flash_attention(target),
        batch=_batch(target),
        outputs=OUTPUT_ROWS,
        gpu_layers=target.gpu_layers,
        draft_gpu_layers=draft.gpu_layers if draft.gpu_layers != target.gpu_layers else None,
        usual_context=DEFAULT_CONTEXT_LENGTH,
        draft_flash_attention=_uses_flash_attention(draft),
        draft_batch=_batch(draft),
        gpus=_names(target, machine),
        draft_gpus=_names(draft, machine),
        reproducible=request.settings.reproducible,
    )


def plan_load(request: LoadRequest, machine: Machine, quants: Sequence[Quant] = ()) -> MemoryPlan:
    """The plan for a request on a machine. Raises UserFacingError for a file that cannot be read, or as above."""
    return plan_of_files(request.target, request.draft, memory_settings(request, machine), machine, quants)


def choose_layers(request: LoadRequest, devices: Sequence[Device]) -> LoadRequest:
    """A `LayerChoice`: by the memory plan. The engine meets files that cannot be read itself."""
    machine = now(as_gpus(devices))
    try:
        wanted = memory_settings(request, machine)
        draft = None if request.draft is None else layout_of_file(request.draft)
        settings = fitting_layers(layout_of_file(request.target), draft, wanted, machine)
    except (UserFacingError, OSError):
        return request
    if settings == wanted:
        return request
    layers = replace(request.settings, gpu_layers=settings.gpu_layers, draft_gpu_layers=settings.draft_gpu_layers)
    return replace(request, settings=layers)


def _device(gpu: Gpu) -> Device:
    """As the engine lists it; that it cannot share out rows is told by the engine itself."""
    return Device(
        gpu.device or gpu.name,
        gpu.name,
        "integrated GPU" if gpu.integrated else "GPU",
        gpu.free_bytes,
        gpu.total_bytes,
        gpu.backend,
        gpu.hardware_id,
        splits_rows=True,
    )


def _names(setting: ModelSetting, machine: Machine) -> tuple[str, ...]:
    devices = {device.name for device in setting.devices}
    return tuple(gpu.name for gpu in machine.gpus if (gpu.device or gpu.name) in devices)


def _batch(setting: ModelSetting) -> int:
    return GPU_BATCH if setting.on_gpu else CPU_BATCH


def _uses_flash_attention(setting: ModelSetting) -> bool:
    # GPUs can, with few exceptions, where it is left to them.
    return setting.on_gpu if setting.flash_attention is None else setting.flash_attention


def see_that_it_fits(
    request: LoadRequest,
    *,
    anyway: bool,
    ask: Callable[[str], bool] | None,
    options: Mapping[SuggestionKind, str] = OPTIONS,
    machine: Callable[[], Machine] = machine_now,
) -> None:
    """What the command line does before it loads: a pair that is too large is asked about, or refused.

    `ask` None: nobody is there to answer. `options`: what this command can be told. Raises UserFacingError with what
    is needed, what is free and what would fit.
    """
    if anyway:
        return
    try:
        planned = plan_load(request, machine())
    except UserFacingError:
        # The engine meets the same file and tells what is wrong with it.
        return
    if planned.fit is not Fit.TOO_LARGE or (ask is not None and ask(f"{planned.sentence} Load it anyway?")):
        return
    advice = [
        f"{each.words.removesuffix('.')} ({_option(each, options)})."
        for each in planned.suggestions
        if each.kind in options
    ]
    raise UserFacingError(
        "This does not fit into this machine's memory.",
        planned.sentence,
        " ".join([*advice, "--load-anyway loads it all the same; the system may become slow or end the program."]),
    )


def _option(advice: Suggestion, options: Mapping[SuggestionKind, str]) -> str:
    settings = advice.settings
    return options[advice.kind].format(
        context=settings.context_length, layers=settings.gpu_layers, cache=settings.cache_type
    )
