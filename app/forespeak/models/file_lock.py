"""A lock between processes: one file, held by one of them, and free again however its holder ends."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# On Windows a locked byte cannot be read by others: one far behind the holder's number.
_LOCKED_BYTE = 1 << 30


class FileLock:
    """Not re-entrant. The file is made when the lock is taken and removed when it is given back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self) -> bool:
        """Take the lock if it is free; False if another holder has it. Raises OSError, but not for that."""
        assert self._descriptor is None
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            try:
                if not _try_to_lock(descriptor):
                    os.close(descriptor)
                    return False
                if not _is_at(descriptor, self._path):
                    # The holder before us removed the file between our opening and locking it.
                    os.close(descriptor)
                    continue
                os.ftruncate(descriptor, 0)
                os.write(descriptor, b"%d\n" % os.getpid())
            except BaseException:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
                raise
            self._descriptor = descriptor
            return True

    def holder(self) -> int | None:
        """The process that has the lock, as it wrote itself down; None if that cannot be read."""
        try:
            return int(self._path.read_bytes()[:20])
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if sys.platform != "win32":
            # While it is still locked, so that nobody else's file is removed.
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(descriptor)
        else:
            os.close(descriptor)
            # Whoever has it open by now keeps it: Windows does not remove open files.
            with contextlib.suppress(OSError):
                self._path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def _try_to_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
