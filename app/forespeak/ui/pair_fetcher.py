"""Fetches both models of a good pair: finds their files on the Hub, puts them among the downloads, and follows them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.good_pairs import GoodModel, GoodPair, group_of
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.hub_results import HubRepo
from forespeak.models.library import LibraryItem
from forespeak.ui.background import Worker


class AskRepo(Protocol):
    """What a repo holds. Waits for the network; raises UserFacingError; None where it was cancelled."""

    def __call__(self, name: str, cancelled: Callable[[], bool]) -> HubRepo | None: ...


class Downloads(Protocol):
    """`downloads_controller.DownloadsController`, as far as it is needed here."""

    def add(self, group: HubFileGroup) -> None: ...

    def find(self, group: HubFileGroup) -> Download | None: ...


class PairStep(Enum):
    OFFERED = "offered"
    ASKING = "asking"
    """The Hub is asked for the files."""
    COMING = "coming"
    """Among the downloads."""
    STOPPED = "stopped"
    """Among the downloads, and something is paused or has failed there."""
    HERE = "here"
    """Both are in the library."""


@dataclass(frozen=True, slots=True)
class PairProgress:
    """`done` of `total` bytes while it comes; `missing` is what one would have to fetch now."""

    step: PairStep
    missing: int = 0
    done: int = 0
    total: int = 0
    error: UserFacingError | None = None


class PairFetcher(QObject):
    changed = Signal(str)
    """The pair's id"""
    problemFound = Signal(object)
    """UserFacingError"""

    def __init__(self, ask_repo: AskRepo, downloads: Downloads, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ask_repo = ask_repo
        self._downloads = downloads
        self._worker = Worker("good-pairs", self)
        self._stop = threading.Event()
        self._items: Sequence[LibraryItem] = ()
        self._asking: set[str] = set()
        self._groups: dict[str, tuple[HubFileGroup, ...]] = {}
        self._errors: dict[str, UserFacingError] = {}

    def close(self) -> None:
        self._stop.set()
        # A dead network keeps its thread; it ends with the program.
        self._worker.close(0.2)

    def set_items(self, items: Sequence[LibraryItem]) -> None:
        """What is in the library now."""
        self._items = items

    def place_of(self, model: GoodModel) -> Path | None:
        """Where a model of a pair lies, if it is in the library."""
        return next((item.path for item in self._items if model.is_item(item)), None)

    def progress_of(self, pair: GoodPair) -> PairProgress:
        absent = [model for model in (pair.target, pair.draft) if self.place_of(model) is None]
        if not absent:
            return PairProgress(PairStep.HERE)
        if pair.id in self._asking:
            return PairProgress(PairStep.ASKING)
        found = [self._downloads.find(group) for group in self._groups.get(pair.id, ())]
        coming = [download for download in found if download is not None]
        open_ones = [download for download in coming if not download.state.is_over]
        if open_ones or (coming and all(download.state is DownloadState.DONE for download in coming)):
            # One that is done is not in the library before the next scan has ended.
            stopped = any(each.state in {DownloadState.PAUSED, DownloadState.FAILED} for each in open_ones)
            step = PairStep.STOPPED if stopped else PairStep.COMING
            error = next((each.error for each in open_ones if each.error is not None), None)
            done, total = sum(each.done_bytes for each in coming), sum(each.total_bytes for each in coming)
            return PairProgress(step, 0, done, total, error)
        missing = sum(model.size_bytes for model in absent)
        return PairProgress(PairStep.OFFERED, missing, error=self._errors.get(pair.id))

    def fetch(self, pair: GoodPair) -> None:
        """Download what is not here yet. Nothing is begun unless both files are there to be had."""
        if pair.id in self._asking:
            return
        absent = [model for model in (pair.target, pair.draft) if self.place_of(model) is None]
        self._asking.add(pair.id)
        self._errors.pop(pair.id, None)

        def ask() -> tuple[HubFileGroup, ...] | None:
            groups = []
            for model in absent:
                repo = self._ask_repo(model.repo, self._stop.is_set)
                if repo is None:
                    return None
                groups.append(group_of(model, repo.repo, repo.groups))
            return tuple(groups)

        def found(groups: tuple[HubFileGroup, ...] | None) -> None:
            self._asking.discard(pair.id)
            if groups is not None:
                self._groups[pair.id] = groups
                for group in groups:
                    self._downloads.add(group)
            self.changed.emit(pair.id)

        def failed(error: Exception) -> None:
            self._asking.discard(pair.id)
            if not isinstance(error, UserFacingError):
                raise error
            self._errors[pair.id] = error
            self.changed.emit(pair.id)

        self._worker.run(ask, found, failed)
        self.changed.emit(pair.id)

    @Slot()
    def downloads_changed(self) -> None:
        """To be told when the downloads have moved on."""
        for pair in list(self._groups):
            self.changed.emit(pair)
