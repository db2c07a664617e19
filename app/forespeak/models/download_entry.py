"""How a download of the list stands: what its worker changes, and what others are shown of it."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.download_control import Control
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.part_file import PART, Verification
from forespeak.models.transfer_rate import Speed


@dataclass(frozen=True, slots=True)
class Download:
    """How a download stands. `done_bytes` of `total_bytes` are on the disk.

    `paths` are the places of `files`; they exist when it is DONE. `notice` is a sentence on why nothing comes at the
    moment, `error` why it FAILED, or why it is PAUSED where that was not the user's wish. `verified` is what the files,
    as far as they have come, were checked against.
    """

    id: str
    repo: str
    revision: str
    label: str | None
    name: str
    files: tuple[HubFile, ...]
    paths: tuple[Path, ...]
    state: DownloadState
    done_bytes: int
    total_bytes: int
    bytes_per_second: float | None = None
    seconds_left: float | None = None
    error: UserFacingError | None = None
    notice: str = ""
    verified: tuple[Verification, ...] = ()

    @property
    def format(self) -> ModelFormat:
        is_gguf = any(file.path.lower().endswith(".gguf") for file in self.files)
        return ModelFormat.GGUF if is_gguf else ModelFormat.MLX

    @property
    def model_path(self) -> Path:
        """What an engine loads of it: the first file, or the folder of an MLX model."""
        first = self.paths[0]
        return first if self.format is ModelFormat.GGUF else first.parent


@dataclass(eq=False)
class Entry:
    """A download in the list. Guarded by the queue's lock, but for what only its worker writes."""

    id: str
    group: HubFileGroup
    paths: tuple[Path, ...]
    state: DownloadState
    error: UserFacingError | None = None
    instead: tuple[Path, ...] = ()
    done: list[int] = field(default_factory=list)
    verified: tuple[Verification, ...] = ()
    speed: Speed = field(default_factory=Speed)
    notice: str = ""
    control: Control | None = None
    worker: threading.Thread | None = None
    started: int = 0
    told_at: float = 0.0

    @property
    def missing(self) -> int:
        return max(0, self.group.size_bytes - sum(self.done))

    def snapshot(self) -> Download:
        running = self.state is DownloadState.RUNNING
        rate = self.speed.per_second() if running else None
        group = self.group
        return Download(
            self.id,
            group.repo,
            group.revision,
            group.label,
            group.name,
            group.files,
            self.paths,
            self.state,
            group.size_bytes if self.state is DownloadState.DONE else min(sum(self.done), group.size_bytes),
            group.size_bytes,
            rate,
            self.missing / rate if rate else None,
            self.error,
            self.notice if self.state.is_active else "",
            self.verified,
        )


def bytes_there(path: Path, file: HubFile) -> int:
    """About how much of a file is on the disk, before anything is checked."""
    for each in (path, path.with_name(path.name + PART)):
        with contextlib.suppress(OSError):
            return min(each.stat().st_size, file.size_bytes)
    return 0
