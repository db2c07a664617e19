"""Puts together what the Hub, the downloads, the library and this machine's memory know of the repo that is open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.library import LibraryItem
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.memory import Fit, fit_of
from forespeak.ui.background import Worker
from forespeak.ui.discover import DiscoverTab
from forespeak.ui.download_row import state_words
from forespeak.ui.downloads_controller import DownloadsController
from forespeak.ui.downloads_tab import DownloadsTab
from forespeak.ui.file_groups import GroupView
from forespeak.ui.hub_controller import HubController
from forespeak.ui.hub_verdicts import HubVerdicts
from forespeak.ui.latest import Latest
from forespeak.ui.local_copies import local_copy, local_item
from forespeak.ui.recommended import recommendation, size_fit

_FRESH_SECONDS = 5.0


class Compare(Protocol):
    """Whether an item of the library holds the very files of a group. Reads all of them; raises OSError."""

    def __call__(self, group: HubFileGroup, item: LibraryItem, stopped: Callable[[], bool]) -> bool: ...


class MachineWatch:
    """This machine's memory, measured at most every few seconds, with the GPUs that `look` found last.

    May be asked from any thread. `gpus` may take a second.
    """

    def __init__(self, measure: Callable[[Sequence[Gpu]], Machine], gpus: Callable[[], Sequence[Gpu]] = tuple) -> None:
        self._measure, self._ask_gpus = measure, gpus
        self._lock = threading.Lock()
        self._gpus: tuple[Gpu, ...] = ()
        self._looked = -_FRESH_SECONDS
        self._last: tuple[float, Machine] | None = None

    def __call__(self) -> Machine:
        with self._lock:
            now = time.monotonic()
            if self._last is None or now - self._last[0] > _FRESH_SECONDS:
                self._last = (now, self._measure(self._gpus))
            return self._last[1]

    def look(self) -> bool:
        """Ask for the GPUs, off the UI thread. Whether they, or what is free there, are other than before."""
        with self._lock:
            asked, self._looked = self._looked, time.monotonic()
            if self._looked - asked < _FRESH_SECONDS:
                return False
        found = tuple(self._ask_gpus())
        with self._lock:
            if found == self._gpus:
                return False
            self._gpus, self._last = found, None
            return True

    def fits(self, size_bytes: int) -> bool:
        return fit_of(size_bytes, self()) is not Fit.TOO_LARGE


class HubView(QObject):
    """`items` is what the library knows now; call `library_changed` when that is other than before."""

    useRequested = Signal(object, bool)
    """Path of a model and whether it is to be the draft"""
    showRequested = Signal(object)
    """Path of a model: show it among my models"""
    downloadsRequested = Signal()
    """The user wants to see the Downloads tab"""
    problemFound = Signal(object)
    """UserFacingError"""

    def __init__(
        self,
        discover: DiscoverTab,
        tab: DownloadsTab,
        controller: HubController,
        downloads: DownloadsController,
        items: Callable[[], Sequence[LibraryItem]],
        machine: MachineWatch,
        compare: Compare,
        verdicts: HubVerdicts,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._discover, self._tab = discover, tab
        self._controller, self._downloads = controller, downloads
        self._items, self._machine, self._compare, self._verdicts = items, machine, compare, verdicts
        self._measured: Machine | None = None
        self._comparing: HubFileGroup | None = None
        self._different: set[tuple[HubFileGroup, Path]] = set()
        """Files that were compared with a group and are others."""
        self._worker = Worker("machine", self)
        self._comparison = Latest("compare files", self)
        controller.repoChanged.connect(self._repo_changed)
        downloads.changed.connect(self.refresh)
        downloads.problemFound.connect(self.problemFound)
        discover.downloadRequested.connect(self._download)
        discover.useRequested.connect(self._use_copy)
        discover.compareRequested.connect(self._compare_copy)
        discover.showDownloadRequested.connect(self._show_download)
        discover.judgeRequested.connect(self._judge)
        verdicts.changed.connect(self.refresh)
        verdicts.problemFound.connect(self.problemFound)
        tab.useRequested.connect(self._use_download)
        tab.showRequested.connect(self._show_model)

    def close(self) -> None:
        self._comparison.close(0.0)
        self._worker.close(0.1)

    @Slot()
    def library_changed(self) -> None:
        self._discover.set_here({item.repo for item in self._items() if item.repo is not None and item.problem is None})
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        repo = self._controller.repo.repo
        if repo is not None:
            self._discover.show_groups(self.views(repo.groups))

    def views(self, groups: Sequence[HubFileGroup]) -> list[GroupView]:
        items = self._items()
        machine = self._measured
        fits = {group: None if machine is None else size_fit(group.size_bytes, machine) for group in groups}
        advice = None if machine is None else recommendation(groups, fits.get)
        views = []
        for group in groups:
            copy = local_copy(group, items)
            if copy is not None and (group, copy.path) in self._different:
                copy = None
            download = self._downloads.find(group)
            busy = download is not None and not download.state.is_over
            views.append(
                GroupView(
                    group,
                    fits[group],
                    advice.why if advice is not None and advice.group == group else "",
                    copy,
                    state_words(download) if download is not None and busy else "",
                    _tr("Comparing the two files…") if group == self._comparing else "",
                    self._verdicts.of(group),
                )
            )
        return views

    # -- what changes

    @Slot()
    def _repo_changed(self) -> None:
        status = self._controller.repo
        if status.repo is None:
            return
        if self._comparing is not None and self._comparing.repo != status.repo.repo:
            self._comparison.cancel()
            self._comparing = None
        self._verdicts.leave(status.repo.repo)
        self.refresh()
        self._worker.run(self._machine, self._measure_came)

    def _measure_came(self, machine: Machine) -> None:
        self._measured = machine
        self.refresh()

    # -- what is asked for

    @Slot(object)
    def _download(self, view: GroupView) -> None:
        # A file that looks the same is linked if it is, which the queue finds out.
        item = local_item(view.group, self._items()) if view.copy is not None else None
        self._downloads.add(view.group, () if item is None else item.files)

    @Slot(object)
    def _use_copy(self, view: GroupView) -> None:
        if view.copy is not None:
            self.useRequested.emit(view.copy.path, False)

    @Slot(object)
    def _compare_copy(self, view: GroupView) -> None:
        group, copy = view.group, view.copy
        item = local_item(group, self._items())
        if copy is None or item is None or item.path != copy.path:
            return
        self._comparing = group
        self.refresh()

        def compared(same: bool) -> None:
            self._comparing = None
            if same:
                self.useRequested.emit(copy.path, False)
            else:
                self._different.add((group, copy.path))
                self.problemFound.emit(
                    UserFacingError(
                        _tr("The file here is another one."),
                        _tr("It is as large, but its contents are not those on the Hub."),
                        _tr("Download this one beside it."),
                    )
                )
            self.refresh()

        def failed(error: Exception) -> None:
            self._comparing = None
            self.refresh()
            if not isinstance(error, OSError):
                raise error
            self.problemFound.emit(
                UserFacingError(
                    _tr("The file here cannot be read."),
                    f"{copy.path}: {error.strerror or error}.",
                    _tr("Download it."),
                )
            )

        self._comparison.run(lambda stop: self._compare(group, item, stop.is_set), compared, failed)

    @Slot(object)
    def _judge(self, view: GroupView) -> None:
        if view.verdict.judging:
            self._verdicts.stop()
        else:
            self._verdicts.ask(view.group)

    @Slot(object)
    def _show_download(self, view: GroupView) -> None:
        download = self._downloads.find(view.group)
        self.downloadsRequested.emit()
        if download is not None:
            self._tab.show_download(download)

    @Slot(object, bool)
    def _use_download(self, download: Download, draft: bool) -> None:
        if download.state is DownloadState.DONE:
            self.useRequested.emit(download.model_path, draft)

    @Slot(object)
    def _show_model(self, download: Download) -> None:
        self.showRequested.emit(download.model_path)


def _tr(words: str) -> str:
    return QCoreApplication.translate("HubView", words)
