"""Checks a model's files against what its publisher stated when they were downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from forespeak.errors import UserFacingError
from forespeak.models.file_hashes import FileHash, FileHashes, is_unchanged
from forespeak.models.library import LibraryItem


def _tr(words: str) -> str:
    return QCoreApplication.translate("CheckFiles", words)


class FileChecker:
    """Reads all of the files: not for the UI thread. `hashes` are those of the models folder."""

    def __init__(self, hashes: Callable[[], FileHashes]) -> None:
        self._hashes = hashes

    def __call__(self, item: LibraryItem, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> str:
        """What was found to be right, in a sentence; empty if cancelled. Raises UserFacingError."""
        hashes = self._hashes()
        known = {path: found for path in item.files if (found := hashes.of(path)) is not None and found.is_downloaded}
        if not known:
            raise UserFacingError(
                _tr("There is nothing to compare “{name}” with.").format(name=item.name),
                _tr("Forespeak did not download it, so its publisher's checksums are not known here."),
                _tr("Its header was read and is sound. Under Discover, the same file can be compared with the Hub's."),
            )
        total, done = item.size_bytes, 0
        for path in item.files:
            expected = known.get(path)
            if expected is None:
                raise _other(path, _tr("It was not there when the others were downloaded."))

            def read(count: int) -> None:
                nonlocal done
                done += count
                progress(done, total)

            _check(path, expected, read, cancelled)
            if cancelled():
                return ""
        repo = next(iter(known.values())).repo
        return _tr("“{name}” is what {repo} published, to the last byte.").format(name=item.name, repo=repo)


def _check(path: Path, expected: FileHash, read: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
    try:
        size = path.stat().st_size
        right = size == expected.size and is_unchanged(path, expected, cancelled, read)
    except OSError as error:
        raise UserFacingError(
            _tr("“{name}” cannot be read.").format(name=path.name),
            f"{error.strerror or error}.",
            _tr("Check the disk, and download the file again if it is damaged."),
        ) from error
    if size != expected.size:
        why = _tr("It has {size} bytes in place of {expected}.")
        raise _other(path, why.format(size=f"{size:,}", expected=f"{expected.size:,}"))
    if right is False:
        raise _other(path, _tr("Its contents have changed since: the disk is damaged, or somebody has written to it."))


def _other(path: Path, why: str) -> UserFacingError:
    return UserFacingError(
        _tr("“{name}” is not what was downloaded.").format(name=path.name),
        why,
        _tr("Remove the model and download it again."),
    )
