"""From files to loaded models, and from one file to another: what llama.cpp does before it can generate."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil

from forespeak.engines.drafting import MAX_DRAFT_LENGTH
from forespeak.engines.engine import (
    DEFAULT_CONTEXT_LENGTH,
    ConversionRequest,
    Converted,
    LoadRequest,
    ModelSummary,
    NumberFormat,
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

ENGINE = f"llama.cpp {bindings.version()}"


def load_model(
    request: LoadRequest,
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
        native = bindings.NativeModel(path, request.gpu_layers, report, read_whole=_fits_twice(path, request))
        if not native.has_decoder:
            raise bindings.NativeError("the model does not generate text")
        context = make_context(native, request, thread_count())
    except bindings.NativeError as error:
        if native is not None:
            native.close()
        if cancelled():
            return None
        raise UserFacingError(
            f"{path.name} could not be loaded.",
            f"llama.cpp says: {error}.",
            "The file may be damaged, of a kind that this version does not know, or too large for the memory.",
        ) from error
    return LlamaModel(native, context, MAX_DRAFT_LENGTH + 1, thread_count)


def _fits_twice(path: Path, request: LoadRequest) -> bool:
    """Whether the weights may be copied into memory of our own.

    A processor reads them from there one to two per cent faster than from a mapped file. Where memory is short the
    mapped file is better: the system may drop parts of it and read them again.
    """
    return not uses_gpu(request) and psutil.virtual_memory().available > 2.5 * path.stat().st_size


def make_context(native: bindings.NativeModel, request: LoadRequest, threads: int) -> bindings.NativeContext:
    """Raises NativeError."""
    length = request.context_length or min(native.trained_context_length, DEFAULT_CONTEXT_LENGTH)
    on_gpu = uses_gpu(request)
    return bindings.NativeContext(
        native,
        length=length,
        batch=_GPU_BATCH if on_gpu else _CPU_BATCH,
        outputs=MAX_DRAFT_LENGTH + 1,
        threads=threads,
        reproducible=request.reproducible,
        on_cpu=not on_gpu,
    )


def beside(model: LlamaModel, request: LoadRequest) -> LlamaModel:
    """The same weights with another context, to be closed first. Raises UserFacingError."""
    try:
        context = make_context(model.native, request, model.thread_count())
    except bindings.NativeError as error:
        raise UserFacingError(
            "There is not enough memory beside the loaded models.",
            f"llama.cpp says: {error}.",
            "Load the models with a shorter context, then try again.",
        ) from error
    return LlamaModel(model.native, context, MAX_DRAFT_LENGTH + 1, model.thread_count, owns_weights=False)


def conditions_of(request: LoadRequest, target: LlamaModel, with_draft: bool) -> PairConditions:
    """What the costs of a loaded pair depend on."""
    return PairConditions(
        target=request.target,
        draft=request.draft if with_draft else None,
        engine=ENGINE,
        devices=tuple(device.description for device in bindings.devices()),
        threads=usable_cores() if request.threads is None else request.threads,
        gpu_layers=request.gpu_layers,
        reproducible=request.reproducible,
        context_length=target.context_length,
    )


def uses_gpu(request: LoadRequest) -> bool:
    return request.gpu_layers != 0 and any("GPU" in device.kind for device in bindings.devices())


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
