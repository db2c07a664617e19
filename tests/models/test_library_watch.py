from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forespeak.models.library_watch import LibraryWatcher
from forespeak.models.roots import Root, RootKind, added_root
from models.library_folders import library, write_model


@pytest.fixture
def told() -> threading.Event:
    return threading.Event()


@pytest.fixture
def watch(told: threading.Event) -> Iterator[Callable[..., LibraryWatcher]]:
    watchers: list[LibraryWatcher] = []

    def start(*roots: Path) -> LibraryWatcher:
        watchers.append(LibraryWatcher(lambda: [added_root(root) for root in roots], told.set, seconds=0.02))
        return watchers[-1]

    yield start
    for watcher in watchers:
        watcher.close()


def test_what_comes_and_goes_is_told(
    tmp_path: Path, told: threading.Event, watch: Callable[..., LibraryWatcher]
) -> None:
    watch(tmp_path)
    path = write_model(tmp_path / "model.gguf")
    assert told.wait(10)
    told.clear()
    # A folder is new to it too, and what comes into it later.
    write_model(tmp_path / "owner" / "repo" / "model.gguf")
    assert told.wait(10)
    told.clear()
    (tmp_path / "owner" / "repo" / "model.gguf").unlink()
    assert told.wait(10)
    told.clear()
    path.rename(path.with_name("renamed.gguf"))
    assert told.wait(10)


def test_a_new_snapshot_in_the_hugging_face_cache(tmp_path: Path, told: threading.Event) -> None:
    cache = Root(tmp_path, "Hugging Face cache", read_only=True, kind=RootKind.HUGGING_FACE)
    (tmp_path / "datasets--x" / "snapshots").mkdir(parents=True)
    watcher = LibraryWatcher(lambda: [cache], told.set, seconds=0.02)
    try:
        write_model(tmp_path / "models--o--r" / "snapshots" / "1" / "model.gguf")
        assert told.wait(10)
        told.clear()
        write_model(tmp_path / "models--o--r" / "snapshots" / "2" / "model.gguf")
        assert told.wait(10)
    finally:
        watcher.close()


def test_a_folder_that_is_not_there_yet(
    tmp_path: Path, told: threading.Event, watch: Callable[..., LibraryWatcher]
) -> None:
    watch(tmp_path / "disk")
    (tmp_path / "disk").mkdir()
    assert told.wait(10)


def test_nothing_is_told_of_nothing_or_after_the_end(
    tmp_path: Path, told: threading.Event, watch: Callable[..., LibraryWatcher]
) -> None:
    watcher = watch(tmp_path)
    assert not told.wait(0.2)
    watcher.close()
    write_model(tmp_path / "model.gguf")
    assert not told.wait(0.2)
    assert not any(thread.name == "library watch" for thread in threading.enumerate())


def test_the_library_watches_its_folders(tmp_path: Path, told: threading.Event) -> None:
    some = library(tmp_path)
    end = some.watch(told.set, seconds=0.02)
    try:
        some.set_added([tmp_path / "added"])
        assert told.wait(10)
        told.clear()
        write_model(tmp_path / "added" / "model.gguf")
        assert told.wait(10)
    finally:
        end()
