"""Finds model files in a folder and below, and leaves out what is still being written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from forespeak.models.roots import Root

MOST_DEPTH = 8
MOST_ENTRIES = 200_000
"""A root may be a whole disk by mistake; the search must end."""

UNFINISHED = (".part", ".incomplete", ".downloadinprogress", ".crdownload", ".download", ".aria2", ".tmp", ".partial")
"""What programs add to the name of a file that they are still writing."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file's name and state. `identity` (device, number) is the same where two names are one file."""

    path: Path
    size: int
    modified_ns: int
    identity: tuple[int, int]


def find_files(root: Root, cancelled: Callable[[], bool] = lambda: False) -> list[FoundFile]:
    """The GGUF files in a root and below, without those that are still being written. Never raises OSError."""
    found = []
    for folder, names in _folders(root.path, cancelled):
        lower = {name.lower() for name in names}
        for name in names:
            if not name.lower().endswith(".gguf") or any(name.lower() + end in lower for end in UNFINISHED):
                continue
            path = Path(folder, name)
            try:
                about = path.stat()
            except OSError:
                continue  # a link whose file is gone
            found.append(FoundFile(path, about.st_size, about.st_mtime_ns, (about.st_dev, about.st_ino)))
    return found


def _folders(top: Path, cancelled: Callable[[], bool]) -> Iterator[tuple[str, list[str]]]:
    """Every folder with the names of its files. Hidden ones are left out; links to folders are followed once."""
    seen: set[tuple[int, int]] = set()
    waiting = [(str(top), 0)]
    entries_left = MOST_ENTRIES
    while waiting and entries_left > 0 and not cancelled():
        folder, depth = waiting.pop()
        names, below = [], []
        try:
            about = os.stat(folder)  # noqa: PTH116 - thousands of them
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            with os.scandir(folder) as listing:
                for entry in listing:
                    entries_left -= 1
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        below.append(entry.path)
                    else:
                        names.append(entry.name)
        except OSError:
            continue  # forbidden, or gone
        if depth < MOST_DEPTH:
            waiting += [(path, depth + 1) for path in sorted(below, reverse=True)]
        yield folder, sorted(names)
