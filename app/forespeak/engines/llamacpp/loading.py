"""From files to loaded models, and from one file to another: what llama.cpp does before it can generate."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from forespeak.engines.devices import Device, ModelSetting
from forespeak.engines.drafting import MAX_DRAFT_LENGTH
from forespeak.engines.engine import (
    DEFAULT_CONTEXT_LENGTH,
    CacheType,
    ConversionRequest,
    Converted,
    LoadRequest,
    LoadSettings,
    ModelSummary,
    NumberFormat,
    Placement,
    Progress,
)
from forespeak.engines.llamacpp import bindings
from forespeak.engines.llamacpp.model import LlamaModel
from forespeak.engines.llamacpp.threads import usable_cores
from forespeak.engines.pair_engine import ProgressListener
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.errors import UserFacingError

_CPU_BATCH, _GPU_BATCH = 128, 512
"""Tokens of one evaluation of a prompt. A stop waits for one of these; larger ones gain little on a CPU."""

_PART = re.compile(r"(.+-)\d{5,9}(-of-\d{5,9}\.\w+)", re.IGNORECASE | re.DOTALL)
"""One file of a split model, by its name: llama.cpp is told the first of them and finds the others itself."""

ENGINE = f"llama.cpp {bindings.version()}"


def load_model(
    settings: LoadSettings,
    setting: ModelSetting,
    path: Path,
    start: float,
    share: float,
    progress: ProgressListener,
    cancelled: Callable[[], bool],
    thread_count: Callable[[], int],
) -> LlamaModel | None:
    """The model of a file with a context; its progress is told as `start` to `start + share`. None if cancelled.

    Raises UserFacingError.
    """

    def report(fraction: float) -> bool:
        progress(Progress(start + share * fraction, f"Loading {path.stem}"))
        return not cancelled()

    if not path.is_file():
        raise UserFacingError(
            f"There is no model file at {path}.", "It may have been moved or deleted.", "Choose another one."
        )
    native: bindings.NativeModel | None = None
    try:
        native = bindings.NativeModel(path, report, setting=setting, read_whole=_fits_twice(path, setting))
        if not native.has_decoder:
            raise bindings.NativeError("the model does not generate text")
        context = make_context(native, settings, setting, thread_count())
    except bindings.NativeError as error:
        if native is not None:
            native.close()
        if cancelled():
            return None
        raise UserFacingError(
            f"{path.name} could not be loaded.",
            f"llama.cpp says: {error}.",
            _remedy(setting),
        ) from error
    return LlamaModel(native, context, MAX_DRAFT_LENGTH + 1, thread_count, setting=setting)


def _remedy(setting: ModelSetting) -> str:
    if setting.cache_type.is_quantised:
        return (
            f"Not every kind of model can be read from a cache in {setting.cache_type.value}: "
            f"try the cache type {CacheType.F16.value}."
        )
    if setting.on_gpu:
        return (
            "The file may be damaged, of a kind that this version does not know, or too large for the GPU's memory: "
            "try it with fewer layers there."
        )
    return "The file may be damaged, of a kind that this version does not know, or too large for the memory."


def _fits_twice(path: Path, setting: ModelSetting) -> bool:
    """Whether the weights may be copied into memory of our own.

    A processor reads them faster from there, in huge pages (`huge_pages.py`), than from a mapped file. Where memory is
    short the mapped file is better: the system may drop parts of it and read them again.
    """
    return not setting.on_gpu and psutil.virtual_memory().available > 2.5 * _size(path)


def _size(path: Path) -> int:
    """Bytes of a model's file, or of all files of a split one that are there."""
    size = path.stat().st_size
    part = _PART.fullmatch(path.name)
    if part is None:
        return size
    # A name may claim any number of parts, so they are not counted up. Not every folder can be listed.
    with contextlib.suppress(OSError):
        for other in path.parent.iterdir():
            named = _PART.fullmatch(other.name)
            if other != path and named is not None and named.groups() == part.groups() and other.is_file():
                size += other.stat().st_size
    return size


def make_context(
    native: bindings.NativeModel, settings: LoadSettings, setting: ModelSetting, threads: int
) -> bindings.NativeContext:
    """Raises NativeError."""
    length = settings.context_length or min(native.trained_context_length, DEFAULT_CONTEXT_LENGTH)
    return bindings.NativeContext(
        native,
        length=length,
        batch=_GPU_BATCH if setting.on_gpu else _CPU_BATCH,
        outputs=MAX_DRAFT_LENGTH + 1,
        threads=threads,
        cache_type=setting.cache_type,
        flash_attention=setting.flash_attention,
    )


def beside(model: LlamaModel, settings: LoadSettings) -> LlamaModel:
    """The same weights with another context, to be closed first. Raises UserFacingError."""
    setting = model.setting
    if settings.reproducible:
        setting = replace(setting, cache_type=CacheType.F32, flash_attention=False)
    try:
        context = make_context(model.native, settings, setting, model.thread_count())
    except bindings.NativeError as error:
        raise UserFacingError(
            "There is not enough memory beside the loaded models.",
            f"llama.cpp says: {error}.",
            "Load the models with a shorter context, then try again.",
        ) from error
    return LlamaModel(
        model.native, context, MAX_DRAFT_LENGTH + 1, model.thread_count, setting=setting, owns_weights=False
    )


def conditions_of(request: LoadRequest, target: LlamaModel, draft: LlamaModel | None) -> PairConditions:
    """What the costs of a loaded pair depend on."""
    settings, placement = request.settings, target.placement
    beside = None if draft is None else draft.placement
    listed = bindings.devices()
    return PairConditions(
        target=request.target,
        draft=None if draft is None else request.draft,
        engine=ENGINE,
        devices=_descriptions(placement, listed),
        threads=usable_cores() if settings.threads is None else settings.threads,
        gpu_layers=_layers(placement),
        reproducible=settings.reproducible,
        context_length=target.context_length,
        draft_devices=() if beside is None else _descriptions(beside, listed),
        draft_gpu_layers=0 if beside is None else _layers(beside),
        split=placement.split,
        cache_type=placement.cache_type,
        flash_attention=placement.flash_attention,
    )


def _layers(placement: Placement) -> int:
    """-1 for all: models of different depths are then loaded alike."""
    return -1 if placement.gpu_layers == placement.layers else placement.gpu_layers


def _descriptions(placement: Placement, listed: Sequence[Device]) -> tuple[str, ...]:
    return tuple(device.description for device in listed if device.name in placement.devices)


def summary(path: Path, model: LlamaModel) -> ModelSummary:
    native = model.native
    return ModelSummary(
        path=path,
        name=native.metadata("general.name") or path.stem,
        description=native.description,
        parameters=native.parameters,
        size_bytes=native.size_bytes,
        vocabulary_size=native.vocabulary.size,
        context_length=model.context_length,
        trained_context_length=native.trained_context_length,
    )


def convert(request: ConversionRequest, progress: ProgressListener, cancelled: Callable[[], bool]) -> Converted | None:
    """Write a model anew: into a `.part` file first, renamed when it is complete. None if cancelled.

    Raises UserFacingError. llama.cpp cannot be stopped in the middle; a cancel takes effect at the end.
    """
    part = request.destination.with_name(request.destination.name + ".part")
    unpacks = request.number_format is NumberFormat.F32
    doing = "Unpacking the model" if unpacks else f"Writing {request.number_format.value}"
    tensors = _TensorLines(lambda fraction: progress(Progress(fraction, doing)))
    try:
        request.destination.parent.mkdir(parents=True, exist_ok=True)
        bindings.convert(request.source, part, request.number_format.value, usable_cores(), tensors.feed)
        if cancelled():
            part.unlink(missing_ok=True)
            return None
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(request.destination)
    except (OSError, bindings.NativeError) as error:
        part.unlink(missing_ok=True)
        raise UserFacingError(
            f"The model could not be {'unpacked to' if unpacks else 'written to'} {request.destination}.",
            f"The system says: {error}.",
            "Check that the disk has room and that the folder may be written to, then try again.",
        ) from error
    return Converted(request.destination)


class _TensorLines:
    """Progress of a conversion from llama.cpp's log, which counts tensors: "[ 12/ 272] ..."."""

    def __init__(self, report: Callable[[float], None]) -> None:
        self._report = report

    def feed(self, line: str) -> None:
        if line.startswith("[") and "]" in line:
            done, _, total = line[1 : line.index("]")].partition("/")
            if done.strip().isdigit() and total.strip().isdigit():
                self._report(int(done) / int(total))
