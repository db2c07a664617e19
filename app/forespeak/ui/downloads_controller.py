"""The queue of downloads as the window sees it: asked on a thread of its own, told of at most a few times a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_files import HubFileGroup
from forespeak.ui.background import Worker

SHOW_EVERY_MS = 250
CLOSE_SECONDS = 0.5
"""A queue that needs longer is cut off with the program, which it survives as it would a crash."""


class Queue(Protocol):
    """`models.download_queue.DownloadQueue`. Thread-safe; all but `downloads` may wait for the disk."""

    def add(self, group: HubFileGroup, instead_of_fetching: Iterable[Path] = ...) -> str:
        """Raises UserFacingError."""
        ...

    def pause(self, name: str, why: UserFacingError | None = ...) -> None: ...

    def resume(self, name: str) -> None: ...

    def retry(self, name: str) -> None: ...

    def cancel(self, name: str) -> None: ...

    def forget(self, name: str) -> None: ...

    def move(self, name: str, place: int) -> None: ...

    def downloads(self) -> tuple[Download, ...]: ...

    def set_limit(self, bytes_per_second: float | None) -> None: ...

    def close(self) -> None: ...


MakeQueue = Callable[[Callable[[Download], None]], Queue]


class DownloadsController(QObject):
    """`downloads` is the list as last shown, in its order."""

    changed = Signal()
    finished = Signal(object)
    """Download: its files are in their places now."""
    problemFound = Signal(object)
    """UserFacingError about what was asked for"""
    runningChanged = Signal(int)
    """How many run or wait for their turn"""
    limitChanged = Signal(object)
    """Bytes a second, or None"""
    _told = Signal()

    def __init__(self, make_queue: MakeQueue, limit: int | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._make_queue = make_queue
        self._limit = limit
        self._queue: Queue | None = None
        self._worker = Worker("downloads", self)
        self._pending = threading.Event()
        self._running = 0
        self._closed = False
        self.downloads: tuple[Download, ...] = ()
        self._show = QTimer(self)
        self._show.setSingleShot(True)
        self._show.setInterval(SHOW_EVERY_MS)
        self._show.timeout.connect(self._take)
        self._told.connect(self._soon, Qt.ConnectionType.QueuedConnection)

    @property
    def started(self) -> bool:
        return self._queue is not None

    @property
    def limit(self) -> int | None:
        """The most bytes a second, all downloads together."""
        return self._limit

    @property
    def running(self) -> int:
        """How many run or wait for their turn."""
        return self._running

    def start(self) -> None:
        """Take up what was left the last time."""
        self._worker.run(self._open, self._opened, self._fail)

    def reopen(self) -> None:
        """The models folder is another one now, with a list of its own."""
        self.suspend(self.start)

    def suspend(self, then: Callable[[], None]) -> None:
        """Stop everything, so that the models folder can be moved, parts and list included; then `then`.

        `start` goes on with what was running, in the folder that is the models folder by then.
        """
        old, self._queue = self._queue, None
        self._worker.run((lambda: None) if old is None else old.close, lambda _: then(), self._fail)

    def close(self) -> None:
        """Stop everything; it goes on when the window opens again. Takes no longer than the window may."""
        if self._closed:
            return
        self._closed = True
        self._show.stop()
        queue = self._queue
        if queue is not None:
            ending = threading.Thread(target=queue.close, name="downloads-end", daemon=True)
            ending.start()
            ending.join(CLOSE_SECONDS)
        self._worker.close(0.1)

    # -- what people do

    def add(self, group: HubFileGroup, instead: Iterable[Path] = ()) -> None:
        """`instead`: files on this machine that may be the same ones."""
        files = tuple(instead)
        self._do(lambda queue: queue.add(group, files))

    def pause(self, name: str, why: UserFacingError | None = None) -> None:
        """`why`: what it waits for, if not for the user."""
        self._do(lambda queue: queue.pause(name, why))

    def resume(self, name: str) -> None:
        self._do(lambda queue: queue.resume(name))

    def retry(self, name: str) -> None:
        self._do(lambda queue: queue.retry(name))

    def cancel(self, name: str) -> None:
        self._do(lambda queue: queue.cancel(name))

    def forget(self, name: str) -> None:
        self._do(lambda queue: queue.forget(name))

    def forget_finished(self) -> None:
        for download in self.downloads:
            if download.state is DownloadState.DONE:
                self.forget(download.id)

    def pause_all(self) -> None:
        for download in self.downloads:
            self.pause(download.id)

    @Slot(object)
    def follow_network(self, offline: UserFacingError | None) -> None:
        """The user went offline, for which there is a sentence: nothing more comes. None: what waited goes on."""
        for download in self.downloads:
            error = download.error
            if offline is not None:
                self.pause(download.id, offline)
            elif (
                download.state is DownloadState.PAUSED
                and isinstance(error, HubError)
                and error.problem is HubProblem.OFFLINE
            ):
                self.resume(download.id)

    def resume_all(self) -> None:
        for download in self.downloads:
            if download.state is DownloadState.PAUSED:
                self.resume(download.id)

    def move(self, name: str, up: bool) -> None:
        """One place up or down among those that are not finished."""
        order = [each.id for each in self.downloads]
        open_ones = [each.id for each in self.downloads if not each.state.is_over]
        if name not in open_ones:
            return
        at = open_ones.index(name) + (-1 if up else 1)
        if 0 <= at < len(open_ones):
            place = order.index(open_ones[at])
            self._do(lambda queue: queue.move(name, place))

    @Slot(object)
    def set_limit(self, limit: int | None) -> None:
        if limit != self._limit:
            self._limit = limit
            self._do(lambda queue: queue.set_limit(limit))
            self.limitChanged.emit(limit)

    def find(self, group: HubFileGroup) -> Download | None:
        """The download of a group, the newest one first."""
        for download in reversed(self.downloads):
            if (download.repo, download.files) == (group.repo, group.files):
                return download
        return None

    # -- inside

    def _open(self) -> Queue:
        queue = self._make_queue(self._listen)
        queue.set_limit(self._limit)
        # Here already, so that what was asked for in the meantime finds it.
        self._queue = queue
        return queue

    def _opened(self, queue: Queue) -> None:
        if self._closed:
            threading.Thread(target=queue.close, name="downloads-end", daemon=True).start()
            return
        self._take()

    def _do(self, act: Callable[[Queue], object]) -> None:
        # Behind the opening, on the same thread.
        def job() -> None:
            queue = self._queue
            if queue is not None:
                act(queue)

        self._worker.run(job, lambda _: self._take(), self._fail)

    def _listen(self, _: Download) -> None:
        """On the queue's threads: one signal for any number of calls."""
        if not self._pending.is_set() and not self._closed:
            self._pending.set()
            self._told.emit()

    @Slot()
    def _soon(self) -> None:
        if not self._show.isActive() and not self._closed:
            self._show.start()

    @Slot()
    def _take(self) -> None:
        self._pending.clear()
        if self._queue is None or self._closed:
            return
        before = {download.id: download.state for download in self.downloads}
        downloads = self._queue.downloads()
        running = sum(each.state.is_going for each in downloads)
        if downloads != self.downloads:
            self.downloads = downloads
            self.changed.emit()
        for download in downloads:
            if download.state is DownloadState.DONE and before.get(download.id) is not DownloadState.DONE:
                self.finished.emit(download)
        if running != self._running:
            self._running = running
            self.runningChanged.emit(running)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self.problemFound.emit(error)
