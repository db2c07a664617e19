"""Downloads a single model from within the pairing wizard, and says how far it is. The queue does the work."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.good_pairs import GoodModel, group_of
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.sizes import size_words
from forespeak.ui.background import Worker
from forespeak.ui.pair_fetcher import AskRepo


class Downloads(Protocol):
    """`downloads_controller.DownloadsController`, as far as it is needed here."""

    @property
    def downloads(self) -> tuple[Download, ...]: ...

    def add(self, group: HubFileGroup) -> None: ...

    def retry(self, name: str) -> None: ...

    def resume(self, name: str) -> None: ...

    def cancel(self, name: str) -> None: ...


class FetchStep(Enum):
    ASKING = "asking"
    """The Hub is asked for the files."""
    COMING = "coming"
    STOPPED = "stopped"
    """Paused, or failed: it goes on where it stopped."""
    DONE = "done"
    """The files are here; the library reads them."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """How a download stands. `fraction` of 1; `error` why it stopped, where it did not by somebody's wish."""

    step: FetchStep
    words: str
    fraction: float = 0.0
    error: UserFacingError | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model on the Hub: its files, or a well-known one whose files have to be asked for."""

    group: HubFileGroup | None = None
    good: GoodModel | None = None

    @property
    def key(self) -> str:
        """Tells it from all others, also after a restart; empty if nothing is wanted."""
        if self.group is not None:
            return _key(self.group.repo, self.group.format, self.group.files)
        return "" if self.good is None else f"{self.good.repo}/{self.good.file or ''}"


class Fetcher(QObject):
    changed = Signal(str)
    """The key of what moved on"""
    arrived = Signal(str, object)
    """A key, and the Path of what is loaded"""

    def __init__(self, ask_repo: AskRepo, downloads: Downloads, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ask_repo = ask_repo
        self._downloads = downloads
        self._worker = Worker("pair-fetch", self)
        self._stop = threading.Event()
        self._asking: set[str] = set()
        self._errors: dict[str, UserFacingError] = {}
        self._begun: set[str] = set()
        """Keys of downloads that were begun here"""

    def close(self) -> None:
        self._stop.set()
        self._worker.close(0.2)

    def fetch_of(self, key: str) -> Fetch | None:
        """How it stands; None if it is not on its way."""
        if key in self._asking:
            return Fetch(FetchStep.ASKING, self.tr("Asking the Hub"))
        download = self._find(key)
        if download is None or download.state is DownloadState.CANCELLED:
            error = self._errors.get(key)
            return None if error is None else Fetch(FetchStep.STOPPED, str(error), error=error)
        fraction = download.done_bytes / download.total_bytes if download.total_bytes else 0.0
        words = self.tr("{done} of {total}").format(
            done=size_words(download.done_bytes), total=size_words(download.total_bytes)
        )
        match download.state:
            case DownloadState.DONE:
                return Fetch(FetchStep.DONE, self.tr("Downloaded"), 1.0)
            case DownloadState.FAILED:
                words = words if download.error is None else str(download.error)
                return Fetch(FetchStep.STOPPED, words, fraction, download.error)
            case DownloadState.PAUSED:
                return Fetch(FetchStep.STOPPED, self.tr("Paused at {words}").format(words=words), fraction)
            case DownloadState.VERIFYING:
                return Fetch(FetchStep.COMING, self.tr("Checking the files"), fraction)
            case _:
                words = f"{words}. {download.notice}" if download.notice else words
                return Fetch(FetchStep.COMING, words, fraction)

    def fetch(self, wanted: Wanted) -> None:
        """Begin, or go on where it stopped."""
        key = wanted.key
        self._errors.pop(key, None)
        download = self._find(key)
        if download is not None and not download.state.is_over:
            if download.state is DownloadState.FAILED:
                self._downloads.retry(download.id)
            else:
                self._downloads.resume(download.id)
            self.changed.emit(key)
            return
        self._begun.add(key)
        if wanted.group is not None:
            self._downloads.add(wanted.group)
            self.changed.emit(key)
            return
        good = wanted.good
        if good is None or key in self._asking:
            return
        self._asking.add(key)

        def ask() -> HubFileGroup | None:
            repo = self._ask_repo(good.repo, self._stop.is_set)
            return None if repo is None else group_of(good, repo.repo, repo.groups)

        def found(group: HubFileGroup | None) -> None:
            # Somebody may have given it up in the meantime.
            if key in self._asking and group is not None:
                self._downloads.add(group)
            self._asking.discard(key)
            self.changed.emit(key)

        def failed(error: Exception) -> None:
            self._asking.discard(key)
            if not isinstance(error, UserFacingError):
                raise error
            self._errors[key] = error
            self.changed.emit(key)

        self._worker.run(ask, found, failed)
        self.changed.emit(key)

    def cancel(self, key: str) -> None:
        """Give it up; what has come of it is thrown away."""
        self._asking.discard(key)
        self._errors.pop(key, None)
        download = self._find(key)
        if download is not None:
            self._downloads.cancel(download.id)
        self.changed.emit(key)

    @Slot()
    def downloads_changed(self) -> None:
        """To be told when the downloads have moved on."""
        for download in self._downloads.downloads:
            key = _key_of(download)
            self.changed.emit(key)
            if download.state is DownloadState.DONE and key in self._begun:
                self._begun.discard(key)
                self.arrived.emit(key, download.model_path)

    def _find(self, key: str) -> Download | None:
        return next((each for each in reversed(self._downloads.downloads) if _key_of(each) == key), None)


def _key_of(download: Download) -> str:
    return _key(download.repo, download.format, download.files)


def _key(repo: str, format_: ModelFormat, files: Sequence[HubFile]) -> str:
    """An MLX model is its whole repo, as its `GoodModel` knows."""
    return f"{repo}/{files[0].path}" if format_ is ModelFormat.GGUF and files else f"{repo}/"
