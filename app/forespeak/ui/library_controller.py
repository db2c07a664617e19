"""The library behind the Models page: reads it off the UI thread, watches it, and does one long task at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.errors import UserFacingError
from forespeak.models.library import ImportResult, ImportWay, LibraryItem
from forespeak.models.roots import Root, RootKind
from forespeak.models.shards import shard_name
from forespeak.models.starter import starter_target_path
from forespeak.ui.background import Worker
from forespeak.ui.library_model import FitWords
from forespeak.ui.library_state import (
    Cancelled,
    CheckFiles,
    LibraryState,
    ModelLibrary,
    Progress,
    RemovedModel,
    Task,
    TaskKind,
)

T = TypeVar("T")
SHOW_EVERY_MS = 100
REST_SECONDS = 0.02
"""Between two headers that nobody waits for, so that the window has the processor first."""
WEIGHED_AT_ONCE = 24
"""How many are shown together while they are read."""
CLOSE_SECONDS = 0.8
MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class _Scanned:
    items: tuple[LibraryItem, ...]
    fits: Mapping[Path, FitWords]
    roots: tuple[Root, ...]
    free_bytes: int | None


class LibraryController(QObject):
    """`fit_of` and `suits` (target, draft) are asked off the UI thread.

    `weigh` is a slow `fit_of`, asked of one model after the other when the list is shown already; None: as before.
    """

    changed = Signal()
    """Of `state`"""
    fitsChanged = Signal()
    """Only `state.fits` is another one"""
    scanProgressed = Signal()
    taskChanged = Signal()
    noticed = Signal(str)
    """Something went well, in a sentence"""
    removalsChanged = Signal()
    imported = Signal(object)
    """Paths of the models that came"""
    problemFound = Signal(object)
    """UserFacingError"""
    folderMoved = Signal(object)
    """Path of the models folder now"""
    _watched = Signal()

    def __init__(
        self,
        library: ModelLibrary,
        fit_of: Callable[[LibraryItem], FitWords | None],
        suits: Callable[[Path, Path], bool],
        check: CheckFiles,
        parent: QObject | None = None,
        weigh: Callable[[LibraryItem], FitWords | None] = lambda _: None,
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._fit_of = fit_of
        self._suits = suits
        self._check = check
        self._weigh = weigh
        self.state = LibraryState()
        self.task: Task | None = None
        self.removals: list[tuple[str, RemovedModel]] = []
        """Newest last: what can still be taken back, by name."""
        self._scanner = Worker("library-scan", self)
        self._doer = Worker("library-task", self)
        # Of its own: nobody wants to wait for an import to see which drafts there are.
        self._judge = Worker("library-drafts", self)
        self._stop_scan = threading.Event()
        self._stop_task = threading.Event()
        self._stop_weighing = threading.Event()
        self._scanning = False
        self._again = False
        self._counts = (0, 0)
        self._bytes = (0, 0)
        self._unwatch: Callable[[], None] | None = None
        self._closed = False
        self._verdicts: dict[tuple[str, str], bool] = {}
        # Threads only leave figures behind; the window looks at them now and then.
        self._look = QTimer(self)
        self._look.setInterval(SHOW_EVERY_MS)
        self._look.timeout.connect(self._show_progress)
        self._watched.connect(self.rescan)

    # -- reading

    def start(self) -> None:
        self._scanner.run(self._recover, self._recovered, self._fail)
        # First, or what comes between the scan and the watching would not be noticed.
        self._scanner.run(self._watch, None, self._fail)
        self.rescan()

    @Slot()
    def rescan(self) -> None:
        """Read the library; once more afterwards if it is being read already."""
        if self._scanning:
            self._again = True
            return
        self._stop_weighing.set()
        self._scanning, self._again = True, False
        self._counts = (0, 0)
        self.state = replace(self.state, scan=(0, 0))
        self._look.start()
        self._scanner.run(self._scan, self._scanned, self._scan_failed)
        self.scanProgressed.emit()

    def set_added(self, folders: Sequence[Path]) -> None:
        self._library.set_added(folders)
        self._restart_scan()

    def partners_of(self, target: LibraryItem, found: Callable[[frozenset[Path]], None]) -> None:
        """Which models can draft for `target`: those with its vocabulary that are not larger."""
        items = self.state.items

        def look() -> frozenset[Path]:
            return frozenset(item.path for item in items if item.path != target.path and self._can_draft(target, item))

        self._judge.run(look, found, self._fail)

    # -- tasks

    def is_free(self) -> bool:
        """Whether the models folder can be changed now; if not, that is told."""
        if self.task is not None:
            self.problemFound.emit(
                UserFacingError(
                    self.tr("Something else is still being done."),
                    self.tr("The models folder is changed by one thing at a time."),
                    self.tr("Wait until it is done, or cancel it."),
                )
            )
        return self.task is None

    def import_models(self, paths: Sequence[Path], way: ImportWay) -> None:
        name = paths[0].name if len(paths) == 1 else self.tr("{count} files").format(count=len(paths))

        def done(result: ImportResult) -> None:
            if result.paths or result.cancelled:
                self.noticed.emit(self._came(result))
            if result.paths:
                self.imported.emit(result.paths)
            if result.refused:
                self.problemFound.emit(self._refused(result))

        self._begin(
            Task(TaskKind.IMPORT, name),
            lambda progress, cancelled: self._library.import_models(paths, way, progress, cancelled),
            done,
        )

    def move_to(self, folder: Path) -> None:
        def done(moved: bool) -> None:
            if moved:
                self.noticed.emit(self.tr("The models are in {folder} now.").format(folder=folder))
                self.folderMoved.emit(folder)
            else:
                self.noticed.emit(self.tr("Stopped. The models are where they were."))

        self._begin(
            Task(TaskKind.MOVE, str(folder)),
            lambda progress, cancelled: self._library.move_to(folder, progress, cancelled),
            done,
        )

    def verify(self, item: LibraryItem) -> None:
        self._begin(
            Task(TaskKind.VERIFY, item.name),
            lambda progress, cancelled: self._check(item, progress, cancelled),
            lambda words: self.noticed.emit(words) if words else None,
            rescan=False,
        )

    def remove(self, item: LibraryItem) -> None:
        """Take it out of the library; `undo` brings it back until the window closes."""

        def removed(removal: RemovedModel) -> None:
            self.removals.append((item.name, removal))
            # At once: the next scan says the same a little later.
            kept = tuple(other for other in self.state.items if other.path != item.path)
            self.state = replace(self.state, items=kept)
            self.changed.emit()
            self.removalsChanged.emit()
            self._restart_scan()

        self._doer.run(lambda: self._library.remove(item), removed, self._fail)

    def undo(self) -> None:
        """Bring back what was removed last."""
        if not self.removals or not self.is_free():
            return
        name, removal = self.removals.pop()
        self.removalsChanged.emit()

        def undone(_: None) -> None:
            self.noticed.emit(self.tr("“{name}” is back.").format(name=name))
            self._restart_scan()

        def failed(error: Exception) -> None:
            # It can be tried again, once the reason is gone.
            self.removals.append((name, removal))
            self.removalsChanged.emit()
            self._fail(error)

        self._doer.run(removal.undo, undone, failed)

    @Slot()
    def cancel(self) -> None:
        if self.task is not None:
            self._stop_task.set()
            self.task = replace(self.task, cancelling=True)
            self.taskChanged.emit()

    def close(self) -> None:
        """End what runs. Removed models are deleted now, after which nothing can bring them back."""
        if self._closed:
            return
        self._closed = True
        self._look.stop()
        self._stop_scan.set()
        self._stop_task.set()
        self._stop_weighing.set()
        deadline = time.monotonic() + CLOSE_SECONDS
        self._scanner.close(CLOSE_SECONDS)
        self._judge.close(0.0)
        if self._unwatch is not None:
            self._unwatch()
        removals, self.removals = self.removals, []
        for _, removal in removals:
            self._doer.run(_finish(removal))
        self._doer.close(max(0.2, deadline - time.monotonic()))

    # -- inside

    def _came(self, result: ImportResult) -> str:
        """What became of those that are in the models folder now, in a sentence."""
        there = len(result.there)
        came = len(result.paths) - there
        if result.cancelled:
            if not came:
                return self.tr("Stopped. Nothing was imported.")
            if came == 1:
                return self.tr("Stopped. One model was imported before.")
            return self.tr("Stopped. {count} models were imported before.").format(count=came)
        name = loaded_name(result.paths[0])
        if not there:
            if came == 1:
                return self.tr("Imported “{name}”.").format(name=name)
            return self.tr("Imported {count} models.").format(count=came)
        if came:
            words = self.tr("Imported {came} of {count} models; the others are there already.")
            return words.format(came=came, count=came + there)
        if there == 1:
            return self.tr("It is in the models folder already, as “{name}”.").format(name=name)
        return self.tr("All {count} models are in the models folder already.").format(count=there)

    def _refused(self, result: ImportResult) -> UserFacingError:
        """One error of several."""
        if len(result.refused) == 1:
            return result.refused[0]
        refused = len(result.refused)
        words = (
            self.tr("{refused} of {count} models could not be imported.")
            if result.paths
            else self.tr("None of the {count} models could be imported.")
        )
        told = [f"{error.what} {error.why}" for error in result.refused[:MOST_TOLD]]
        if refused > MOST_TOLD:
            told.append(self.tr("And {count} more.").format(count=refused - MOST_TOLD))
        return UserFacingError(words.format(refused=refused, count=refused + len(result.paths)), "\n\n".join(told))

    def _begin(
        self,
        task: Task,
        job: Callable[[Progress, Cancelled], T],
        done: Callable[[T], None],
        rescan: bool = True,
    ) -> None:
        if not self.is_free():
            return
        self.task = task
        self._bytes = (0, 0)
        self._stop_task = stop = threading.Event()

        def progress(count: int, total: int) -> None:
            self._bytes = (count, total)

        def ended() -> None:
            self.task = None
            self.taskChanged.emit()
            if rescan:
                self._restart_scan()

        def succeeded(result: T) -> None:
            ended()
            done(result)

        def failed(error: Exception) -> None:
            ended()
            self._fail(error)

        self._look.start()
        self._doer.run(lambda: job(progress, stop.is_set), succeeded, failed)
        self.taskChanged.emit()

    def _recover(self) -> Path | None:
        return self._library.roots()[0].path if self._library.recover() else None

    def _recovered(self, folder: Path | None) -> None:
        if folder is not None:
            self.folderMoved.emit(folder)

    def _scan(self) -> _Scanned:
        def progress(done: int, total: int) -> None:
            self._counts = (done, total)

        items = self._library.scan(progress, self._stop_scan.is_set)
        fits = {item.path: fit for item in items if item.usable and (fit := self._fit_of(item)) is not None}
        return _Scanned(items, fits, self._library.roots(), self._library.free_bytes() or None)

    def _scanned(self, found: _Scanned) -> None:
        self._scanning = False
        if not self._stop_scan.is_set():
            self.state = LibraryState(found.items, found.fits, found.roots, found.free_bytes, read=True)
            self.changed.emit()
            self._weigh_some(found.items)
        self._scan_ended()

    def _weigh_some(self, items: Sequence[LibraryItem]) -> None:
        """The next few of them, and then the rest, unless another scan begins."""
        self._stop_weighing = stop = threading.Event()

        def read() -> tuple[dict[Path, FitWords], int]:
            fits: dict[Path, FitWords] = {}
            for number, item in enumerate(items):
                if stop.is_set() or len(fits) == WEIGHED_AT_ONCE:
                    return fits, number
                if item.usable and (fit := self._weigh(item)) is not None:
                    fits[item.path] = fit
                    stop.wait(REST_SECONDS)
            return fits, len(items)

        def came(outcome: tuple[dict[Path, FitWords], int]) -> None:
            fits, number = outcome
            if fits:
                self.state = replace(self.state, fits={**self.state.fits, **fits})
                self.fitsChanged.emit()
            if number < len(items) and not stop.is_set():
                self._weigh_some(items[number:])

        self._scanner.run(read, came, self._fail)

    def _scan_failed(self, error: Exception) -> None:
        self._scanning = False
        self.state = replace(self.state, scan=None, read=True)
        self.changed.emit()
        self._fail(error)
        self._scan_ended()

    def _scan_ended(self) -> None:
        self._stop_scan.clear()
        if self._again:
            self.rescan()
        else:
            self.scanProgressed.emit()

    def _restart_scan(self) -> None:
        """What is being read may be out of date already."""
        if self._scanning:
            self._stop_scan.set()
        self.rescan()

    @Slot()
    def _show_progress(self) -> None:
        if self._scanning:
            if self.state.scan != self._counts:
                self.state = replace(self.state, scan=self._counts)
                self.scanProgressed.emit()
        elif self.task is None:
            self._look.stop()
        if self.task is not None and (self.task.done, self.task.total) != self._bytes:
            done, total = self._bytes
            self.task = replace(self.task, done=done, total=total)
            self.taskChanged.emit()

    def _watch(self) -> None:
        self._unwatch = self._library.watch(self._watched.emit)
        if self._closed:
            self._unwatch()

    def _can_draft(self, target: LibraryItem, item: LibraryItem) -> bool:
        if not item.usable or item.size_bytes > target.size_bytes:
            return False
        one, other = target.vocabulary_fingerprint, item.vocabulary_fingerprint
        if one is not None and one == other:
            return True
        # One look for each two vocabularies; files of the same one are judged alike.
        key = (one or str(target.path), other or str(item.path))
        if key not in self._verdicts:
            try:
                self._verdicts[key] = self._suits(target.path, item.path)
            except UserFacingError:
                return False
        return self._verdicts[key]

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self.problemFound.emit(error)


def _finish(removal: RemovedModel) -> Callable[[], None]:
    def finish() -> None:
        try:
            removal.finish()
        except UserFacingError:
            # The window is gone; what is left in the folder is cleared away at another start.
            pass

    return finish


def loaded_name(path: Path) -> str:
    """What a model is called in the list, by what is loaded of it. An MLX folder's name may hold dots."""
    if path.suffix.lower() != ".gguf":
        return path.name
    part = shard_name(path.name)
    return path.stem if part is None else part.stem


def starter_only(items: Iterable[LibraryItem]) -> bool:
    """Whether there is nothing but what came with the program."""
    return all(item.root.kind is RootKind.STARTER or item.path == starter_target_path(item.root.path) for item in items)
