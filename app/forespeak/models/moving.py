"""Moves our own folder's contents elsewhere, also to another disk, so that an interruption loses nothing.

A journal in the old folder says what is on its way. Within one disk files are renamed, else copied; no copied file is
deleted before all have arrived. Until then an interrupted move is undone, afterwards it is finished.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.file_lock import FileLock
from forespeak.models.removal import TRASH
from forespeak.models.transfer import Progress, StoppedError, check_space, copy_file, explained
from forespeak.whole_file import sync_folder, write_durably

JOURNAL = ".forespeak-moving.json"
_LOCK, _COPYING, _LOCKS = ".forespeak-moving.lock", ".moving", ".lock"
# Left behind: what a system puts into folders by itself, and locks.
_LEFT = frozenset({JOURNAL, JOURNAL + ".new", _LOCK, ".DS_Store", "Thumbs.db", "desktop.ini"})


@dataclass(frozen=True, slots=True)
class _Journal:
    """`files` are relative to both folders. `arrived`: all of them are in the target."""

    target: Path
    files: tuple[Path, ...]
    arrived: bool


def move_models(own: Path, target: Path, progress: Progress, cancelled: Callable[[], bool]) -> bool:
    """As Library.move_to."""
    target = target.absolute()
    what = f"The models could not be moved to {target}."
    _check_places(own, target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        files = _files(own)
        if any(_is_held(own / file) for file in files if file.suffix == _LOCKS and TRASH not in file.parts):
            raise UserFacingError(
                what, "Something is being downloaded or imported there right now.", "Wait until it is done, or stop it."
            )
        files = [file for file in files if os.path.lexists(own / file)]
        sizes = {file: (own / file).lstat().st_size for file in files}
        clash = next((file for file in files if os.path.lexists(target / file)), None)
        if clash is not None:
            raise UserFacingError(what, f"There is a “{clash}” already.", "Choose an empty folder.")
        if own.is_dir() and own.stat().st_dev != target.stat().st_dev:
            check_space(target, sum(sizes.values()), "to move the models there")
        # Left over from a move out of there that is long done: it would take what arrives now for what was left behind.
        (target / JOURNAL).unlink(missing_ok=True)
        if not files:
            return not cancelled()
        with FileLock(own / _LOCK) as lock:
            if not lock.acquire():
                raise UserFacingError(what, "Another Forespeak is moving them right now.", "Wait until it is done.")
            return _move(own, target, sizes, progress, cancelled)
    except OSError as error:
        raise explained(what, target, error) from error


def finish_move(own: Path) -> Path:
    """Undo or finish a move that was interrupted: the folder in which the models are now. Never raises OSError."""
    if not (own / JOURNAL).is_file():
        return own
    with contextlib.suppress(OSError), FileLock(own / _LOCK) as lock:
        journal = _read_journal(own) if lock.acquire() else None
        if journal is None:
            return own
        if not journal.arrived:
            _undo(own, journal.target, journal.files)
        elif all(_has_arrived(own / file, journal.target / file) for file in _files(own) if file.suffix != _LOCKS):
            _delete_sources(own, journal.files)
            return journal.target
        elif journal.target.is_dir():
            # Left over from a move that is long done: what is here is nowhere else.
            (own / JOURNAL).unlink()
    return own


def _has_arrived(source: Path, place: Path) -> bool:
    """Whether a file that is still here is in its new place too, and not merely a link there that leads back here."""
    if not os.path.lexists(place) or _is_one_folder(source.parent, place.parent):
        return False
    return source.is_symlink() or not place.is_symlink()


def _is_one_folder(one: Path, other: Path) -> bool:
    """Also where one of them is a link to the other by now."""
    return os.path.realpath(one) == os.path.realpath(other)


def _check_places(own: Path, target: Path) -> None:
    here, there = own.resolve(), target.resolve()
    if here == there:
        raise UserFacingError("The models are in that folder already.", f"It is {own}.", "Choose another folder.")
    if here in there.parents or there in here.parents:
        raise UserFacingError(
            "The models cannot be moved there.",
            f"One of the two folders lies in the other: {own} and {target}.",
            "Choose a folder beside it.",
        )


def _move(own: Path, target: Path, sizes: dict[Path, int], progress: Progress, cancelled: Callable[[], bool]) -> bool:
    files, total, done = tuple(sizes), sum(sizes.values()), 0

    def moved(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    progress(0, total)
    _write_journal(own, _Journal(target, files, arrived=False))
    try:
        for file, size in sizes.items():
            if cancelled():
                raise StoppedError
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            _bring(own, target, file, size, moved, cancelled)
        for folder in {(target / file).parent for file in files}:
            sync_folder(folder)
        _write_journal(own, _Journal(target, files, arrived=True))
    except StoppedError:
        _undo(own, target, files)
        return False
    except BaseException:
        with contextlib.suppress(OSError):
            _undo(own, target, files)
        raise
    _delete_sources(own, files)
    return True


def _bring(
    own: Path, target: Path, file: Path, size: int, moved: Callable[[int], None], cancelled: Callable[[], bool]
) -> None:
    source, place = own / file, target / file
    try:
        source.rename(place)
    except OSError as error:
        if error.errno != errno.EXDEV and getattr(error, "winerror", None) != 17:
            raise
    else:
        moved(size)
        return
    if source.is_symlink():
        place.symlink_to(source.readlink())
        moved(size)
        return
    copy = place.with_name(place.name + _COPYING)
    copy.unlink(missing_ok=True)
    copy_file(source, copy, moved, cancelled)
    copy.replace(place)


def _undo(own: Path, target: Path, files: tuple[Path, ...]) -> None:
    """Everything back to where it was. Raises OSError, and then the journal stays for the next start."""
    for file in files:
        place = target / file
        place.with_name(place.name + _COPYING).unlink(missing_ok=True)
        if not os.path.lexists(place) or _is_one_folder(place.parent, (own / file).parent):
            continue
        if os.path.lexists(own / file):
            place.unlink()
        else:
            (own / file).parent.mkdir(parents=True, exist_ok=True)
            place.rename(own / file)
    _remove_empty(target, files)
    (own / JOURNAL).unlink(missing_ok=True)


def _delete_sources(own: Path, files: tuple[Path, ...]) -> None:
    """What cannot be deleted stays: the models are in their new place, whatever is left of the old."""
    for file in files:
        with contextlib.suppress(OSError):
            (own / file).unlink(missing_ok=True)
    locks = [file for file in _everything(own) if _is_of_trash(file)]
    for file in locks:
        with contextlib.suppress(OSError):
            _is_held(own / file)
    _remove_empty(own, (*files, *locks))
    with contextlib.suppress(OSError):
        (own / JOURNAL).unlink(missing_ok=True)


def _remove_empty(top: Path, files: tuple[Path, ...]) -> None:
    folders = {parent for file in files for parent in file.parents if parent != Path()}
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        with contextlib.suppress(OSError):
            (top / folder).rmdir()


def _files(own: Path) -> list[Path]:
    """What moves of the folder: hidden files too, so that removed models can be brought back afterwards.

    Their locks stay: Windows moves no file that is held. Who holds one takes another (`Removal.follow`).
    """
    return [file for file in _everything(own) if not _is_of_trash(file)]


def _everything(own: Path) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(own):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [Path(folder, name).relative_to(own) for name in (*names, *links) if name not in _LEFT]
    return sorted(found)


def _is_of_trash(file: Path) -> bool:
    return file.suffix == _LOCKS and file.parent.name == TRASH


def _is_held(path: Path) -> bool:
    """Whether a running process has a lock. One that nobody has is removed."""
    with FileLock(path) as lock:
        return not lock.acquire()


def _write_journal(own: Path, journal: _Journal) -> None:
    content = {
        "target": str(journal.target),
        "files": [file.as_posix() for file in journal.files],
        "arrived": journal.arrived,
    }
    write_durably(own / JOURNAL, json.dumps(content))


def _read_journal(own: Path) -> _Journal | None:
    try:
        content = json.loads((own / JOURNAL).read_bytes())
        files = tuple(Path(file) for file in content["files"])
        target = Path(content["target"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # The journal is a file like any other: it must not lead anywhere else.
    if not target.is_absolute() or any(file.is_absolute() or ".." in file.parts for file in files):
        return None
    return _Journal(target, files, content.get("arrived") is True)
