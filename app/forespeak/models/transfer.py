"""Copies, links and moves large files: with progress, a way to stop, and errors in words."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.sizes import size_words

Progress = Callable[[int, int], None]
"""(done, of how many): models while the library is read, bytes while files are copied or moved."""

RESERVE = 64 << 20
"""Bytes of a disk that stay free."""

_PIECE = 4 << 20


class StoppedError(Exception):
    """Somebody asked for it; what was begun is to be taken back."""


def copy_file(source: Path, target: Path, copied: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
    """Copy a file's content and time; it is on the disk afterwards. `copied` hears of every piece's size.

    Raises OSError, and StoppedError when cancelled; then nothing is left of the copy.
    """
    try:
        with source.open("rb", buffering=0) as reader, target.open("xb", buffering=0) as writer:
            while piece := reader.read(_PIECE):
                if cancelled():
                    raise StoppedError
                left = memoryview(piece)
                while left:
                    left = left[writer.write(left) or 0 :]
                copied(len(piece))
            os.fsync(writer.fileno())
        about = source.stat()
        os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))
    except FileExistsError:
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            target.unlink(missing_ok=True)
        raise


def same_content(one: Path, other: Path, read: Callable[[int], None], cancelled: Callable[[], bool]) -> bool:
    """Whether two files hold the same bytes. `read` hears of every piece's size. Raises OSError, StoppedError."""
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        while piece := first.read(_PIECE):
            if cancelled():
                raise StoppedError
            if second.read(_PIECE) != piece:
                return False
            read(len(piece))
    return True


def link_file(source: Path, target: Path) -> None:
    """Another name for a file: a hard link, else a symbolic one. Raises OSError if the system allows neither."""
    whole = source.resolve(strict=True)
    try:
        os.link(whole, target)
    except OSError:
        target.symlink_to(whole)


def remove_empty_folders(folder: Path, top: Path) -> None:
    """Remove a folder below `top` if it is empty, then those above it."""
    while folder != top and top in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def free_bytes(folder: Path) -> int:
    """What the disk of a folder that may not exist yet has left. Raises OSError."""
    for place in (folder, *folder.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
    return 0


def check_space(folder: Path, needed: int, purpose: str) -> None:
    """Raise UserFacingError if a folder's disk has no room for so many bytes. `purpose`: `to import “x”`."""
    try:
        free = free_bytes(folder)
    except OSError as error:
        raise explained(f"The disk of {folder} cannot be used {purpose}.", folder, error) from error
    if free < needed + RESERVE:
        raise UserFacingError(
            f"There is not enough disk space {purpose}.",
            f"It needs {size_words(needed)} and {size_words(RESERVE)} to spare, and {size_words(free)} are free in "
            f"{folder}.",
            "Make room on that disk, or choose another folder.",
        )


def explained(what: str, path: Path, error: OSError) -> UserFacingError:
    """An error of the disk in words."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return UserFacingError(what, f"The disk of {path} is full.", "Make room on it, and try again.")
    if error.errno == errno.EFBIG:
        return UserFacingError(
            what,
            f"The disk of {path} takes no file so large: with the format FAT, 4 GB are the most.",
            "Use another disk.",
        )
    if getattr(error, "winerror", None) == 32 or error.errno in {errno.EBUSY, errno.ETXTBSY}:
        return UserFacingError(what, f"{path} is in use.", "Unload the model, close what else uses it, and try again.")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return UserFacingError(
            what, f"The system does not allow it: {path}: {error.strerror}.", "Check that you may write there."
        )
    return UserFacingError(
        what, f"The system says: {path}: {error.strerror or error}.", "Check that the disk is there, and try again."
    )
