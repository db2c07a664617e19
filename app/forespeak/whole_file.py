"""Small files that are replaced as a whole: there is the old one or the new one, never a half."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file at once. Several threads and processes may do so; the last wins. A text becomes UTF-8.

    Raises OSError, and then leaves what was there. After a power cut the file may be empty: see `write_durably`.
    """
    data = content.encode() if isinstance(content, str) else content
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write_durably(path: Path, text: str) -> None:
    """Replace a file at once, so that there is the old one or the new one even after a power cut. Raises OSError.

    For one writer at a time: what an interrupted one has left, NAME.new, is written over by the next.
    """
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        sync_file(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_file(descriptor: int) -> None:
    """Bring a file to the disk. Raises OSError, but not where the file system knows no such thing."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}:
            raise


def sync_folder(folder: Path) -> None:
    """Bring a folder's entries to the disk, where the system can."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
