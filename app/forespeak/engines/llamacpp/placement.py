"""Where a loaded model is and how it computes, by what llama.cpp told while it was loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from forespeak.engines.devices import ModelSetting
from forespeak.engines.engine import CPU_DEVICE, Buffer, CacheType, Placement

_LAYER = re.compile(r"layer +\d+ assigned to device ([^,]+),")
_BUFFER = re.compile(r" (\S+) +(model|KV|RS|output|compute) buffer size += +([\d.]+) MiB")
_FLASH_ATTENTION = re.compile(r"flash_attn += (\w+)|Flash Attention (enabled|not supported)")
_CACHE = re.compile(r" K \((\w+)\)")
_KINDS = {"model": "weights", "KV": "cache", "RS": "cache", "output": "scores", "compute": "buffers"}


def placement_of(
    model_told: Sequence[str], context_told: Sequence[str], setting: ModelSetting, threads: int
) -> Placement:
    """What became of `setting`. What llama.cpp does not tell is as it was asked for."""
    layers = Counter(match[1] for line in model_told if (match := _LAYER.search(line)))
    gpus = [device.name for device in setting.devices]
    names = [name for name in gpus if layers[name]]
    on_gpus = sum(layers[name] for name in names)
    count = layers.total()
    return Placement(
        devices=(*names, *([CPU_DEVICE] if on_gpus < count else [])),
        gpu_layers=on_gpus,
        layers=count,
        cache_type=_cache_type(context_told, setting.cache_type),
        flash_attention=_flash_attention(context_told, asked=bool(setting.flash_attention)),
        threads=threads,
        buffers=_buffers([*model_told, *context_told], gpus),
        split=setting.split,
    )


def _flash_attention(lines: Iterable[str], *, asked: bool) -> bool:
    """The last word counts: what was to be found out is told when it is."""
    found = asked
    for line in lines:
        if match := _FLASH_ATTENTION.search(line):
            found = "enabled" in match.groups()
    return found


def _cache_type(lines: Iterable[str], asked: CacheType) -> CacheType:
    for line in lines:
        if match := _CACHE.search(line):
            return CacheType(match[1].upper())
    return asked


def _buffers(lines: Iterable[str], gpus: Sequence[str]) -> tuple[Buffer, ...]:
    sizes: dict[tuple[str, str], int] = {}
    for line in lines:
        if match := _BUFFER.search(line):
            where = _KINDS[match[2]], _device_of(match[1], gpus)
            sizes[where] = sizes.get(where, 0) + round(float(match[3]) * (1 << 20))
    return tuple(Buffer(kind, device, size) for (kind, device), size in sizes.items() if size)


def _device_of(buffer: str, gpus: Sequence[str]) -> str:
    """`CUDA0` and `MTL0_Mapped` lie on the devices of these names, `CUDA_Host` and `CPU_Mapped` in main memory."""
    return next((name for name in gpus if buffer == name or buffer.startswith(f"{name}_")), CPU_DEVICE)
