"""Takes models out of our own folder so that they can be brought back until the app closes.

They go into a hidden folder beside them, on the same disk: `.forespeak-trash/TOKEN/`, with a note of what belongs there
that says at the end whether all of it has arrived, and a lock that is held as long as it may be brought back.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.file_lock import FileLock
from forespeak.models.formats import ModelFormat
from forespeak.models.importing import STAGING
from forespeak.models.library_item import LibraryItem
from forespeak.models.roots import RootKind
from forespeak.models.transfer import explained, remove_empty_folders
from forespeak.whole_file import sync_folder, write_whole

TRASH = ".forespeak-trash"
_NOTE, _LOCK = "removed.json", ".lock"

_REMEDIES = {
    RootKind.STARTER: "It goes when Forespeak is installed without its “starter” extra.",
    RootKind.HUGGING_FACE: "Remove it with Hugging Face's own tool: “hf cache rm” in a terminal.",
    RootKind.LM_STUDIO: "Remove it in LM Studio, under My Models.",
    RootKind.LLAMA_CPP: "Remove it in the file manager, if llama.cpp does not need it any more.",
}


class Removal:
    """A model that was taken out of the library. Either `undo` or `finish` ends it; calling one again does nothing."""

    def __init__(
        self, own: Callable[[], Path], item: LibraryItem, place: Path, names: list[str], lock: FileLock
    ) -> None:
        self._own = own
        self._locked_below = own()
        # Our own folder may be moved meanwhile, and everything in it.
        self._place = place.relative_to(self._locked_below)
        self._names = names
        self._lock: FileLock | None = lock
        self.item = item
        self.freed_bytes = sum(_freed(place / name) for name in names)
        """What `finish` gives back to the disk: nothing of a link, or of a file that has other names too."""

    @property
    def open(self) -> bool:
        """Whether it can still be undone."""
        return self._lock is not None

    def undo(self) -> None:
        """Bring the model back. Raises UserFacingError, and then it can be tried again."""
        if self._lock is None:
            return
        place = self._own() / self._place
        home = place.parent.parent
        taken = next((name for name in self._names if os.path.lexists(home / name)), None)
        if taken is not None:
            raise UserFacingError(
                f"“{self.item.name}” cannot be brought back.",
                f"There is another “{taken}” in {home} now.",
                "Rename or remove that one first.",
            )
        try:
            _restore(place, self._names)
        except OSError as error:
            raise explained(f"“{self.item.name}” could not be brought back.", home, error) from error
        self._end()
        _discard(place, self._own())

    def finish(self) -> None:
        """Delete it for good. What cannot be deleted now is deleted at the next start."""
        if self._lock is not None:
            self._end()
            _discard(self._own() / self._place, self._own())

    def follow(self) -> None:
        """Hold a lock beside the model again, once our own folder has been moved with everything in it but locks."""
        own, old = self._own(), self._locked_below
        if self._lock is None or own == old:
            return
        place = own / self._place
        lock = FileLock(place.with_name(place.name + _LOCK))
        # Without one it can be brought back all the same, until another process clears it away.
        with contextlib.suppress(OSError):
            lock.acquire()
        self._lock.release()
        self._lock, self._locked_below = lock, own
        remove_empty_folders((old / self._place).parent, old)

    def _end(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def remove(own: Callable[[], Path], item: LibraryItem) -> Removal:
    """As Library.remove."""
    if item.root.read_only or own() not in item.path.parents:
        raise UserFacingError(
            f"“{item.name}” cannot be removed from here.",
            f"It lies in a folder that Forespeak only reads ({item.root.label}).",
            _REMEDIES.get(item.root.kind, f"Remove it in the file manager: {item.path}."),
        )
    paths = [item.path] if item.format is ModelFormat.MLX else list(item.files)
    names = [path.name for path in paths]
    home = item.path.parent
    place = home / TRASH / uuid.uuid4().hex[:8]
    what = f"“{item.name}” could not be removed."
    try:
        place.mkdir(parents=True)
        lock = FileLock(place.with_name(place.name + _LOCK))
        lock.acquire()
    except OSError as error:
        raise explained(what, home, error) from error
    try:
        _note(place, names, complete=False)
        for name in names:
            (home / name).rename(place / name)
        _note(place, names, complete=True)
    except OSError as error:
        with contextlib.suppress(OSError):
            _restore(place, names)
            shutil.rmtree(place)
        lock.release()
        remove_empty_folders(place.parent, home)
        raise explained(what, home, error) from error
    sync_folder(home)
    return Removal(own, item, place, names, lock)


def _freed(path: Path) -> int:
    """What a file or a folder takes that nothing else needs."""
    try:
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode):
            return sum(map(_freed, path.iterdir()))
    except OSError:
        return 0
    return about.st_size if stat.S_ISREG(about.st_mode) and about.st_nlink <= 1 else 0


def clear_leftovers(own: Path) -> None:
    """Delete what was removed before a crash and copies that were not finished; bring back what was half removed.

    What belongs to a running process is left alone.
    """
    for folder in _hidden_folders(own):
        if folder.name == TRASH:
            for place in _folders_in(folder):
                _clear(place, own)
            for lock in folder.glob(f"*{_LOCK}"):
                # Of a model that has gone: one that nobody holds goes too.
                with _if_nobody_has(lock.with_suffix("")):
                    pass
            remove_empty_folders(folder, own)
        elif folder.name.startswith(STAGING):
            with _if_nobody_has(folder) as free:
                if free:
                    shutil.rmtree(folder, ignore_errors=True)


def _clear(place: Path, own: Path) -> None:
    with _if_nobody_has(place) as free:
        if not free:
            return
        names, complete = _read_note(place)
        if not complete:
            try:
                _restore(place, names)
            except OSError:
                return
        shutil.rmtree(place, ignore_errors=True)
    _discard(place, own)


@contextlib.contextmanager
def _if_nobody_has(place: Path) -> Iterator[bool]:
    lock = FileLock(place.with_name(place.name + _LOCK))
    try:
        free = lock.acquire()
    except OSError:
        free = False
    try:
        yield free
    finally:
        if free:
            lock.release()


def _hidden_folders(own: Path) -> Iterator[Path]:
    for folder, names, _ in os.walk(own):
        for name in list(names):
            if name.startswith("."):
                names.remove(name)
                yield Path(folder, name)


def _folders_in(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


def _note(place: Path, names: list[str], *, complete: bool) -> None:
    write_whole(place / _NOTE, json.dumps({"names": names, "complete": complete}))


def _read_note(place: Path) -> tuple[list[str], bool]:
    """The names, and whether all had arrived. Without a note, whatever lies there is to go back."""
    there = [path.name for path in place.iterdir() if not path.name.startswith(_NOTE)]
    try:
        note = json.loads((place / _NOTE).read_bytes())
        return there, note["complete"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return there, False


def _restore(place: Path, names: list[str]) -> None:
    """Put back what is there, where its old place is free. Raises OSError."""
    home = place.parent.parent
    for name in names:
        if os.path.lexists(place / name) and not os.path.lexists(home / name):
            (place / name).rename(home / name)
    sync_folder(home)


def _discard(place: Path, own: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    remove_empty_folders(place.parent, own)
