"""Lists of tokens and merges that were met before: many models share a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MetTexts:
    """Where a list stands, the file's state (size, time of change) when it was hashed, and the hash."""

    path: Path
    state: tuple[int, int]
    offset: int
    length: int
    digest: bytes


class KnownTexts:
    """Lists of texts that were walked through before: where they stand, and their hash. Thread-safe.

    Many models share a vocabulary. Where its bytes come again, comparing them is ten times faster than going from text
    to text, and than hashing.
    """

    def __init__(self) -> None:
        self._found: dict[int, dict[int, MetTexts]] = {}

    def alike(self, count: int) -> list[MetTexts]:
        """The lists with as many texts, one for each length in bytes, the latest first; few."""
        return list(self._found.get(count, {}).values())[::-1][:_MOST_ALIKE]

    def add(self, count: int, path: Path, offset: int, length: int, digest: bytes) -> None:
        try:
            about = path.stat()
        except OSError:
            return
        met = MetTexts(path, (about.st_size, about.st_mtime_ns), offset, length, digest)
        self._found.setdefault(count, {})[length] = met


_MOST_ALIKE = 4
