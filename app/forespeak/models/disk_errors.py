"""What a disk refuses, in words."""

from __future__ import annotations

import errno
import shutil
import sys
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.sizes import compared_words, size_words


def disk_full(target: Path, missing: int, free: int) -> UserFacingError:
    needed, there = compared_words(missing, free)
    return UserFacingError(
        f"There is not enough disk space for “{target.name}”.",
        f"{needed} are still to come, and {there} are free in {target.parent}.",
        "Make room on that disk, then go on with the download.",
    )


def disk_error(error: OSError, target: Path) -> UserFacingError:
    """What the disk refused, in words."""
    reason = error.strerror or str(error)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        try:
            free = shutil.disk_usage(target.parent).free
        except OSError:
            free = 0
        return UserFacingError(
            f"The disk is full: “{target.name}” does not fit.",
            f"{size_words(free)} are free in {target.parent}.",
            "Make room on that disk, then go on with the download.",
        )
    if error.errno == errno.EFBIG:
        return UserFacingError(
            f"“{target.name}” is too large for this disk.",
            "Its format (often FAT) takes no files of 4 GB.",
            "Choose a models folder on another disk.",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS} and sys.platform == "win32" and target.exists():
        return UserFacingError(
            f"“{target.name}” cannot be replaced.",
            f"It is in use: {reason}.",
            "Unload the model, then go on with the download.",
        )
    return UserFacingError(
        f"“{target.name}” cannot be written.",
        f"{error.filename or target.parent}: {reason}.",
        "Check that you may write there, or choose another models folder.",
    )
