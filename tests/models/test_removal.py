from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.library import Library
from forespeak.models.removal import TRASH
from forespeak.models.roots import Root, RootKind, added_root
from models.library_folders import library, only, write_mlx, write_model, write_set


@pytest.fixture
def some(tmp_path: Path) -> Library:
    return library(tmp_path)


def remaining(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def make(some: Library, kind: str) -> None:
    place = some.own / "owner" / "repo"
    if kind == "file":
        write_model(place / "model.gguf")
    elif kind == "set":
        write_set(place, "big", 3)
    else:
        write_mlx(place)


KINDS = pytest.mark.parametrize("kind", ["file", "set", "folder"])


@KINDS
def test_undone(some: Library, kind: str) -> None:
    make(some, kind)
    before, item = remaining(some.own), only(some.scan())
    removal = some.remove(item)
    assert (some.scan(), removal.open) == ((), True)
    removal.undo()
    assert remaining(some.own) == before
    assert only(some.scan()) == item
    # It is decided now: neither does anything any more.
    removal.undo()
    removal.finish()
    assert only(some.scan()) == item


@KINDS
def test_finished(some: Library, kind: str) -> None:
    make(some, kind)
    removal = some.remove(only(some.scan()))
    removal.finish()
    removal.finish()
    assert remaining(some.own) == []


def test_what_lies_beside_stays(some: Library) -> None:
    make(some, "set")
    write_model(some.own / "owner" / "repo" / "model.gguf")
    item = next(item for item in some.scan() if item.name == "big")
    some.remove(item).finish()
    assert remaining(some.own) == ["owner", "owner/repo", "owner/repo/model.gguf"]


def test_it_lies_beside_on_the_same_disk_and_is_hidden(some: Library) -> None:
    path = write_model(some.own / "owner" / "repo" / "model.gguf")
    some.remove(only(some.scan()))
    assert list((path.parent / TRASH).rglob("model.gguf"))


@KINDS
def test_what_it_gives_back(some: Library, tmp_path: Path, kind: str) -> None:
    make(some, kind)
    item = only(some.scan())
    whole = sum(path.stat().st_size for path in some.own.rglob("*") if path.is_file())
    removal = some.remove(item)
    assert removal.freed_bytes == whole
    removal.undo()
    os.link(item.files[0], tmp_path / "another name")
    assert some.remove(item).freed_bytes == whole - (tmp_path / "another name").stat().st_size


def test_another_file_in_its_place(some: Library) -> None:
    path = write_model(some.own / "model.gguf")
    removal = some.remove(only(some.scan()))
    write_model(path, ["x"])
    with pytest.raises(UserFacingError, match="cannot be brought back"):
        removal.undo()
    path.unlink()
    removal.undo()
    assert only(some.scan()).vocabulary_size == 2


@pytest.mark.parametrize("kind", [kind for kind in RootKind if kind is not RootKind.OWN])
def test_read_only_folders_say_who_can(tmp_path: Path, kind: RootKind) -> None:
    path = write_model(tmp_path / "other" / "model.gguf")
    some = library(tmp_path, added_root(tmp_path / "other"))
    item = replace(only(some.scan()), root=Root(tmp_path / "other", "Other", read_only=True, kind=kind))
    with pytest.raises(UserFacingError) as caught:
        some.remove(item)
    assert "only reads" in caught.value.why
    assert caught.value.remedy
    assert path.exists()
    assert remaining(tmp_path / "other") == ["model.gguf"]


def test_a_file_in_use_leaves_all_as_it_was(some: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = write_set(some.own, "big", 3)
    item = only(some.scan())
    real = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self == parts[2]:
            raise PermissionError(errno.EACCES, "Access is denied")
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(UserFacingError, match="could not be removed"):
            some.remove(item)
    assert only(some.scan()) == item
    assert remaining(some.own) == sorted(path.name for path in parts)


def test_a_model_that_went_by_itself(some: Library) -> None:
    path = write_model(some.own / "model.gguf")
    item = only(some.scan())
    path.unlink()
    with pytest.raises(UserFacingError):
        some.remove(item)
    assert remaining(some.own) == []


def crash(tmp_path: Path, code: str) -> None:
    """Run a process that ends as if it were killed."""
    program = f"""
        import os, sys
        from pathlib import Path
        from forespeak.models.library import Library
        some = Library(Path({str(tmp_path / "models")!r}), (), Path({str(tmp_path / "cache")!r}))
        item = some.scan()[0]
        {code}
        os._exit(9)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr


def test_after_a_crash_what_was_removed_is_deleted(some: Library, tmp_path: Path) -> None:
    make(some, "set")
    crash(tmp_path, "removal = some.remove(item)")
    assert remaining(some.own)
    assert not some.recover()
    assert remaining(some.own) == []


def test_after_a_crash_what_was_half_removed_is_back(some: Library, tmp_path: Path) -> None:
    make(some, "set")
    before = remaining(some.own)
    failing = "import forespeak.models.removal as r; r.sync_folder = lambda f: os._exit(9); real = Path.rename; "
    failing += "Path.rename = lambda p, t: os._exit(9) if '00002' in p.name else real(p, t); some.remove(item)"
    crash(tmp_path, failing)
    assert only(some.scan()).problem is not None
    some.recover()
    assert remaining(some.own) == before
    assert only(some.scan()).usable


def test_what_another_process_may_bring_back_is_left_alone(some: Library, tmp_path: Path) -> None:
    make(some, "file")
    removal = some.remove(only(some.scan()))
    library(tmp_path).recover()
    removal.undo()
    assert only(some.scan()).usable


def test_a_note_that_is_damaged_brings_the_files_back(some: Library) -> None:
    path = write_model(some.own / "model.gguf")
    place = some.own / TRASH / "1234"
    place.mkdir(parents=True)
    path.rename(place / "model.gguf")
    (place / "removed.json").write_text(json.dumps(["nonsense"]))
    some.recover()
    assert remaining(some.own) == ["model.gguf"]


def test_unfinished_copies_of_an_import_are_deleted(some: Library) -> None:
    write_model(some.own / ".forespeak-import-1234" / "model.gguf")
    (some.own / ".forespeak-import-1234.lock").touch()
    write_model(some.own / "there.gguf")
    some.recover()
    assert remaining(some.own) == ["there.gguf"]
