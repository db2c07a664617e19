"""Remembers what headers said, by path, size and time: a library of hundreds of models is then there at once."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from forespeak.models.file_facts import FileFacts
from forespeak.models.gguf import GgufKind
from forespeak.whole_file import write_whole

FILE_NAME = "library.json"
MOST_FILES = 5000
_MOST_BYTES = 16 << 20

Stamp = tuple[int, ...]
"""What changes when a file does: its size and the time of its last change in nanoseconds."""


class FactsCache:
    """One JSON file in `folder`. A file that is damaged, or of another version, counts as empty. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[Stamp, FileFacts]] | None = None
        self._changed = False

    def get(self, path: Path, stamp: Stamp) -> FileFacts | None:
        with self._lock:
            found = self._loaded().get(str(path))
        return found[1] if found is not None and found[0] == stamp else None

    def put(self, path: Path, stamp: Stamp, facts: FileFacts) -> None:
        with self._lock:
            # Put behind the others, so that what has not been seen for long is dropped first.
            self._loaded().pop(str(path), None)
            self._loaded()[str(path)] = stamp, facts
            self._changed = True

    def save(self) -> None:
        """Write what is new. A cache that cannot be written is no trouble: the headers are read again."""
        with self._lock:
            if not self._changed or self._entries is None:
                return
            for path in list(self._entries)[: max(0, len(self._entries) - MOST_FILES)]:
                del self._entries[path]
            content = {
                "fields": _FIELDS,
                "files": {path: [stamp, _encoded(facts)] for path, (stamp, facts) in self._entries.items()},
            }
            self._changed = False
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Names on Linux may hold bytes that are no text: they are escaped here.
            write_whole(self._path, json.dumps(content, separators=(",", ":")))

    def _loaded(self) -> dict[str, tuple[Stamp, FileFacts]]:
        if self._entries is None:
            self._entries = _read(self._path)
        return self._entries


def _read(path: Path) -> dict[str, tuple[Stamp, FileFacts]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return {}
        content = json.loads(path.read_bytes())
        if content["fields"] != _FIELDS:
            return {}
        entries = content["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    found = {}
    for name, entry in entries:
        # One damaged entry does not spoil the others.
        with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
            stamp, values = entry
            found[name] = tuple(map(int, stamp)), _decoded(values)
    return found


_FIELDS = ["2", *(field.name for field in fields(FileFacts))]
"""Names the version too: what is kept and what it means. The number rises when a meaning changes."""

_CHECKED: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "bool": bool,
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
}
_TYPES = [_CHECKED.get(str(field.type), object) for field in fields(FileFacts)]


def _encoded(facts: FileFacts) -> list[Any]:
    values = list(astuple(facts))
    values[0] = facts.kind.value
    return values


def _decoded(values: list[Any]) -> FileFacts:
    if len(values) != len(_TYPES) or not all(map(isinstance, values, _TYPES)):
        raise ValueError(values)
    facts = dict(zip(_FIELDS[1:], values, strict=True))
    facts["kind"] = GgufKind(facts["kind"])
    facts["weights"] = tuple((str(name), int(count)) for name, count in facts["weights"])
    number, count = facts["shard"]
    facts["shard"] = int(number), int(count)
    return FileFacts(**facts)
