"""Checking a model's files against what was stated when they came."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.file_hashes import FileHash, FileHashes
from forespeak.models.library import LibraryItem
from forespeak.models.roots import own_root
from forespeak.ui.check_files import FileChecker
from ui.fake_library import item

DATA = b"weights" * 400_000


@pytest.fixture
def checker(tmp_path: Path) -> FileChecker:
    return FileChecker(lambda: FileHashes(tmp_path))


@pytest.fixture
def model(tmp_path: Path) -> LibraryItem:
    path = tmp_path / "Some-1B-Q4_0.gguf"
    path.write_bytes(DATA)
    return replace(item(path.stem, own_root(tmp_path)), size_bytes=len(DATA))


def note(folder: Path, path: Path, **known: object) -> None:
    about = path.stat()
    plain = FileHash(about.st_size, about.st_mtime_ns, repo="maker/repo", revision="c" * 40, path=path.name)
    FileHashes(folder).note(path, replace(plain, **known))  # type: ignore[arg-type]


def run(checker: FileChecker, model: LibraryItem) -> tuple[str, list[tuple[int, int]]]:
    seen: list[tuple[int, int]] = []
    words = checker(model, lambda done, total: seen.append((done, total)), lambda: False)
    return words, seen


def test_a_file_as_it_was_published(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    note(tmp_path, model.path, sha256=hashlib.sha256(DATA).hexdigest())
    words, seen = run(checker, model)
    assert "maker/repo" in words
    assert seen[-1] == (len(DATA), len(DATA))


def test_a_small_file_is_checked_by_git(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    digest = hashlib.sha1(f"blob {len(DATA)}\0".encode() + DATA, usedforsecurity=False).hexdigest()
    note(tmp_path, model.path, git=digest)
    assert run(checker, model)[0]


def test_one_flipped_bit_is_found(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    note(tmp_path, model.path, sha256=hashlib.sha256(DATA).hexdigest())
    damaged = bytearray(DATA)
    damaged[1_234_567] ^= 1
    model.path.write_bytes(damaged)
    with pytest.raises(UserFacingError, match="is not what was downloaded"):
        run(checker, model)


def test_another_size_is_found_without_reading(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    note(tmp_path, model.path, sha256="0" * 64, size=5)
    with pytest.raises(UserFacingError, match="in place of 5"):
        run(checker, model)


def test_a_file_of_elsewhere_cannot_be_checked(checker: FileChecker, model: LibraryItem) -> None:
    with pytest.raises(UserFacingError, match="nothing to compare"):
        run(checker, model)


def test_a_part_that_nobody_downloaded_is_told(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    note(tmp_path, model.path, sha256=hashlib.sha256(DATA).hexdigest())
    other = tmp_path / "second.gguf"
    other.write_bytes(b"x")
    with pytest.raises(UserFacingError, match=r"second\.gguf"):
        run(checker, replace(model, files=(model.path, other)))


def test_a_check_can_be_stopped(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    note(tmp_path, model.path, sha256="0" * 64)
    assert checker(model, lambda done, total: None, lambda: True) == ""


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    note(tmp_path, model.path, sha256="0" * 64)
    model.path.unlink()
    with pytest.raises(UserFacingError, match="cannot be read"):
        run(checker, model)


def test_a_small_file_that_was_hashed_here_meanwhile(tmp_path: Path, checker: FileChecker, model: LibraryItem) -> None:
    digest = hashlib.sha1(f"blob {len(DATA)}\0".encode() + DATA, usedforsecurity=False).hexdigest()
    note(tmp_path, model.path, git=digest)
    FileHashes(tmp_path).sha256(model.path)
    assert run(checker, model)[0]
    note(tmp_path, model.path, git="0" * 40, sha256=hashlib.sha256(DATA).hexdigest())
    with pytest.raises(UserFacingError, match="is not what was downloaded"):
        run(checker, model)
