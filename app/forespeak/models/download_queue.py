"""The downloads: two at a time, in an order that can be changed, and still there after the program has ended."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forespeak.errors import UserFacingError
from forespeak.models.disk_errors import disk_error
from forespeak.models.download_control import Control, Stopped, Tuning
from forespeak.models.download_entry import Download, Entry, bytes_there
from forespeak.models.download_names import targets
from forespeak.models.download_record import DownloadRecord, DownloadState, RecordFiles, new_id
from forespeak.models.downloads import FileDownload
from forespeak.models.file_hashes import FileHash, FileHashes
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.transfer import remove_empty_folders
from forespeak.models.transfer_rate import Limiter, Speed

if TYPE_CHECKING:
    from forespeak.models.hub_client import HubClient

__all__ = ["Download", "DownloadQueue"]

_TELL_SECONDS = 0.2
_CLOSE_SECONDS = 5.0
_log = logging.getLogger(__name__)


class DownloadQueue:
    """Thread-safe. `listener` gets a download after every change of state, and a few times a second while bytes come.

    It is called from the queue's own threads, and from the caller's. `downloads()` has the current speed at any time.

    `hub` gives the client to ask, anew for each file. `keep` False: the list ends with this process.
    """

    def __init__(
        self,
        models_folder: Path,
        hub: Callable[[], HubClient],
        listener: Callable[[Download], None],
        *,
        at_once: int = 2,
        keep: bool = True,
        tuning: Tuning | None = None,
    ) -> None:
        """Takes up what was left, and goes on with what was not paused."""
        self.models_folder = models_folder
        self.hashes = FileHashes(models_folder)
        self._hub, self._listener, self._at_once, self._tuning = hub, listener, at_once, tuning or Tuning()
        self._limiter = Limiter()
        # The records are written under the first one, one change after the other. The state is behind the second one,
        # never held while a disk is waited for, because windows read the list. They are taken in this order.
        self._acting, self._lock = threading.RLock(), threading.RLock()
        self._telling = threading.RLock()
        self._entries: list[Entry] = []
        self._workers: set[threading.Thread] = set()
        self._records = RecordFiles(models_folder, keep=keep)
        self._starts = 0
        self._closed = False
        with self._lock:
            for record in self._records.adopt():
                self._take_up(record)
            self._start_next()

    # What people do

    def add(self, group: HubFileGroup, instead_of_fetching: Iterable[Path] = ()) -> str:
        """Put a download at the end and return its id. The same one again is resumed, not doubled.

        `instead_of_fetching` are files on this machine (see `file_hashes.identical`): where one has the right
        contents, it is linked or copied. Raises UserFacingError: a part is missing on the Hub, a hostile file name, a
        models folder that cannot be written.
        """
        if group.problem is not None:
            raise UserFacingError(
                f"“{group.name}” cannot be downloaded whole.",
                f"In the repository, {group.problem[0].lower()}{group.problem[1:]}",
                "Choose another quant, or another repository.",
            )
        paths = targets(self.models_folder, group.repo, [file.path for file in group.files])
        with self._acting:
            with self._lock:
                same = [each for each in self._entries if each.group == group and each.state is not DownloadState.DONE]
            if not same:
                entry = Entry(new_id(), group, paths, DownloadState.QUEUED, instead=tuple(instead_of_fetching))
                entry.done = [0] * len(paths)
                try:
                    self._records.write(self._record(entry, len(self._entries)))
                except OSError as error:
                    raise disk_error(error, paths[0]) from error
                with self._lock:
                    self._entries.append(entry)
                    self._start_next()
        if same:
            self.resume(same[0].id)
            return same[0].id
        self._tell(entry)
        return entry.id

    def pause(self, name: str, why: UserFacingError | None = None) -> None:
        """What is there stays; nothing more comes. `why`: what it waits for, if not for the user."""
        allowed = {DownloadState.QUEUED, DownloadState.RUNNING, DownloadState.VERIFYING}
        self._change(name, DownloadState.PAUSED, allowed, why)

    def resume(self, name: str) -> None:
        """Go on with what is paused or has failed, in its turn."""
        self._change(name, DownloadState.QUEUED, {DownloadState.PAUSED, DownloadState.FAILED})

    def retry(self, name: str) -> None:
        """As `resume`: what is there is kept."""
        self.resume(name)

    def cancel(self, name: str) -> None:
        """Take it out of the list and delete what is there of it; finished files stay."""
        with self._acting:
            entry = self._find(name)
            if entry is None or entry.state.is_over:
                return
            self._write(entry, DownloadState.CANCELLED)
            with self._lock:
                self._entries.remove(entry)
                entry.state, entry.error = DownloadState.CANCELLED, None
                self._stop(entry)
                if entry.worker is None:
                    self._spawn(entry, self._discard)
                self._start_next()
        self._tell(entry)

    def forget(self, name: str) -> None:
        """Take a finished download out of the list."""
        with self._lock:
            entry = self._find(name)
            if entry is not None and entry.state is DownloadState.DONE:
                self._entries.remove(entry)

    def move(self, name: str, place: int) -> None:
        """To a place in the list, from 0. What runs already is not interrupted."""
        with self._acting:
            with self._lock:
                entry = self._find(name)
                if entry is None:
                    return
                self._entries.remove(entry)
                self._entries.insert(max(0, place), entry)
                entries = [each for each in self._entries if each.state is not DownloadState.DONE]
            for each in entries:
                self._write(each)
        self._tell(entry)

    def downloads(self) -> tuple[Download, ...]:
        """The list, in its order."""
        with self._lock:
            return tuple(entry.snapshot() for entry in self._entries)

    def set_limit(self, bytes_per_second: float | None) -> None:
        """For all downloads together; None is no limit."""
        self._limiter.set(bytes_per_second)

    def close(self) -> None:
        """Stop everything; what was running goes on when a queue is made anew. May take seconds."""
        with self._lock:
            self._closed = True
            for entry in self._entries:
                self._stop(entry)
            workers = set(self._workers)
        until = time.monotonic() + _CLOSE_SECONDS
        for worker in workers:
            worker.join(max(0.0, until - time.monotonic()))
        with self._acting:
            self._records.close()

    # The list

    def _find(self, name: str) -> Entry | None:
        with self._lock:
            return next((entry for entry in self._entries if entry.id == name), None)

    def _take_up(self, record: DownloadRecord) -> None:
        try:
            paths = targets(self.models_folder, record.group.repo, [file.path for file in record.group.files])
        except UserFacingError:
            # Not written by us.
            return
        entry = Entry(record.id, record.group, paths, record.state, record.error, record.instead)
        entry.done = [bytes_there(path, file) for path, file in zip(paths, record.group.files, strict=True)]
        if record.state is DownloadState.CANCELLED:
            self._spawn(entry, self._discard)
        elif record.state is not DownloadState.DONE:
            self._entries.append(entry)

    def _change(
        self, name: str, state: DownloadState, allowed: set[DownloadState], why: UserFacingError | None = None
    ) -> None:
        with self._acting:
            with self._lock:
                entry = self._find(name)
                if entry is None or entry.state not in allowed or self._closed:
                    return
                entry.state, entry.error, entry.notice = state, why, ""
                if state is DownloadState.PAUSED:
                    self._stop(entry)
                self._start_next()
            self._write(entry)
        self._tell(entry)

    def _write(self, entry: Entry, state: DownloadState | None = None) -> None:
        """Keep it. Where the disk refuses, the list in memory goes on, and the parts tell most after a restart."""
        with self._lock:
            record = self._record(entry, self._entries.index(entry) if entry in self._entries else 0)
        try:
            self._records.write(record if state is None else replace(record, state=state))
        except OSError:
            _log.warning("a download's record could not be written", exc_info=True)

    def _record(self, entry: Entry, place: int) -> DownloadRecord:
        state = DownloadState.QUEUED if entry.state.is_active else entry.state
        return DownloadRecord(entry.id, place, entry.group, state, entry.error, entry.instead)

    def _tell(self, entry: Entry) -> None:
        """Never with the lock held: the listener may take others."""
        # One at a time, so that no older state arrives after a newer one.
        with self._telling:
            with self._lock:
                entry.told_at = time.monotonic()
                snapshot = entry.snapshot()
            self._listener(snapshot)

    # Workers

    def _start_next(self) -> None:
        if self._closed:
            return
        for entry in self._entries:
            running = sum(1 for each in self._entries if each.worker is not None)
            if running >= self._at_once:
                return
            # One that is still stopping starts when it has.
            if entry.state is DownloadState.QUEUED and entry.worker is None:
                self._starts += 1
                entry.started, entry.state, entry.speed = self._starts, DownloadState.RUNNING, Speed()
                self._spawn(entry, self._run)

    def _spawn(self, entry: Entry, work: Callable[[Entry], None]) -> None:
        entry.control = Control(limiter=self._limiter, claimed=lambda: self._claimed(entry))
        entry.worker = threading.Thread(target=self._work, args=(entry, work), name="download", daemon=True)
        self._workers.add(entry.worker)
        entry.worker.start()

    def _stop(self, entry: Entry) -> None:
        if entry.control is not None:
            entry.control.stop()

    def _claimed(self, entry: Entry) -> int:
        """What those who began before it still need."""
        with self._lock:
            return sum(
                each.missing for each in self._entries if each.worker is not None and each.started < entry.started
            )

    def _work(self, entry: Entry, work: Callable[[Entry], None]) -> None:
        try:
            work(entry)
        finally:
            with self._lock:
                assert entry.worker is not None
                self._workers.discard(entry.worker)
                entry.worker = entry.control = None
                if entry.state is DownloadState.CANCELLED and work != self._discard:
                    self._spawn(entry, self._discard)
                self._start_next()

    def _run(self, entry: Entry) -> None:
        self._tell(entry)
        state, error = DownloadState.DONE, None
        try:
            self._fetch(entry)
        except Stopped:
            # Whoever stopped it has said what it is now.
            return
        except UserFacingError as failure:
            waits = isinstance(failure, HubError) and failure.problem is HubProblem.OFFLINE
            state, error = DownloadState.PAUSED if waits else DownloadState.FAILED, failure
        except Exception as failure:  # noqa: BLE001 - a bug of ours must not end the queue
            _log.exception("a download failed")
            state = DownloadState.FAILED
            error = UserFacingError(
                f"“{entry.group.name}” could not be downloaded.",
                f"This is a mistake in Forespeak ({type(failure).__name__}: {failure}).",
                "Try again, and report it if it stays.",
            )
        with self._acting:
            with self._lock:
                if not entry.state.is_active:
                    return
                entry.state, entry.error, entry.notice = state, error, ""
            if state is DownloadState.DONE:
                self._records.remove(entry.id)
            else:
                self._write(entry)
        # While this one still counts as running: nobody is told of a third before.
        self._tell(entry)

    def _fetch(self, entry: Entry) -> None:
        """All files of the group into verified parts, then all of them into their places.

        Raises UserFacingError, Stopped.
        """
        group, control = entry.group, entry.control
        assert control is not None
        control.notice = lambda words: self._note(entry, words)
        control.checking = lambda checking: self._check(entry, checking=checking)
        files: list[FileDownload] = []
        try:
            for number, (file, path) in enumerate(zip(group.files, entry.paths, strict=True)):
                control.progress = partial(self._progress, entry, number)
                files.append(FileDownload(group.repo, group.revision, file, path, self._hub, control, self._tuning))
                verification = files[-1].run(entry.instead, self.hashes)
                with self._lock:
                    entry.verified = (*entry.verified[:number], verification)
            # What makes a folder or a set a model comes last, so that nothing incomplete is ever found.
            for each in sorted(files, key=lambda each: each.file.name == "config.json" or each is files[0]):
                each.finish()
                self._keep_hash(group, each)
        finally:
            for each in files:
                each.close()

    def _keep_hash(self, group: HubFileGroup, file: FileDownload) -> None:
        with contextlib.suppress(OSError):
            there = file.target.stat()
            where = (group.repo, group.revision, file.file.path)
            self.hashes.note(file.target, FileHash(there.st_size, there.st_mtime_ns, file.sha256, file.git, *where))

    def _discard(self, entry: Entry) -> None:
        for file, path in zip(entry.group.files, entry.paths, strict=True):
            part = FileDownload(entry.group.repo, entry.group.revision, file, path, self._hub, Control(), self._tuning)
            try:
                part.discard()
            except UserFacingError:
                _log.warning("a part could not be removed", exc_info=True)
        for path in entry.paths:
            remove_empty_folders(path.parent, self.models_folder)
        with self._acting:
            self._records.remove(entry.id)

    def _progress(self, entry: Entry, number: int, done: int) -> None:
        with self._lock:
            entry.done[number] = done
            entry.speed.add(sum(entry.done))
        if time.monotonic() - entry.told_at > _TELL_SECONDS:
            self._tell(entry)

    def _note(self, entry: Entry, words: str) -> None:
        if entry.notice != words:
            entry.notice = words
            self._tell(entry)

    def _check(self, entry: Entry, *, checking: bool) -> None:
        with self._lock:
            if not entry.state.is_active:
                return
            entry.state = DownloadState.VERIFYING if checking else DownloadState.RUNNING
            if not checking:
                entry.speed = Speed()
        self._tell(entry)
