"""How models were to be loaded, and how they were, as JSON values and in words, wherever that is kept or told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from enum import Enum
from typing import Any

from forespeak.engines.engine import MOST_THREADS, Buffer, CacheType, LoadSettings, Placement, Split
from forespeak.speculation.json_values import Check, one_of, or_null, switch, text, whole

_LONGEST_NAME = 200


def load_record(settings: LoadSettings) -> dict[str, Any]:
    """By the settings' names, enumerations by their values."""
    return _by_value({each.name: getattr(settings, each.name) for each in fields(settings)})


def _by_value(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def load_settings_from(record: Mapping[str, Any]) -> LoadSettings:
    """What `load_record` or a person wrote. What is left out is as usual; what else there is is passed over.

    Raises ValueError or TypeError, which say in words what is wrong.
    """
    return LoadSettings(**{name: check(record[name], f"“{name}”") for name, check in _CHECKS.items() if name in record})


def undamaged_load_settings(record: Mapping[str, Any]) -> LoadSettings:
    """The same from a file that may be damaged: a value that makes no sense is left out by itself."""
    known: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        if name in record:
            try:
                known[name] = check(record[name], name)
            except (ValueError, TypeError):
                continue
    settings = LoadSettings(**known)
    # The engine would refuse every pair, and nobody would know why.
    return settings.with_cache(settings.cache_type)


def _device(value: Any, what: str) -> str:  # noqa: ANN401 -- JSON values
    if len(text(value, what)) > _LONGEST_NAME:
        raise ValueError(f"{what} must be the name of a device")
    return str(value)


_CHECKS: Mapping[str, Check] = {
    "context_length": or_null(whole(1)),
    "reproducible": switch,
    "threads": or_null(whole(1, MOST_THREADS)),
    "gpu_layers": whole(-1),
    "draft_gpu_layers": or_null(whole(-1)),
    "device": or_null(_device),
    "draft_device": or_null(_device),
    "split": one_of(Split),
    "cache_type": one_of(CacheType),
    "flash_attention": or_null(switch),
}


def load_words(settings: LoadSettings) -> Iterator[str]:
    """All of them, each in a few words; a draft model's only where they are not the target's."""
    length, threads = settings.context_length, settings.threads
    yield "the model’s own context" if length is None else f"a context of {length} tokens"
    yield "threads as the machine has them" if threads is None else f"threads {threads}"
    yield f"device {settings.device or 'as the engine chooses'}"
    if settings.draft_device is not None:
        yield f"draft’s device {settings.draft_device}"
    yield f"layers on GPUs {_layer_words(settings.gpu_layers)}"
    if settings.draft_gpu_layers is not None:
        yield f"draft’s {_layer_words(settings.draft_gpu_layers)}"
    yield f"split {settings.split.value}"
    if settings.reproducible:
        yield "reproducible"
    else:
        attention = settings.flash_attention
        yield f"cache {settings.cache_type.value}"
        yield f"flash attention {'auto' if attention is None else 'on' if attention else 'off'}"


def _layer_words(count: int) -> str:
    return "as many as fit" if count < 0 else str(count)


def placement_record(placement: Placement | None) -> dict[str, Any] | None:
    """Where a model was and how it computed; None where the engine does not tell."""
    return None if placement is None else _by_value(asdict(placement))


def placement_from(record: Mapping[str, Any] | None) -> Placement | None:
    """What `placement_record` made. For anything else, raises one of the errors that foreign JSON values raise."""
    if record is None:
        return None
    values = dict(record)
    for name, kind in (("cache_type", CacheType), ("split", Split)):
        if name in values:
            values[name] = kind(values[name])
    values["devices"] = tuple(values["devices"])
    values["buffers"] = tuple(Buffer(**each) for each in values["buffers"])
    return Placement(**values)
