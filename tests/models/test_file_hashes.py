"""Hashes are computed once; equal models of other folders are found by them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from forespeak.models import file_hashes
from forespeak.models.file_hashes import FileHash, FileHashes, identical, is_unchanged
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup


@dataclass(frozen=True)
class Item:
    files: Sequence[Path]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read to be hashed."""
    read: list[Path] = []
    hash_of = file_hashes.hash_of

    def counting(path: Path, hasher: hashlib._Hash, *others: Any) -> str | None:
        read.append(path)
        return hash_of(path, hasher, *others)

    monkeypatch.setattr(file_hashes, "hash_of", counting)
    return read


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def group(*files: tuple[str, bytes, bool]) -> HubFileGroup:
    listed = tuple(HubFile(name, len(data), sha256(data) if large else None) for name, data, large in files)
    return HubFileGroup("org/repo", "main", None, ModelFormat.GGUF, listed)


def test_a_file_is_hashed_once_until_it_changes(tmp_path: Path, counted: list[Path]) -> None:
    path = file(tmp_path / "models" / "a.gguf", b"one")
    hashes = FileHashes(tmp_path / "models")
    assert hashes.sha256(path) == hashes.sha256(path) == sha256(b"one")
    # Also for those who come later, and for other processes.
    assert FileHashes(tmp_path / "models").sha256(path) == sha256(b"one")
    assert len(counted) == 1
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert hashes.sha256(path) == sha256(b"two")
    assert len(counted) == 2


def test_hashes_move_with_the_models_folder(tmp_path: Path, counted: list[Path]) -> None:
    path = file(tmp_path / "models" / "org" / "a.gguf", b"one")
    outside = file(tmp_path / "other" / "b.gguf", b"two")
    hashes = FileHashes(tmp_path / "models")
    hashes.sha256(path)
    hashes.sha256(outside)
    (tmp_path / "models").rename(tmp_path / "moved")
    moved = FileHashes(tmp_path / "moved")
    assert moved.sha256(tmp_path / "moved" / "org" / "a.gguf") == sha256(b"one")
    assert moved.sha256(outside) == sha256(b"two")
    assert len(counted) == 2


def test_a_file_without_the_folder(tmp_path: Path) -> None:
    hashes = FileHashes(tmp_path / "none")
    assert hashes.of(tmp_path / "x") is None
    assert hashes.downloaded() == []
    with pytest.raises(FileNotFoundError):
        hashes.sha256(tmp_path / "x")


def test_a_torn_or_damaged_line_is_passed_over(tmp_path: Path) -> None:
    hashes = FileHashes(tmp_path)
    known = FileHash(3, 4, "a" * 64, None, "org/repo", "main", "a.gguf")
    hashes.note(tmp_path / "a.gguf", known)
    store = tmp_path / ".downloads" / "hashes.jsonl"
    whole = store.read_bytes()
    store.write_bytes(b"nonsense\n[]\n{}\n\xff\n" + whole + whole[:20])
    assert FileHashes(tmp_path).downloaded() == [(tmp_path / "a.gguf", known)]


def test_a_stop_leaves_nothing(tmp_path: Path) -> None:
    path = file(tmp_path / "a.gguf", b"one")
    hashes = FileHashes(tmp_path)
    assert hashes.sha256(path, lambda: True) is None
    assert hashes.of(path) is None


def test_many_write_at_once(tmp_path: Path) -> None:
    def work(number: int) -> None:
        hashes = FileHashes(tmp_path)
        for each in range(50):
            hashes.note(tmp_path / f"{number}-{each}", FileHash(1, 1, "x", None, "org/repo"))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(FileHashes(tmp_path).downloaded()) == 200


def test_an_identical_model(tmp_path: Path, counted: list[Path]) -> None:
    wanted = group(("a.gguf", b"12345", True))
    other_size = Item([file(tmp_path / "x" / "a.gguf", b"123")])
    same_size = Item([file(tmp_path / "y" / "a.gguf", b"54321")])
    same = Item([file(tmp_path / "z" / "under another name", b"12345")])
    hashes = FileHashes(tmp_path)
    assert identical(wanted, [other_size, same_size], hashes) is None
    assert counted == [same_size.files[0]]
    assert identical(wanted, [other_size, same_size, same], hashes) is same
    assert len(counted) == 2


def test_all_parts_must_be_there(tmp_path: Path) -> None:
    wanted = group(("a-00001-of-00002.gguf", b"123", True), ("a-00002-of-00002.gguf", b"456", True))
    half = Item([file(tmp_path / "x" / "1", b"123")])
    twice = Item([file(tmp_path / "y" / "1", b"123"), file(tmp_path / "y" / "2", b"123")])
    whole = Item([file(tmp_path / "z" / "2", b"456"), file(tmp_path / "z" / "1", b"123")])
    hashes = FileHashes(tmp_path)
    assert identical(wanted, [half, twice], hashes) is None
    assert identical(wanted, [half, twice, whole], hashes) is whole


def test_small_files_are_not_looked_at(tmp_path: Path) -> None:
    wanted = group(("config.json", b"{}", False), ("model.safetensors", b"12345", True))
    folder = Item([file(tmp_path / "x" / "config.json", b"[1]"), file(tmp_path / "x" / "m", b"12345")])
    hashes = FileHashes(tmp_path)
    assert identical(wanted, [folder], hashes) is folder
    assert identical(group(("config.json", b"[1]", False)), [folder], hashes) is None


def test_a_file_that_vanishes_is_no_match(tmp_path: Path) -> None:
    assert identical(group(("a", b"1", True)), [Item([tmp_path / "none"])], FileHashes(tmp_path)) is None


def test_whether_a_file_is_unchanged(tmp_path: Path) -> None:
    path = file(tmp_path / "a", b"12345")
    git = hashlib.sha1(b"blob 5\0" + b"12345", usedforsecurity=False).hexdigest()
    assert is_unchanged(path, FileHash(5, 0, sha256(b"12345")))
    assert is_unchanged(path, FileHash(5, 0, None, git))
    assert is_unchanged(path, FileHash(5, 0)) is True
    assert is_unchanged(path, FileHash(4, 0, sha256(b"12345"))) is False
    assert is_unchanged(path, FileHash(5, 0, sha256(b"x"))) is False
    assert is_unchanged(path, FileHash(5, 0, sha256(b"12345")), lambda: True) is None
    told: list[int] = []
    assert is_unchanged(path, FileHash(5, 0, sha256(b"12345")), read=told.append)
    assert told == [5]


def stated(path: Path, *, by_git: bool) -> FileHash:
    """What is noted of a file that has just been downloaded."""
    data, there = path.read_bytes(), path.stat()
    git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    known = FileHash(there.st_size, there.st_mtime_ns, repo="org/repo", revision="c" * 40, path=path.name)
    return replace(known, git=git) if by_git else replace(known, sha256=sha256(data))


@pytest.mark.parametrize("by_git", [False, True])
def test_hashing_forgets_nothing_of_a_download(tmp_path: Path, counted: list[Path], by_git: bool) -> None:
    path = file(tmp_path / "config.json", b'{"one": 1}')
    hashes, known = FileHashes(tmp_path), stated(path, by_git=by_git)
    hashes.note(path, known)
    digest = sha256(b'{"one": 1}')
    assert hashes.sha256(path) == digest
    assert hashes.of(path) == replace(known, sha256=digest)
    # Touched, and otherwise what it was.
    os.utime(path, ns=(1, 1))
    assert hashes.sha256(path) == digest
    assert hashes.of(path) == replace(known, sha256=digest, modified=1)
    read = len(counted)
    assert hashes.sha256(path) == digest
    assert len(counted) == read
    # Written to, at the same length and at another.
    for time, data in ((2, b'{"two": 2}'), (3, b"{}")):
        path.write_bytes(data)
        os.utime(path, ns=(time, time))
        assert hashes.sha256(path) == sha256(data)
        assert hashes.of(path) == replace(known, sha256=digest, modified=1)
        assert is_unchanged(path, replace(known, sha256=digest)) is False


def test_a_download_of_which_only_the_size_was_stated(tmp_path: Path) -> None:
    path = file(tmp_path / "a", b"12345")
    hashes = FileHashes(tmp_path)
    known = replace(stated(path, by_git=True), git=None)
    hashes.note(path, known)
    assert hashes.sha256(path) == sha256(b"12345")
    assert hashes.of(path) == replace(known, sha256=sha256(b"12345"))
    hashes.note(path, known)
    # What it was cannot be told any more.
    os.utime(path, ns=(1, 1))
    assert hashes.sha256(path) == sha256(b"12345")
    assert hashes.of(path) == known


def test_damage_that_was_hashed_here_is_still_damage(tmp_path: Path) -> None:
    """On a bad disk the contents change, and size and time do not."""
    path = file(tmp_path / "config.json", b"12345")
    hashes, known = FileHashes(tmp_path), stated(path, by_git=True)
    hashes.note(path, known)
    path.write_bytes(b"12344")
    os.utime(path, ns=(known.modified, known.modified))
    hashes.sha256(path)
    now = hashes.of(path)
    assert now is not None
    assert is_unchanged(path, now) is False
