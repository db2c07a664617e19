"""The models on this computer: found in several folders, recognised by their headers, and looked after in our own."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from weakref import WeakSet

from forespeak.models.file_facts import FileFacts, read_facts
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError, GgufKind, KnownTexts
from forespeak.models.importing import ImportResult, ImportWay, import_models
from forespeak.models.library_cache import FactsCache, Stamp
from forespeak.models.library_files import FoundModel, Identity, find_models
from forespeak.models.library_item import LibraryItem, item_of
from forespeak.models.library_settings import LibrarySettingsFile, users_folders
from forespeak.models.library_watch import LibraryWatcher
from forespeak.models.mlx_folder import read_mlx_facts
from forespeak.models.moving import finish_move, move_models
from forespeak.models.removal import Removal, clear_leftovers, remove
from forespeak.models.roots import Root, RootKind, added_root, known_roots, own_root
from forespeak.models.transfer import Progress, free_bytes

__all__ = [
    "ImportResult",
    "ImportWay",
    "Library",
    "LibraryItem",
    "ModelFormat",
    "Progress",
    "Removal",
    "Root",
    "users_library",
]

# More would be faster on many cores, but each may keep the window's thread waiting for its turn.
_MOST_THREADS = 2
_REST_SECONDS = 0.0005
"""After each model. A window that waits for the interpreter has it first."""


class Library:
    """`own` is the folder that is ours to change, `roots` are read only. `cache` is the folder for what is known.

    Everything here reads disks: not for the UI thread. `scan` may run in several threads at once.
    """

    def __init__(self, own: Path, roots: Sequence[Root], cache: Path) -> None:
        self._own = own
        self._roots = tuple(roots)
        self._facts = FactsCache(cache)
        self._texts = KnownTexts()
        self._removals: WeakSet[Removal] = WeakSet()
        """Those that can still be undone, and others."""

    @property
    def own(self) -> Path:
        return self._own

    def roots(self) -> tuple[Root, ...]:
        """Our own folder first."""
        return own_root(self._own), *self._roots

    def set_added(self, folders: Sequence[Path]) -> None:
        """The folders that the user added, in place of those before; from the next scan on."""
        others = tuple(root for root in self._roots if root.kind is not RootKind.ADDED)
        known = {self._own.absolute(), *(root.path.absolute() for root in others)}
        added = [folder for folder in dict.fromkeys(folders) if folder.absolute() not in known]
        self._roots = (*others, *map(added_root, added))

    def free_bytes(self) -> int:
        """What the disk of our own folder has left; 0 if that cannot be told."""
        try:
            return free_bytes(self._own)
        except OSError:
            return 0

    def watch(self, changed: Callable[[], None], seconds: float = 2.0) -> Callable[[], None]:
        """Call `changed`, on a thread of its own, when files came or went. Returns what ends the watching."""
        watcher = LibraryWatcher(self.roots, changed, seconds)
        return watcher.close

    def scan(
        self, progress: Progress | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[LibraryItem, ...]:
        """Everything there is, by name. What is seen through two roots or links is one item, in the first root.

        `progress` counts models whose headers had to be read. Never raises for what a file holds. When cancelled, what
        was found until then is returned.
        """
        found: dict[Identity, tuple[Root, FoundModel]] = {}
        for root in self.roots():
            for model in find_models(root, cancelled):
                found.setdefault(model.identity, (root, model))
        self._read_new([model for _, model in found.values()], progress or _ignore, cancelled)
        items = [
            item
            for root, model in found.values()
            if (parts := self._known(model)) is not None and (item := item_of(root, model, parts)) is not None
        ]
        self._facts.save()
        return tuple(sorted(items, key=lambda item: (item.name.casefold(), str(item.path))))

    def import_models(
        self,
        sources: Sequence[Path],
        way: ImportWay = ImportWay.COPY,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ImportResult:
        """Bring files, shard sets (by any of their parts) and MLX folders into our own folder; folders are searched.

        Nothing is listed before it is whole and its header has been read again. `progress` counts bytes. What cannot be
        imported is in the result as an error, and does not keep the others out.
        """
        return import_models(self.roots(), sources, way, progress or _ignore, cancelled)

    def remove(self, item: LibraryItem) -> Removal:
        """Take a model out of our own folder; it can be brought back until `finish` is called.

        Raises UserFacingError, for models in read-only folders too, saying who can remove them.
        """
        removal = remove(lambda: self._own, item)
        self._removals.add(removal)
        return removal

    def move_to(
        self, folder: Path, progress: Progress | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> bool:
        """Move everything in our own folder, also to another disk; False if cancelled, and then all is as before.

        `progress` counts bytes. Nothing else may write in either folder meanwhile: stop downloads first. Raises
        UserFacingError, and then all is as before. Store `own` as the new setting afterwards.
        """
        if move_models(self._own, folder, progress or _ignore, cancelled):
            self._own = folder
            for removal in list(self._removals):
                removal.follow()
            return True
        return False

    def recover(self) -> bool:
        """Put in order what a crash has left; True if `own` is another folder now, to be stored as the new setting.

        Call it at start, before anything else. What was removed is gone for good, as its undo was promised only until
        the app closes; what was only half removed is back. Unfinished copies of an import are deleted. A move that was
        interrupted is undone, or finished if everything had arrived.
        """
        folder = finish_move(self._own)
        moved, self._own = folder != self._own, folder
        clear_leftovers(self._own)
        return moved

    def _known(self, model: FoundModel) -> list[FileFacts] | None:
        """What is known of a model's files; None if one of them has not been read."""
        facts = [self._facts.get(path, stamp) for path, stamp in _stamps(model)]
        return [each for each in facts if each is not None] if None not in facts else None

    def _read_new(self, models: Sequence[FoundModel], progress: Progress, cancelled: Callable[[], bool]) -> None:
        new = [model for model in models if self._known(model) is None]
        progress(0, len(new))
        if not new:
            return
        waiting = deque(new)
        count = min(_MOST_THREADS, os.cpu_count() or 1)

        def read() -> None:
            while not cancelled():
                try:
                    model = waiting.popleft()
                except IndexError:
                    return
                self._read(model)
                time.sleep(_REST_SECONDS)

        # Reading and hashing let other threads run meanwhile.
        with ThreadPoolExecutor(count, "library") as threads:
            running = {threads.submit(read) for _ in range(count)}
            while running:
                finished, running = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
                progress(max(0, len(new) - len(waiting) - len(running)), len(new))
                for each in finished:
                    each.result()

    def _read(self, model: FoundModel) -> None:
        for path, stamp in _stamps(model):
            try:
                facts = read_facts(path, self._texts) if model.folder is None else read_mlx_facts(path, model.names)
            except (GgufError, OSError):
                return  # away for the moment: it is not listed, and asked again next time
            # A folder that is no model of ours is remembered as such.
            self._facts.put(path, stamp, facts or FileFacts(GgufKind.OTHER, problem=""))


def users_library(added: Sequence[Path] = ()) -> Library:
    """The library of the user's folders and of the folders `added` to them."""
    places = users_folders()
    chosen = LibrarySettingsFile(places.config).read().added
    return Library(places.models, known_roots([*chosen, *added]), places.cache)


def _ignore(done: int, total: int) -> None:
    """Nobody listens."""


def _stamps(model: FoundModel) -> list[tuple[Path, Stamp]]:
    if model.folder is None:
        return [(file.path, (file.size, file.modified_ns)) for file in model.files]
    # The small files of a folder belong to what is read of it.
    latest = 0
    for name in sorted(model.names):
        if name.endswith((".json", ".jinja")):
            try:
                latest = max(latest, (model.folder / name).stat().st_mtime_ns)
            except OSError:
                continue
    sizes = sum(file.size for file in model.files)
    return [(model.folder, (sizes, max(file.modified_ns for file in model.files), latest, len(model.names)))]
