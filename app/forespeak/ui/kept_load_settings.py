"""Load settings as preferences and chats keep them: what concerns the devices stands by itself, under `hardware`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forespeak.engines.engine import LoadSettings
from forespeak.engines.load_record import load_record, undamaged_load_settings

_BESIDE = ("context_length", "reproducible", "threads")
_HARDWARE = "hardware"


def entries_of(settings: LoadSettings) -> dict[str, Any]:
    """By their names in a file."""
    record = load_record(settings)
    return {**{name: record.pop(name) for name in _BESIDE}, _HARDWARE: record}


def load_settings_of(stored: Mapping[str, Any]) -> LoadSettings:
    """From a file's entries; each value by itself: a damaged one costs itself only."""
    hardware = stored.get(_HARDWARE)
    found = dict(hardware) if isinstance(hardware, dict) else {}
    return undamaged_load_settings(found | {name: stored[name] for name in _BESIDE if name in stored})
