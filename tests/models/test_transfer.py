from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.transfer import (
    RESERVE,
    StoppedError,
    check_space,
    copy_file,
    explained,
    free_bytes,
    link_file,
    remove_empty_folders,
)


def test_a_copy_has_content_and_time(tmp_path: Path) -> None:
    source = tmp_path / "a"
    told: list[int] = []
    source.write_bytes(os.urandom(9_000_000))
    os.utime(source, ns=(10**18, 10**18))
    copy_file(source, tmp_path / "b", told.append, lambda: False)
    assert (tmp_path / "b").read_bytes() == source.read_bytes()
    assert (tmp_path / "b").stat().st_mtime_ns == 10**18
    assert (sum(told), len(told)) == (9_000_000, 3)


def test_a_copy_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(9_000_000))
    told: list[int] = []
    with pytest.raises(StoppedError):
        copy_file(tmp_path / "a", tmp_path / "b", told.append, lambda: len(told) == 1)
    assert not (tmp_path / "b").exists()


def test_a_copy_never_writes_over_anything(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        copy_file(tmp_path / "a", tmp_path / "b", lambda _: None, lambda: False)
    assert (tmp_path / "b").read_bytes() == b"b"


def test_a_link_is_to_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    link_file(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").samefile(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        link_file(tmp_path / "gone", tmp_path / "c")


def test_empty_folders_go_up_to_the_top(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    remove_empty_folders(tmp_path / "a" / "b" / "c", tmp_path)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
    (tmp_path / "a" / "file").unlink()
    remove_empty_folders(tmp_path, tmp_path)
    assert tmp_path.exists()


def test_room_on_a_disk(tmp_path: Path) -> None:
    free = free_bytes(tmp_path / "not" / "yet")
    assert free > 0
    check_space(tmp_path, 0, "for this")
    with pytest.raises(UserFacingError) as caught:
        check_space(tmp_path, 1 << 60, "for this")
    assert "not enough disk space for this" in caught.value.what
    assert RESERVE > 0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "full"),
        (errno.EBUSY, "in use"),
        (errno.EACCES, "does not allow"),
        (errno.EROFS, "does not allow"),
        (errno.EIO, "The system says"),
    ],
)
def test_errors_of_the_disk_in_words(number: int, words: str) -> None:
    error = explained("It failed.", Path("/x"), OSError(number, os.strerror(number)))
    assert words in error.why
    assert error.remedy
