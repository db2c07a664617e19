"""What is kept of each download, so that it survives the end of the program, however that comes.

One small file per download, in a hidden folder of the models folder. The process that has a download in its list holds
a lock beside that file; what nobody holds is taken over by whoever starts next.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from forespeak.errors import UserFacingError
from forespeak.models.file_lock import FileLock
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.whole_file import write_durably

FOLDER = ".downloads"
"""Within the models folder: a disk that is moved takes its downloads along."""


class DownloadState(Enum):
    """`VERIFYING`: what is on the disk is being hashed. Nothing follows `DONE` and `CANCELLED`."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    VERIFYING = "verifying"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_active(self) -> bool:
        return self in {DownloadState.RUNNING, DownloadState.VERIFYING}

    @property
    def is_going(self) -> bool:
        """It runs, or waits for its turn."""
        return self.is_active or self is DownloadState.QUEUED

    @property
    def is_over(self) -> bool:
        return self in {DownloadState.DONE, DownloadState.CANCELLED}


@dataclass(frozen=True, slots=True)
class DownloadRecord:
    """`place` orders the list. `instead` are files on this machine of which equal ones need not be fetched."""

    id: str
    place: int
    group: HubFileGroup
    state: DownloadState
    error: UserFacingError | None = None
    instead: tuple[Path, ...] = ()


def new_id() -> str:
    return f"{time.time_ns():x}-{secrets.token_hex(4)}"


class RecordFiles:
    """The records of one models folder. `keep` False: they are not written anywhere. For one thread at a time."""

    def __init__(self, models_folder: Path, *, keep: bool = True) -> None:
        self._folder = models_folder / FOLDER
        self._keep = keep
        self._locks: dict[str, FileLock] = {}

    def adopt(self) -> list[DownloadRecord]:
        """What was left by processes that are gone, in order. What was running goes on: it comes as QUEUED."""
        found = []
        for path in sorted(self._folder.glob("*.json")) if self._keep else ():
            try:
                if not self._lock(path.stem):
                    continue
                record = _parsed(path.stem, json.loads(path.read_text("utf-8")))
            except (OSError, ValueError, TypeError, KeyError, AttributeError):
                # Damaged: the parts are still there, and a new download takes them up.
                self._unlock(path.stem)
                continue
            found.append(replace(record, state=DownloadState.QUEUED) if record.state.is_active else record)
        return sorted(found, key=lambda record: (record.place, record.id))

    def write(self, record: DownloadRecord) -> None:
        """Raises OSError."""
        if self._keep:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock(record.id)
            write_durably(self._path(record.id), json.dumps(_plain(record), ensure_ascii=False, indent=1))

    def remove(self, name: str) -> None:
        if self._keep:
            with contextlib.suppress(OSError):
                self._path(name).unlink()
            self._unlock(name)

    def close(self) -> None:
        """Let others have what is left."""
        for name in list(self._locks):
            self._unlock(name)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _lock(self, name: str) -> bool:
        if name not in self._locks:
            lock = FileLock(self._folder / f"{name}.lock")
            if not lock.acquire():
                return False
            self._locks[name] = lock
        return True

    def _unlock(self, name: str) -> None:
        if (lock := self._locks.pop(name, None)) is not None:
            lock.release()


def _plain(record: DownloadRecord) -> dict[str, Any]:
    group, error = record.group, record.error
    return {
        "place": record.place,
        "state": record.state.value,
        "error": None if error is None else _plain_error(error),
        "instead": [str(path) for path in record.instead],
        "group": {**asdict(group), "format": group.format.value, "kind": group.kind.value},
    }


def _plain_error(error: UserFacingError) -> dict[str, Any]:
    plain: dict[str, Any] = {"what": error.what, "why": error.why, "remedy": error.remedy}
    if isinstance(error, HubError):
        # With these, a window offers to act on it after a restart as before.
        plain |= {"problem": error.problem.value, "page": error.page}
    return plain


def _parsed_error(plain: dict[str, Any] | list[str]) -> UserFacingError:
    if isinstance(plain, list):
        # As it was written before the problem was kept.
        return UserFacingError(*plain)
    words = (str(plain["what"]), str(plain["why"]), str(plain["remedy"]))
    if "problem" not in plain:
        return UserFacingError(*words)
    page = plain["page"]
    return HubError(HubProblem(plain["problem"]), *words, page=page if isinstance(page, str) else None)


def _parsed(name: str, plain: dict[str, Any]) -> DownloadRecord:
    """Raises ValueError, TypeError, KeyError or AttributeError for what no record is."""
    group = plain["group"]
    files = tuple(HubFile(**file) for file in group["files"])
    if not files or not all(isinstance(file.path, str) and isinstance(file.size_bytes, int) for file in files):
        raise ValueError(name)
    return DownloadRecord(
        name,
        int(plain["place"]),
        HubFileGroup(
            str(group["repo"]),
            str(group["revision"]),
            group["label"],
            ModelFormat(group["format"]),
            files,
            int(group["shards"]),
            GgufKind(group["kind"]),
            tuple(group["missing"]),
        ),
        DownloadState(plain["state"]),
        None if plain["error"] is None else _parsed_error(plain["error"]),
        tuple(Path(path) for path in plain["instead"]),
    )
