from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from forespeak.models import importing, transfer
from forespeak.models.library import ImportResult, ImportWay, Library
from forespeak.models.roots import Root, RootKind, added_root
from models.library_folders import library, only, write_mlx, write_model, write_set

WAYS = list(ImportWay)
SHARED = pytest.mark.parametrize("way", WAYS, ids=[way.value for way in WAYS])


@pytest.fixture
def some(tmp_path: Path) -> Library:
    return library(tmp_path)


def hidden(some: Library) -> list[str]:
    return [path.name for path in some.own.rglob(".*")] if some.own.exists() else []


def refused(result: ImportResult) -> str:
    assert len(result.refused) == 1
    error = result.refused[0]
    assert error.what
    assert error.remedy
    return f"{error.what} {error.why} {error.remedy}"


@SHARED
def test_a_file(some: Library, tmp_path: Path, way: ImportWay) -> None:
    source = write_model(tmp_path / "from" / "model.gguf")
    content = source.read_bytes()
    told: list[tuple[int, int]] = []
    result = some.import_models([source], way, lambda done, total: told.append((done, total)))
    assert result == ImportResult((some.own / "model.gguf",))
    assert result.paths[0].read_bytes() == content
    assert source.exists() is (way is not ImportWay.MOVE)
    assert only(some.scan()).usable
    assert (told[0], told[-1]) == ((0, len(content)), (len(content), len(content)))
    assert hidden(some) == []


@SHARED
def test_progress_goes_on_from_model_to_model(some: Library, tmp_path: Path, way: ImportWay) -> None:
    folder, file = write_mlx(tmp_path / "from" / "mlx"), write_model(tmp_path / "from" / "model.gguf")
    total = sum(each.stat().st_size for each in [*folder.iterdir(), file])
    told: list[tuple[int, int]] = []
    result = some.import_models([folder, file], way, lambda done, total: told.append((done, total)))
    assert len(result.paths) == 2
    assert told == sorted(told)
    assert told[-1] == (total, total)


@SHARED
def test_a_set_by_any_of_its_parts(some: Library, tmp_path: Path, way: ImportWay) -> None:
    parts = write_set(tmp_path / "from", "big", 3)
    result = some.import_models([parts[1], parts[2]], way)
    assert result == ImportResult((some.own / "big" / parts[0].name,))
    item = only(some.scan())
    assert (item.usable, len(item.files)) == (True, 3)
    assert parts[0].exists() is (way is not ImportWay.MOVE)
    assert hidden(some) == []


@SHARED
def test_an_mlx_folder(some: Library, tmp_path: Path, way: ImportWay) -> None:
    folder = write_mlx(tmp_path / "from" / "Some-4bit")
    for source in (folder, folder / "model.safetensors"):
        if source.exists():
            result = some.import_models([source], way)
            assert not result.refused
            assert result.paths == (some.own / "Some-4bit",)
    assert [item.name for item in some.scan()] == ["Some-4bit"]
    assert folder.exists() is (way is not ImportWay.MOVE)


def test_a_folder_is_searched(some: Library, tmp_path: Path) -> None:
    write_model(tmp_path / "from" / "a" / "one.gguf")
    write_model(tmp_path / "from" / "two.gguf")
    assert len(some.import_models([tmp_path / "from"]).paths) == 2
    (tmp_path / "empty").mkdir()
    assert "no model in “empty”" in refused(some.import_models([tmp_path / "empty"]))


def test_a_name_that_is_taken(some: Library, tmp_path: Path) -> None:
    write_model(some.own / "model.gguf")
    (some.own / "big").mkdir()
    write_model(tmp_path / "from" / "model.gguf", ["x"])
    write_set(tmp_path / "from", "big", 2)
    result = some.import_models([tmp_path / "from"])
    assert {path.relative_to(some.own).as_posix() for path in result.paths} == {
        "model (2).gguf",
        "big (2)/big-00001-of-00002.gguf",
    }


def test_what_is_there_already_is_left_alone(some: Library) -> None:
    path = write_model(some.own / "below" / "model.gguf")
    assert some.import_models([path], ImportWay.MOVE) == ImportResult((path,), there=(path,))


@SHARED
def test_the_same_to_the_last_byte_is_not_taken_twice(some: Library, tmp_path: Path, way: ImportWay) -> None:
    same = write_model(tmp_path / "from" / "model.gguf")
    there = write_model(some.own / "owner" / "repo" / "other name.gguf")
    there.write_bytes(same.read_bytes())
    parts = write_set(some.own / "set", "big", 2)
    write_set(tmp_path / "from" / "set", "big", 2)
    result = some.import_models([tmp_path / "from"], way)
    assert set(result.there) == set(result.paths) == {there, parts[0]}
    assert same.exists(), "nothing that is there twice is deleted unasked"
    changed = bytearray(same.read_bytes())
    changed[-1] ^= 1
    same.write_bytes(changed)
    told: list[tuple[int, int]] = []
    result = some.import_models([same], way, lambda done, total: told.append((done, total)))
    assert result == ImportResult((some.own / "model.gguf",))
    assert told[-1] == (len(changed), len(changed))
    assert hidden(some) == []


def test_a_model_that_is_linked_here_is_not_moved_from_under_its_link(some: Library, tmp_path: Path) -> None:
    source = write_model(tmp_path / "from" / "model.gguf")
    some.own.mkdir(parents=True)
    (some.own / "link.gguf").symlink_to(source)
    result = some.import_models([source], ImportWay.MOVE)
    assert result == ImportResult((some.own / "link.gguf",), there=(some.own / "link.gguf",))
    assert only(some.scan()).usable


def test_a_model_under_another_ending(some: Library, tmp_path: Path) -> None:
    source = write_model(tmp_path / "from" / "sha256-1234")
    assert some.import_models([source]).paths == (some.own / "sha256-1234.gguf",)
    assert only(some.scan()).usable


def test_what_cannot_be_imported_does_not_keep_the_others_out(some: Library, tmp_path: Path) -> None:
    page = tmp_path / "page.gguf"
    page.write_bytes(b"<!doctype html>")
    set_ = write_set(tmp_path / "from", "big", 3, leave_out=[2])
    coming = write_model(tmp_path / "coming.gguf")
    (tmp_path / "coming.gguf.part").touch()
    good = write_model(tmp_path / "good.gguf")
    result = some.import_models([page, tmp_path / "gone.gguf", set_[0], coming, good])
    assert result.paths == (some.own / "good.gguf",)
    words = [str(error) for error in result.refused]
    assert len(words) == 4
    for part in ("web page", "no file", "Part 2 of 3 is missing", "not finished"):
        assert any(part in each for each in words), part
    assert len(some.scan()) == 1


@SHARED
def test_cancelled(some: Library, tmp_path: Path, way: ImportWay) -> None:
    one = write_model(tmp_path / "one.gguf")
    two = write_model(tmp_path / "two.gguf")
    asked = False

    def told(done: int, total: int) -> None:
        nonlocal asked
        asked = done >= total / 2

    result = some.import_models([one, two], way, told, lambda: asked)
    assert (result.cancelled, result.paths) == (True, (some.own / "one.gguf",))
    assert two.exists()
    assert len(some.scan()) == 1
    assert hidden(some) == []


def test_cancelled_within_a_file(some: Library, tmp_path: Path) -> None:
    source = write_model(tmp_path / "one.gguf")
    calls = 0

    def asked() -> bool:
        nonlocal calls
        calls += 1
        return calls > 1

    assert some.import_models([source], cancelled=asked).cancelled
    assert source.exists()
    assert list(some.own.iterdir()) == []


def test_a_disk_without_room(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_model(tmp_path / "one.gguf")
    monkeypatch.setattr(transfer, "free_bytes", lambda _: transfer.RESERVE + 10)
    assert "not enough disk space" in refused(some.import_models([source]))
    assert not some.own.exists()
    # A link takes none.
    assert some.import_models([source], ImportWay.LINK).paths


def test_a_disk_that_is_full_in_the_middle(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = write_set(tmp_path / "from", "big", 2)
    real = transfer.copy_file

    def fail(source: Path, target: Path, copied: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
        if source == parts[1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target, copied, cancelled)

    monkeypatch.setattr(importing, "copy_file", fail)
    assert "is full" in refused(some.import_models(parts))
    assert some.scan() == ()
    assert list(some.own.iterdir()) == []


def test_moving_to_another_disk_copies_first(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_model(tmp_path / "from" / "one.gguf")
    monkeypatch.setattr(importing, "_linked", lambda *_: False)
    assert some.import_models([source], ImportWay.MOVE).paths == (some.own / "one.gguf",)
    assert not source.exists()


def test_a_source_that_cannot_be_removed(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_model(tmp_path / "from" / "one.gguf")

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(type(source), "unlink", fail)
        result = some.import_models([source], ImportWay.MOVE)
    assert result.paths == (some.own / "one.gguf",)
    assert "still where it was" in refused(result)


def test_links_that_the_system_refuses(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_model(tmp_path / "from" / "one.gguf")

    def no_hard(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    def no_symbolic(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_hard)
    if os.name != "nt":
        assert some.import_models([source], ImportWay.LINK).paths[0].is_symlink()
    monkeypatch.setattr(Path, "symlink_to", no_symbolic)
    words = refused(some.import_models([write_model(tmp_path / "two.gguf")], ImportWay.LINK))
    assert "another disk" in words
    assert "Copy it" in words


def test_nothing_is_moved_out_of_other_programs_folders(tmp_path: Path) -> None:
    source = write_model(tmp_path / "lm" / "o" / "r" / "one.gguf")
    some = library(tmp_path, Root(tmp_path / "lm", "LM Studio", read_only=True, kind=RootKind.LM_STUDIO))
    assert "LM Studio" in refused(some.import_models([source], ImportWay.MOVE))
    assert source.exists()
    assert some.import_models([source], ImportWay.LINK).paths
    assert not only(some.scan()).root.read_only


def test_a_copy_that_is_not_like_its_source(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_model(tmp_path / "from" / "one.gguf")

    def shortened(source: Path, target: Path, copied: Callable[[int], None], cancelled: Callable[[], bool]) -> None:
        target.write_bytes(source.read_bytes()[:-40])

    monkeypatch.setattr(importing, "copy_file", shortened)
    assert "has not arrived" in refused(some.import_models([source]))
    assert some.scan() == ()


def test_killed_in_the_middle(some: Library, tmp_path: Path) -> None:
    """Nothing half copied is listed, the source is whole, and the next start tidies up."""
    source = write_model(tmp_path / "from" / "one.gguf")
    program = f"""
        import os
        from pathlib import Path
        from forespeak.models import importing
        from forespeak.models.library import ImportWay, Library
        def half(source, target, copied, cancelled):
            target.write_bytes(source.read_bytes()[:100])
            os._exit(9)
        importing.copy_file, importing._linked = half, lambda *_: False
        Library(Path({str(some.own)!r}), (), Path({str(tmp_path / "cache")!r})).import_models(
            [Path({str(source)!r})], ImportWay.MOVE
        )
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert hidden(some)
    assert some.scan() == ()
    assert only(library(tmp_path / "elsewhere", added_root(source.parent)).scan()).usable
    some.recover()
    assert list(some.own.iterdir()) == []
    assert some.import_models([source]).paths
