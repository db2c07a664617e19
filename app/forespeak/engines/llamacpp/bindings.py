"""Every ctypes detail of llama.cpp, and nothing else: handles, batches, buffers, logs.

llama-cpp-python is pinned exactly; the functions used here are those of its low-level API, which follows llama.h.
Import this module late: it maps the native libraries. What aborts the process natively (a batch over n_batch, a token
id out of range, too many outputs) is checked by the callers in `model`, before it gets here.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forespeak.engines.devices import PROCESSOR, Device, ModelSetting
from forespeak.engines.engine import CacheType, Split

# ggml's OpenMP threads spin while they wait for each other, by default for so long that one busy core beside them
# brings decoding to a crawl (a tenth and less). This many rounds cost nothing on an idle machine and keep 0.4 of the
# speed on a busy one; `threads` does the rest. libgomp reads it when it is loaded: before llama_cpp is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")
# A native abort would otherwise start a debugger to print a backtrace.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

import llama_cpp.llama_cpp as llama

_CACHE_TYPES = {
    CacheType.F32: 0,
    CacheType.F16: 1,
    CacheType.BF16: 30,
    CacheType.Q8_0: 8,
    CacheType.Q5_1: 7,
    CacheType.Q5_0: 6,
    CacheType.Q4_1: 3,
    CacheType.Q4_0: 2,
}
"""Some of `enum ggml_type`"""
_FLASH_ATTENTION = {None: -1, False: 0, True: 1}
_SPLIT_MODES = {Split.NONE: 0, Split.LAYER: 1, Split.ROW: 2}
FILE_TYPES = {"F32": 0, "Q4_0": 2, "Q2_K": 10}
"""Some of `enum llama_ftype`"""
_LOG_ERROR, _LOG_CONTINUED = 4, 5
_DEVICE_TYPES = {0: "CPU", 1: "GPU", 2: "integrated GPU", 3: "accelerator"}
_TELLING = ("assigned to device", "buffer size", "flash_attn", "Flash Attention", " K (")
"""Lines of the log with one of these say where a model lies and how it is computed (see `placement`)."""


class NativeError(Exception):
    """llama.cpp refused or failed; the text is its own last word on it, or ours."""


class _Log:
    """llama.cpp's log: errors are kept as reasons, everything goes to stderr (the engine process's log file)."""

    def __init__(self) -> None:
        self._errors: deque[str] = deque(maxlen=8)
        self._level = 0
        self.listener: Callable[[str], None] | None = None
        self._kept: list[str] | None = None
        # Referenced for ever: llama.cpp keeps the bare pointer.
        self._callback = llama.llama_log_callback(self._receive)
        llama.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _receive(self, level: int, text: bytes, _: object) -> None:
        line = text.decode("utf-8", errors="replace")
        self._level = self._level if level == _LOG_CONTINUED else level
        if self._level == _LOG_ERROR and line.strip():
            self._errors.append(line.strip())
        if self._kept is not None and any(words in line for words in _TELLING):
            self._kept.append(line)
        if self.listener is not None:
            self.listener(line)
        elif self._level >= 3 and os.environ.get("FORESPEAK_ENGINE_LOG"):
            sys.stderr.write(line)

    def clear(self) -> None:
        self._errors.clear()

    @contextmanager
    def kept(self) -> Iterator[list[str]]:
        """The lines that tell of a model's place, as they come meanwhile."""
        lines: list[str] = []
        self._kept = lines
        try:
            yield lines
        finally:
            self._kept = None

    def reason(self, otherwise: str) -> str:
        return self._errors[0] if self._errors else otherwise


@cache
def _libraries() -> tuple[Any, ...]:
    # Windows finds a function in the library that holds it only. Loaded again by its path, a library is the same one.
    folder = Path(llama._base_path)
    files = [file for name in ("*ggml.dll", "*ggml-base.dll") for file in folder.glob(name)]
    return (llama._lib, *(ctypes.CDLL(str(file)) for file in files))


def _ggml(name: str) -> Any:  # noqa: ANN401 -- ctypes gives its functions no public type
    """A function of ggml, which lies below llama.cpp in libraries of its own."""
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return function
    raise ImportError(f"this build of llama.cpp lacks {name}")


def _start() -> _Log:
    log = _Log()
    # A build with loadable backends has none registered yet; a plain one has them compiled in.
    if _ggml("ggml_backend_reg_count")() == 0:
        load_all = _ggml("ggml_backend_load_all_from_path")
        load_all.argtypes = [ctypes.c_char_p]
        load_all(str(llama._base_path).encode())
    llama.llama_backend_init()
    return log


_log = _start()


class _DeviceProperties(ctypes.Structure):
    """`struct ggml_backend_dev_props`"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("memory_free", ctypes.c_size_t),
        ("memory_total", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("device_id", ctypes.c_char_p),
        # More than the capabilities of today's version take.
        ("capabilities", ctypes.c_bool * 64),
    )


def _pointer_from(name: str, argument: ctypes.c_void_p | ctypes.c_size_t) -> ctypes.c_void_p:
    function = _ggml(name)
    function.argtypes, function.restype = [type(argument)], ctypes.c_void_p
    return ctypes.c_void_p(function(argument))


def _handles() -> list[ctypes.c_void_p]:
    count = _ggml("ggml_backend_dev_count")
    count.restype = ctypes.c_size_t
    return [_pointer_from("ggml_backend_dev_get", ctypes.c_size_t(index)) for index in range(count())]


def devices() -> list[Device]:
    """All devices that llama.cpp lists, processors included."""
    return [_device(handle) for handle in _handles()]


def _device(handle: ctypes.c_void_p) -> Device:
    found = _DeviceProperties()
    get = _ggml("ggml_backend_dev_get_props")
    get.argtypes, get.restype = [ctypes.c_void_p, ctypes.POINTER(_DeviceProperties)], None
    get(handle, ctypes.byref(found))
    backend = _pointer_from("ggml_backend_dev_backend_reg", handle)
    find = _ggml("ggml_backend_reg_get_proc_address")
    find.argtypes, find.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p
    return Device(
        name=_text(found.name),
        description=_text(found.description),
        kind=_DEVICE_TYPES.get(found.type, "other"),
        free_bytes=found.memory_free,
        total_bytes=found.memory_total,
        backend=_backend_name(backend),
        hardware_id=_text(found.device_id) or None,
        splits_rows=bool(find(backend, b"ggml_backend_split_buffer_type")),
    )


def backends() -> list[str]:
    """What this build can compute with, as llama.cpp names it: CPU, CUDA, Vulkan, Metal, ROCm and others."""
    count = _ggml("ggml_backend_reg_count")
    count.restype = ctypes.c_size_t
    return [_backend_name(_pointer_from("ggml_backend_reg_get", ctypes.c_size_t(index))) for index in range(count())]


def _backend_name(handle: ctypes.c_void_p) -> str:
    name = _ggml("ggml_backend_reg_name")
    name.argtypes, name.restype = [ctypes.c_void_p], ctypes.c_char_p
    return _text(name(handle))


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", errors="replace")


def version() -> str:
    """llama.cpp's own version."""
    text: bytes = llama.llama_version()
    return text.decode()


def system_info() -> str:
    """The instruction sets and libraries that this build uses, in llama.cpp's words."""
    text: bytes = llama.llama_print_system_info()
    return text.decode("utf-8", errors="replace")


class NativeVocabulary:
    """Token ids, their bytes, and the tokenizer. Belongs to a model and dies with it."""

    def __init__(self, handle: object) -> None:
        self._handle = handle
        self.size: int = llama.llama_vocab_n_tokens(handle)
        self.bos: int = llama.llama_vocab_bos(handle)
        self.eos: int = llama.llama_vocab_eos(handle)
        self.adds_bos: bool = llama.llama_vocab_get_add_bos(handle)
        self._pieces = [self._piece(token) for token in range(self.size)]
        self._ends = frozenset(token for token in range(self.size) if llama.llama_vocab_is_eog(handle, token))
        self.suppressed = self._suppressed()
        """Tokens that the file says must never be sampled."""

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def ends_generation(self, token: int) -> bool:
        return token in self._ends

    def text(self, token: int) -> str:
        """The token's name in the vocabulary, control tokens included; empty for none (-1)."""
        if not 0 <= token < self.size:
            return ""
        return self._piece(token, special=True).decode("utf-8", errors="replace")

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text in which control tokens are written out. No BOS is added."""
        raw = text.encode("utf-8")
        capacity = len(raw) + 8
        while True:
            buffer = (llama.llama_token * capacity)()
            count = llama.llama_tokenize(self._handle, raw, len(raw), buffer, capacity, False, True)
            if count >= 0:
                return list(buffer[:count])
            capacity = -count

    def _suppressed(self) -> tuple[int, ...]:
        get = llama._lib.llama_vocab_get_suppress_tokens
        get.argtypes, get.restype = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32)], ctypes.POINTER(ctypes.c_int32)
        count = ctypes.c_int32()
        ids = get(self._handle, ctypes.byref(count))
        return tuple(ids[: count.value]) if ids else ()

    def _piece(self, token: int, special: bool = False) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        size = llama.llama_token_to_piece(self._handle, token, buffer, len(buffer), 0, special)
        if size < 0:
            buffer = ctypes.create_string_buffer(-size)
            size = llama.llama_token_to_piece(self._handle, token, buffer, len(buffer), 0, special)
        return buffer.raw[:size]


class NativeModel:
    """Weights and vocabulary of one GGUF file. `told`: what llama.cpp said of where they went.

    Without a `setting`, no layers go onto a GPU. `progress` is told fractions from 0 to 1 and cancels by returning
    False. `read_whole`: copy the weights into memory instead of mapping the file. Raises NativeError, also when
    cancelled.
    """

    def __init__(
        self,
        path: Path,
        progress: Callable[[float], bool],
        *,
        setting: ModelSetting = PROCESSOR,
        read_whole: bool = False,
    ) -> None:
        def report(fraction: float, _: object) -> bool:
            try:
                return progress(fraction)
            except BaseException:  # noqa: BLE001 -- an exception must not cross the C frames; false ends the load
                return False

        params = llama.llama_model_default_params()
        names = [device.name for device in setting.devices]
        params.n_gpu_layers = setting.gpu_layers
        params.split_mode = _SPLIT_MODES[setting.split]
        # Named even where they are the usual ones, so that what was planned for is used, and ended by a null.
        listed = {_device(handle).name: handle for handle in _handles()}
        chosen = (ctypes.c_void_p * (len(names) + 1))(*(listed[name] for name in names))
        params.devices = ctypes.cast(chosen, ctypes.c_void_p)
        if read_whole:
            params.load_mode = llama.LLAMA_LOAD_MODE_NONE
        params.progress_callback = llama.llama_progress_callback(report)
        _log.clear()
        with _log.kept() as self.told:
            self._handle: Any = llama.llama_model_load_from_file(os.fsencode(path), params)
        if not self._handle:
            raise NativeError(_log.reason("llama.cpp could not load the file"))
        self.vocabulary = NativeVocabulary(llama.llama_model_get_vocab(self._handle))
        self.parameters: int = llama.llama_model_n_params(self._handle)
        self.size_bytes: int = llama.llama_model_size(self._handle)
        self.trained_context_length: int = llama.llama_model_n_ctx_train(self._handle)
        self.can_roll_back: bool = not (
            llama.llama_model_is_recurrent(self._handle) or llama.llama_model_is_hybrid(self._handle)
        )
        self.has_decoder: bool = llama.llama_model_has_decoder(self._handle)
        self.description = self._description()

    @property
    def chat_template(self) -> str | None:
        raw = llama.llama_model_chat_template(self._handle, None)
        return raw.decode("utf-8", errors="replace") if raw else None

    def metadata(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(1024)
        size = llama.llama_model_meta_val_str(self._handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", errors="replace") if size >= 0 else None

    def close(self) -> None:
        """Free the weights. Every context of this model must be closed before."""
        if self._handle:
            llama.llama_model_free(self._handle)
            self._handle = None

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        llama.llama_model_desc(self._handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", errors="replace")


class NativeContext:
    """One sequence's KV cache over a model, with its batch buffers. `told`: what llama.cpp said of them.

    A row of scores does not depend on the batch it was evaluated in with an F32 cache and no flash attention only.
    `flash_attention` None: where the devices can. Raises NativeError if llama.cpp cannot make the context (usually for
    lack of memory).
    """

    def __init__(
        self,
        model: NativeModel,
        *,
        length: int,
        batch: int,
        outputs: int,
        threads: int,
        cache_type: CacheType,
        flash_attention: bool | None,
    ) -> None:
        params = llama.llama_context_default_params()
        params.n_ctx = length
        params.n_batch = params.n_ubatch = batch
        params.n_outputs_max = outputs
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        params.type_k = params.type_v = _CACHE_TYPES[cache_type]
        params.flash_attn_type = _FLASH_ATTENTION[flash_attention]
        _log.clear()
        with _log.kept() as self.told:
            self._handle: Any = llama.llama_init_from_model(model._handle, params)
        if not self._handle:
            raise NativeError(_log.reason("llama.cpp could not make a context"))
        self._memory = llama.llama_get_memory(self._handle)
        self.length: int = llama.llama_n_ctx(self._handle)
        self.batch: int = min(batch, llama.llama_n_batch(self._handle), llama.llama_n_ubatch(self._handle))
        self._threads = threads
        self._vocabulary_size = model.vocabulary.size
        self._batch = llama.llama_batch()
        # The batch's buffers. Python runs with cold caches behind every evaluation, and these take few steps to fill.
        self._tokens: Any = (ctypes.c_int32 * batch)()
        self._positions: Any = (ctypes.c_int32 * batch)()
        self._outputs: Any = (ctypes.c_int8 * batch)()
        self._sequence_counts = (ctypes.c_int32 * batch)(*[1] * batch)
        self._sequence_zero = ctypes.c_int32(0)
        self._sequences = (ctypes.POINTER(ctypes.c_int32) * batch)(*[ctypes.pointer(self._sequence_zero)] * batch)
        for name, array in (
            ("token", self._tokens),
            ("pos", self._positions),
            ("n_seq_id", self._sequence_counts),
            ("seq_id", self._sequences),
            ("logits", self._outputs),
        ):
            setattr(self._batch, name, ctypes.cast(array, dict(llama.llama_batch._fields_)[name]))

    def decode(
        self, tokens: Sequence[int], start: int, outputs: int, filler: int = 0, *, score_filler: bool = False
    ) -> NDArray[np.float32]:
        """Evaluate `tokens` at positions `start`...; the scores behind the last `outputs` of them.

        Shape (outputs, vocabulary size), a view that is valid until the next call. `filler` tokens more, whichever,
        are evaluated behind them and stay in the cache; with `score_filler`, down to scores that nobody sees. Raises
        NativeError.
        """
        count = len(tokens)
        whole = count + filler
        self._tokens[:count] = tokens
        self._positions[:whole] = range(start, start + whole)
        self._outputs[:whole] = bytes(count - outputs) + b"\1" * outputs + bytes([score_filler]) * filler
        self._batch.n_tokens = whole
        _log.clear()
        status = llama.llama_decode(self._handle, self._batch)
        if status != 0:
            why = "no room in the KV cache" if status == 1 else f"llama_decode returned {status}"
            raise NativeError(_log.reason(why))
        if outputs == 0:
            llama.llama_synchronize(self._handle)
            return np.empty((0, self._vocabulary_size), dtype=np.float32)
        # This call waits for the device, so time taken around `decode` is the evaluation's.
        first = ctypes.addressof(llama.llama_get_logits(self._handle).contents)
        scores: Any = (ctypes.c_float * (outputs * self._vocabulary_size)).from_address(first)
        rows: NDArray[np.float32] = np.frombuffer(scores, dtype=np.float32)
        return rows.reshape(outputs, self._vocabulary_size)

    def use_threads(self, count: int) -> None:
        """Compute with `count` threads from the next evaluation on."""
        if count != self._threads:
            llama.llama_set_n_threads(self._handle, count, count)
            self._threads = count

    def remove_from(self, position: int) -> bool:
        """Forget everything from `position` on; False if this kind of cache cannot."""
        return bool(llama.llama_memory_seq_rm(self._memory, 0, position, -1))

    def clear(self) -> None:
        llama.llama_memory_clear(self._memory, True)

    def close(self) -> None:
        if self._handle:
            llama.llama_free(self._handle)
            self._handle = None


def convert(source: Path, destination: Path, number_format: str, threads: int, listener: Callable[[str], None]) -> None:
    """Write `source`, with all its parts, anew as one file: with all weights in F32, or most in another format.

    `number_format` is one of FILE_TYPES. `listener` is told llama.cpp's log lines. Raises NativeError.
    """
    params = llama.llama_model_quantize_default_params()
    params.ftype = FILE_TYPES[number_format]
    params.nthread = threads
    params.allow_requantize = True
    _log.clear()
    _log.listener = listener
    try:
        status = llama.llama_model_quantize(os.fsencode(source), os.fsencode(destination), ctypes.byref(params))
    finally:
        _log.listener = None
    if status != 0:
        raise NativeError(_log.reason(f"llama_model_quantize returned {status}"))
