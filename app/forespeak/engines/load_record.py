"""How models were to be loaded, and how they were, as JSON values and in words, wherever that is kept or told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from enum import Enum
from typing import Any

from forespeak.engines.engine import MOST_THREADS, Buffer, CacheType, LoadSettings, Placement, Split

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
    return LoadSettings(**{name: parse(name, record[name]) for name, parse in _PARSERS.items() if name in record})


def undamaged_load_settings(record: Mapping[str, Any]) -> LoadSettings:
    """The same from a file that may be damaged: a value that makes no sense is left out by itself."""
    known: dict[str, Any] = {}
    for name, parse in _PARSERS.items():
        if name in record:
            try:
                known[name] = parse(name, record[name])
            except (ValueError, TypeError):
                continue
    settings = LoadSettings(**known)
    # The engine would refuse every pair, and nobody would know why.
    return settings.with_cache(settings.cache_type)


_Parse = Callable[[str, Any], Any]


def _or_null(parse: _Parse) -> _Parse:
    return lambda name, value: None if value is None else parse(name, value)


def _whole(least: int, most: int = 2**31 - 1) -> _Parse:
    """By default as many as fit into a C int, which engines take."""

    def parse(name: str, value: Any) -> int:  # noqa: ANN401 -- JSON values
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be a whole number")
        if not least <= value <= most:
            raise ValueError(f"{name} must be from {least} to {most}")
        return value

    return parse


def _switch(name: str, value: Any) -> bool:  # noqa: ANN401 -- JSON values
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false")
    return value


def _name(name: str, value: Any) -> str:  # noqa: ANN401 -- JSON values
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        raise TypeError(f"{name} must be the name of a device")
    return value


def _one_of(kind: type[Enum]) -> _Parse:
    def parse(name: str, value: Any) -> Enum:  # noqa: ANN401 -- JSON values
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"{name} must be one of {', '.join(str(each.value) for each in kind)}") from None

    return parse


_PARSERS: Mapping[str, _Parse] = {
    "context_length": _or_null(_whole(1)),
    "reproducible": _switch,
    "threads": _or_null(_whole(1, MOST_THREADS)),
    "gpu_layers": _whole(-1),
    "draft_gpu_layers": _or_null(_whole(-1)),
    "device": _or_null(_name),
    "draft_device": _or_null(_name),
    "split": _one_of(Split),
    "cache_type": _one_of(CacheType),
    "flash_attention": _or_null(_switch),
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
