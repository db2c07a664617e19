"""Everything that is used of mlx and mlx-lm. Importing them takes two seconds: do so late.

It also limits the process to 2,048 open files, for good; an engine's process needs few.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from importlib import metadata
from typing import Any

# transformers, through which tokenizers are loaded, otherwise says on stderr that there is no PyTorch.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import get_total_parameters, load_tokenizer, maybe_set_recommended_wired_limit
from mlx_lm.utils import load_model as load_network

__all__ = [
    "ENGINE",
    "KVCache",
    "device_memory",
    "device_name",
    "get_total_parameters",
    "give_memory_back",
    "has_gpu",
    "load_network",
    "load_tokenizer",
    "make_prompt_cache",
    "maybe_set_recommended_wired_limit",
    "mx",
    "nn",
    "on_gpu",
    "tree_flatten",
    "use_processor",
]

ENGINE = f"MLX {metadata.version('mlx')}, mlx-lm {metadata.version('mlx-lm')}"


_USUAL_DEVICE = mx.default_device()


def use_processor(alone: bool) -> None:
    """Compute on the processor alone, or on what MLX chooses itself, from now on."""
    mx.set_default_device(mx.cpu if alone else _USUAL_DEVICE)


def give_memory_back() -> None:
    """What was freed goes back to the system: MLX keeps buffers for the next evaluation, and so does glibc."""
    mx.clear_cache()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def has_gpu() -> bool:
    """Whether MLX computes on a GPU if it may choose."""
    return bool(_USUAL_DEVICE.type == mx.gpu)


def on_gpu() -> bool:
    """Whether MLX computes on a GPU now."""
    return bool(mx.default_device().type == mx.gpu)


def device_name() -> str:
    """What MLX computes on now, as its driver calls it."""
    if not on_gpu():
        return "CPU"
    return str(_device_info().get("device_name", "GPU"))


def device_memory() -> int:
    """Bytes that what MLX computes on may use; 0 for the processor."""
    if not on_gpu():
        return 0
    info = _device_info()
    return int(info.get("max_recommended_working_set_size") or info.get("memory_size") or 0)


def _device_info() -> dict[str, Any]:
    info: dict[str, Any] = mx.device_info() if hasattr(mx, "device_info") else mx.metal.device_info()
    return info
