"""Devices, and where a loaded pair is, in words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from forespeak.engines.devices import Device
from forespeak.engines.engine import CPU_DEVICE, Loaded, Placement, Split
from forespeak.models.sizes import size_words


def _tr(words: str) -> str:
    return QCoreApplication.translate("HardwareWords", words)


def device_words(device: Device) -> str:
    """What a device is and how much memory it has: “NVIDIA RTX 4090, GPU (CUDA), 22.1 GB of 24 GB free”."""
    kind = device.kind
    if device.is_gpu and device.backend:
        kind = f"{kind} ({device.backend})"
    # Llama.cpp calls a processor of which it cannot read the name by its kind.
    parts = [device.description, kind] if device.description != device.kind else [kind]
    if device.total_bytes:
        memory = _tr("{free} of {total} free")
        parts.append(memory.format(free=size_words(device.free_bytes), total=size_words(device.total_bytes)))
    return ", ".join(part for part in parts if part)


def place_words(placement: Placement) -> str:
    """Where a model is, in few words: “on the processor”, “on CUDA0”, “24 of 31 layers on CUDA0”."""
    gpus = [name for name in placement.devices if name != CPU_DEVICE]
    if not gpus or not placement.gpu_layers:
        return _tr("on the processor")
    where = _tr("on {devices}").format(devices=joined(gpus))
    if placement.gpu_layers >= placement.layers:
        return where
    return _tr("{count} of {all} layers {where}").format(count=placement.gpu_layers, all=placement.layers, where=where)


def placement_lines(loaded: Loaded) -> list[str]:
    """Where target and draft are and with what they compute; empty where the engine does not tell."""
    target, draft = loaded.placement, loaded.draft_placement
    lines = []
    if target is not None:
        lines.append(_tr("Target: {where}.").format(where=", ".join([_layers(target), *_means(target)])))
    if draft is not None:
        means = [] if target is not None and _means(draft) == _means(target) else _means(draft)
        lines.append(_tr("Draft: {where}.").format(where=", ".join([_layers(draft), *means])))
    return lines


def joined(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return _tr("{others} and {last}").format(others=", ".join(names[:-1]), last=names[-1])


def _layers(placement: Placement) -> str:
    gpus = [name for name in placement.devices if name != CPU_DEVICE]
    if not placement.layers:
        return place_words(placement)
    if not gpus or not placement.gpu_layers:
        return _tr("all {all} layers on the processor").format(all=placement.layers)
    where = joined(gpus)
    if placement.split is Split.ROW and len(gpus) > 1:
        where = _tr("{devices} by rows").format(devices=where)
    if placement.gpu_layers >= placement.layers:
        return _tr("all {all} layers on {where}").format(all=placement.layers, where=where)
    return _tr("{count} of {all} layers on {where}, the rest on the processor").format(
        count=placement.gpu_layers, all=placement.layers, where=where
    )


def _means(placement: Placement) -> list[str]:
    """With what it computes."""
    words = [
        _tr("cache {type}").format(type=placement.cache_type.value),
        _tr("flash attention on") if placement.flash_attention else _tr("flash attention off"),
    ]
    if placement.threads:
        count = placement.threads
        words.append(_tr("1 thread") if count == 1 else _tr("{count} threads").format(count=count))
    return words
