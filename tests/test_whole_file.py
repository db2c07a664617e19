from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from forespeak.whole_file import sync_file, sync_folder, write_durably, write_whole


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for content in ("one\n", b"\xff\r\n", "trois à six"):
        write_whole(path, content)
        assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    write_durably(path, "four\n")
    assert path.read_bytes() == b"four\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "file.json"
    write_whole(path, "old")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_folder_is_made_for_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "gone" / "file.json", "new")
    with pytest.raises(FileNotFoundError):
        write_durably(tmp_path / "gone" / "file.json", "new")


def test_threads_do_not_mix_what_they_write(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([number]) * 100_000 for number in range(4)]
    together = threading.Barrier(len(contents))

    def write(content: bytes) -> None:
        together.wait()
        write_whole(path, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_what_an_interrupted_writer_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "file.new").write_text("half", "utf-8")
    write_durably(tmp_path / "file", "whole")
    assert [(each.name, each.read_text("utf-8")) for each in tmp_path.iterdir()] == [("file", "whole")]


@pytest.mark.parametrize(("number", "told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_disk_is_asked_but_need_not_know_how(monkeypatch: pytest.MonkeyPatch, number: int, told: bool) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", fail)
    if told:
        with pytest.raises(OSError, match="no"):
            sync_file(0)
    else:
        sync_file(0)


def test_a_folder_that_cannot_be_synced_is_no_trouble(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    sync_folder(tmp_path / "gone")
