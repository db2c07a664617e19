"""By what a model on disk is known again: its place, its size, and when it was last changed."""

from __future__ import annotations

from pathlib import Path


def moved_path(path: Path, old: Path, new: Path) -> Path:
    """Where a file is once the folder `old` has become `new`: where it was, if it is not below."""
    return new / path.relative_to(old) if path.is_relative_to(old) else path


def size_and_time(path: Path) -> tuple[int, int]:
    """Bytes, and nanoseconds of the newest change. Of an MLX folder: of its files together. Raises OSError.

    A folder's own time tells of files that come and go, not of one that is written anew.
    """
    found = path.stat()
    if not path.is_dir():
        return found.st_size, found.st_mtime_ns
    # Notes that a system leaves in folders, such as .DS_Store, make no other model.
    files = [each.stat() for each in path.iterdir() if each.is_file() and not each.name.startswith(".")]
    return sum(each.st_size for each in files), max((each.st_mtime_ns for each in files), default=found.st_mtime_ns)
