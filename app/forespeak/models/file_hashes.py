"""The hashes of files on this machine: computed once, and kept as long as a file does not change."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from forespeak.models.download_record import FOLDER
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.part_file import git_hasher

_READ = 1 << 20
_FILE = "hashes.jsonl"


class HasFiles(Protocol):
    """A library's item."""

    @property
    def files(self) -> Sequence[Path]: ...


Item = TypeVar("Item", bound=HasFiles)


@dataclass(frozen=True, slots=True)
class FileHash:
    """What a file was when it was hashed. `git` is Git's SHA-1 of a small file, of which the Hub states nothing else.

    `repo`, `revision` and `path` say where on the Hub it is from; empty for a file that we did not download.
    """

    size: int
    modified: int
    sha256: str | None = None
    git: str | None = None
    repo: str = ""
    revision: str = ""
    path: str = ""

    @property
    def is_downloaded(self) -> bool:
        return bool(self.repo)


class FileHashes:
    """Kept in the models folder, in a file to which every process only appends. Thread-safe."""

    def __init__(self, models_folder: Path) -> None:
        self._folder = models_folder.absolute()
        self._path = self._folder / FOLDER / _FILE
        self._lock = threading.Lock()
        self._known: dict[str, FileHash] = {}
        self._read_to = 0

    def of(self, path: Path) -> FileHash | None:
        """What is known of a file, whether or not it has changed since."""
        with self._lock:
            self._read_on()
            return self._known.get(self._key(path))

    def downloaded(self) -> list[tuple[Path, FileHash]]:
        """The files that came from the Hub, whether or not they are still there."""
        with self._lock:
            self._read_on()
            return [(self._folder / key, known) for key, known in self._known.items() if known.is_downloaded]

    def sha256(self, path: Path, stopped: Callable[[], bool] = lambda: False) -> str | None:
        """A file's SHA-256, computed if it is new or has changed; None if stopped. Raises OSError."""
        there = path.stat()
        known = self.of(path)
        same = known is not None and (known.size, known.modified) == (there.st_size, there.st_mtime_ns)
        if known is not None and known.sha256 and same:
            return known.sha256
        digest = hash_of(path, hashlib.sha256(), stopped)
        if digest is None:
            return None
        if known is None or not known.is_downloaded:
            self.note(path, FileHash(there.st_size, there.st_mtime_ns, digest))
        elif same or _is_as_stated(path, known, digest, stopped):
            self.note(path, replace(known, modified=there.st_mtime_ns, sha256=digest))
        # Else it is not what was downloaded. What that was stays, or nobody could tell any more.
        return digest

    def note(self, path: Path, known: FileHash) -> None:
        """Keep it. A disk that refuses is not worth an error: it will be computed again."""
        line = json.dumps({"file": self._key(path), **asdict(known)}, ensure_ascii=False) + "\n"
        with self._lock, contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            try:
                # One write, so that two processes' lines do not mix.
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)

    def _key(self, path: Path) -> str:
        """Relative within the models folder, which may be moved."""
        path = path.absolute()
        return path.relative_to(self._folder).as_posix() if path.is_relative_to(self._folder) else str(path)

    def _read_on(self) -> None:
        """What we and others have added since."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                plain = json.loads(line)
                key = str(plain.pop("file"))
                self._known[key] = FileHash(**plain)


def identical(
    group: HubFileGroup, items: Iterable[Item], hashes: FileHashes, stopped: Callable[[], bool] = lambda: False
) -> Item | None:
    """An item that already has all the large files of a group; None if there is none, or if stopped.

    Sizes are compared first, and only files of the right sizes are hashed. Small files, of which the Hub states no
    SHA-256, are not looked at: they are fetched in any case.
    """
    wanted = {(file.size_bytes, file.sha256) for file in group.files if file.sha256 is not None}
    for item in items if wanted else ():
        try:
            if _holds(item, wanted, hashes, stopped):
                return item
        except OSError:
            continue
    return None


def _holds(item: HasFiles, wanted: set[tuple[int, str]], hashes: FileHashes, stopped: Callable[[], bool]) -> bool:
    sizes = {path: path.stat().st_size for path in item.files}
    if not {size for size, _ in wanted} <= set(sizes.values()):
        return False
    missing = set(wanted)
    for path, size in sizes.items():
        if any(size == each for each, _ in missing):
            missing.discard((size, hashes.sha256(path, stopped) or ""))
    return not missing


def is_unchanged(
    path: Path,
    known: FileHash,
    stopped: Callable[[], bool] = lambda: False,
    read: Callable[[int], None] = lambda _: None,
) -> bool | None:
    """Whether a file still has the contents that it was downloaded with; None if stopped. Raises OSError.

    By what the Hub stated: beside Git's SHA-1, a SHA-256 is one that was computed here. `read` hears of every piece's
    size.
    """
    if path.stat().st_size != known.size:
        return False
    if known.sha256 is None and known.git is None:
        return True
    hasher = git_hasher(known.size) if known.git else hashlib.sha256()
    found = hash_of(path, hasher, stopped, read)
    return None if found is None else found == (known.git or known.sha256)


def _is_as_stated(path: Path, known: FileHash, digest: str, stopped: Callable[[], bool]) -> bool:
    """Whether a file whose SHA-256 is `digest` is what was downloaded."""
    return digest == known.sha256 if known.git is None else is_unchanged(path, known, stopped) is True


def hash_of(
    path: Path,
    hasher: hashlib._Hash,
    stopped: Callable[[], bool] = lambda: False,
    read: Callable[[int], None] = lambda _: None,
) -> str | None:
    """A hash over a file, None if stopped. `read` hears of every piece's size. Raises OSError."""
    with path.open("rb", buffering=0) as file:
        while block := file.read(_READ):
            if stopped():
                return None
            hasher.update(block)
            read(len(block))
    return hasher.hexdigest()
