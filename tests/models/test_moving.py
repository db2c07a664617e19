from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models import moving
from forespeak.models.file_lock import FileLock
from forespeak.models.library import Library
from forespeak.models.moving import JOURNAL
from models.library_folders import library, write_mlx, write_model, write_set


@pytest.fixture
def some(tmp_path: Path) -> Library:
    found = library(tmp_path)
    write_model(found.own / "one.gguf")
    write_set(found.own / "owner" / "repo", "big", 3)
    write_mlx(found.own / "owner" / "mlx")
    (found.own / "owner" / "repo" / "coming.gguf.part").write_bytes(b"half")
    return found


@pytest.fixture(params=["one disk", "two disks"])
def disks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """On two disks, renaming from one folder's tree to another's is refused, as the system would."""
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if ("new" in self.parts) is not ("new" in Path(target).parts):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real(self, target)

    if request.param == "two disks":
        monkeypatch.setattr(Path, "rename", rename)
    return str(request.param)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_everything_moves(some: Library, tmp_path: Path, disks: str) -> None:
    before, models, old = contents(some.own), [item.name for item in some.scan()], some.own
    told: list[tuple[int, int]] = []
    assert some.move_to(tmp_path / "new" / "place", lambda done, total: told.append((done, total)))
    assert some.own == tmp_path / "new" / "place"
    assert contents(some.own) == before
    assert contents(old) == {}
    assert [item.name for item in some.scan()] == models
    total = sum(map(len, before.values()))
    assert (told[0], told[-1]) == ((0, total), (total, total))
    assert not some.recover()


def test_times_stay(some: Library, tmp_path: Path, disks: str) -> None:
    times = {item.name: item.modified for item in some.scan()}
    some.move_to(tmp_path / "new")
    assert {item.name: item.modified for item in some.scan()} == times


def test_a_removed_model_can_be_brought_back_afterwards(some: Library, tmp_path: Path) -> None:
    item = next(item for item in some.scan() if item.name == "big")
    removal = some.remove(item)
    some.move_to(tmp_path / "new")
    removal.undo()
    assert "big" in {item.name for item in some.scan()}
    assert all(tmp_path / "new" in item.path.parents for item in some.scan())


@pytest.fixture
def held_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: a file that somebody has open is neither moved nor deleted."""
    acquire, release, rename, unlink = FileLock.acquire, FileLock.release, Path.rename, Path.unlink
    held: set[Path] = set()

    def acquired(self: FileLock) -> bool:
        if not acquire(self):
            return False
        held.add(self._path)
        return True

    def released(self: FileLock) -> None:
        if self.held:
            held.remove(self._path)
        release(self)

    def renamed(self: Path, target: Path) -> Path:
        if any(path == self or self in path.parents for path in held):
            raise PermissionError(errno.EACCES, "The process cannot access the file")
        return rename(self, target)

    def unlinked(self: Path, missing_ok: bool = False) -> None:
        if self in held:
            raise PermissionError(errno.EACCES, "The process cannot access the file")
        unlink(self, missing_ok)

    monkeypatch.setattr(FileLock, "acquire", acquired)
    monkeypatch.setattr(FileLock, "release", released)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "unlink", unlinked)


@pytest.mark.parametrize("name", ["big", "one", "mlx"])
@pytest.mark.parametrize("brought_back", [True, False])
@pytest.mark.usefixtures("held_files_stay")
def test_what_can_still_be_brought_back_is_held_in_the_new_place(
    some: Library, tmp_path: Path, disks: str, name: str, brought_back: bool
) -> None:
    before, old = contents(some.own), some.own
    removal = some.remove(next(item for item in some.scan() if item.name == name))
    assert some.move_to(tmp_path / "new")
    assert list(old.iterdir()) == []
    # Another process leaves it alone.
    Library(some.own, (), tmp_path / "cache").recover()
    assert removal.open
    if brought_back:
        removal.undo()
        assert contents(some.own) == before
    else:
        removal.finish()
    assert not list(some.own.rglob(".forespeak-trash"))
    # And back again.
    assert some.move_to(old)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_move_that_was_cancelled_leaves_the_lock(some: Library, tmp_path: Path) -> None:
    removal = some.remove(next(item for item in some.scan() if item.name == "one"))
    assert not some.move_to(tmp_path / "new", cancelled=lambda: True)
    library(tmp_path).recover()
    removal.undo()
    assert "one" in {item.name for item in some.scan()}


def test_locks_that_nobody_holds_any_more_go(some: Library, tmp_path: Path) -> None:
    trash = some.own / "owner" / ".forespeak-trash"
    trash.mkdir()
    (trash / "1234.lock").touch()
    assert some.move_to(tmp_path / "new")
    assert contents(tmp_path / "models") == {}
    (some.own / "gone" / ".forespeak-trash").mkdir(parents=True)
    (some.own / "gone" / ".forespeak-trash" / "1234.lock").touch()
    some.recover()
    assert not (some.own / "gone").exists()


def test_cancelled(some: Library, tmp_path: Path, disks: str) -> None:
    before, old, asked = contents(some.own), some.own, False

    def told(done: int, total: int) -> None:
        nonlocal asked
        asked = done > total / 2

    assert not some.move_to(tmp_path / "new", told, lambda: asked)
    assert some.own == old
    assert contents(old) == before
    assert contents(tmp_path / "new") == {}


def test_an_error_in_the_middle(some: Library, tmp_path: Path, disks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = contents(some.own), moving._bring

    def fail(own: Path, target: Path, file: Path, *others: object) -> None:
        if "00002" in file.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(own, target, file, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(moving, "_bring", fail)
    with pytest.raises(UserFacingError, match="is full"):
        some.move_to(tmp_path / "new")
    assert contents(some.own) == before
    assert contents(tmp_path / "new") == {}


class Killed(BaseException):
    """The process ends here: nothing is tidied up."""


@pytest.mark.parametrize("at", ["first", "middle", "copy"])
def test_interrupted_before_all_has_arrived(
    some: Library, tmp_path: Path, disks: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(some.own)
    real = moving._bring

    def kill(own: Path, target: Path, file: Path, *others: object) -> None:
        if at == "first" or (at == "middle" and "00002" in file.name):
            raise Killed
        if at == "copy" and "00002" in file.name:
            (target / file).with_name(file.name + ".moving").write_bytes(b"half of it")
            raise Killed
        real(own, target, file, *others)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(moving, "_bring", kill)
        patch.setattr(moving, "_undo", lambda *_: None)
        with pytest.raises(Killed):
            some.move_to(tmp_path / "new")
    assert (some.own / JOURNAL).exists()
    again = library(tmp_path)
    assert not again.recover()
    assert contents(again.own) == before
    assert contents(tmp_path / "new") == {}


def test_interrupted_after_all_has_arrived(
    some: Library, tmp_path: Path, disks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, old = contents(some.own), some.own

    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(moving, "_delete_sources", kill)
        with pytest.raises(Killed):
            some.move_to(tmp_path / "new")
    again = library(tmp_path)
    assert again.recover()
    assert again.own == tmp_path / "new"
    assert contents(again.own) == before
    assert contents(old) == {}


def test_places_that_make_no_sense(some: Library, tmp_path: Path) -> None:
    write_model(tmp_path / "taken" / "one.gguf")
    (tmp_path / "file").touch()
    for target, words in (
        (some.own, "already"),
        (some.own / "below", "in the other"),
        (some.own.parent, "in the other"),
        (tmp_path / "taken", "There is a “one.gguf” already"),
        (tmp_path / "file" / "below", "could not be moved"),
    ):
        before = contents(some.own)
        with pytest.raises(UserFacingError, match=words) as caught:
            some.move_to(target)
        assert caught.value.remedy
        assert contents(some.own) == before


def test_a_disk_without_room(some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    target = Path("/dev/shm") / f"forespeak-test-{os.getpid()}"
    monkeypatch.setattr("forespeak.models.transfer.free_bytes", lambda _: 100)
    try:
        with pytest.raises(UserFacingError, match="not enough disk space"):
            some.move_to(target)
        monkeypatch.undo()
        before = contents(some.own)
        assert some.move_to(target)
        assert contents(target) == before
    finally:
        shutil.rmtree(target, ignore_errors=True)


def test_a_folder_in_which_somebody_writes(some: Library, tmp_path: Path) -> None:
    before = contents(some.own)
    (some.own / ".downloads").mkdir()
    with FileLock(some.own / ".downloads" / "1.lock") as lock:
        assert lock.acquire()
        with pytest.raises(UserFacingError, match="downloaded or imported"):
            some.move_to(tmp_path / "new")
    assert contents(some.own) == before
    # What a killed process left is nobody's.
    (some.own / ".downloads" / "1.lock").touch()
    assert some.move_to(tmp_path / "new")
    assert contents(some.own) == before


def test_nothing_to_move(tmp_path: Path) -> None:
    some = library(tmp_path)
    assert some.move_to(tmp_path / "new")
    assert some.own == tmp_path / "new"


@pytest.mark.parametrize(
    "journal",
    [
        "nonsense",
        json.dumps({"target": "relative", "files": ["one.gguf"], "arrived": True}),
        json.dumps({"target": "/elsewhere", "files": ["../one.gguf"], "arrived": True}),
        json.dumps({"target": "/elsewhere", "files": ["/one.gguf"], "arrived": True}),
        json.dumps([]),
    ],
)
def test_a_journal_that_is_damaged_or_leads_elsewhere_does_nothing(some: Library, journal: str) -> None:
    before = contents(some.own)
    (some.own / JOURNAL).write_text(journal)
    assert not some.recover()
    (some.own / JOURNAL).unlink()
    assert contents(some.own) == before


def test_a_journal_that_could_not_be_deleted_takes_nothing_after_the_way_back(
    some: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, old = contents(some.own), some.own
    real = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self == old / JOURNAL:
            raise PermissionError(errno.EACCES, "Access is denied")
        real(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        assert some.move_to(tmp_path / "new")
    assert (old / JOURNAL).exists()
    assert some.move_to(old)
    assert not (old / JOURNAL).exists()
    assert not library(tmp_path).recover()
    assert contents(old) == before


@pytest.mark.parametrize("target", ["gone", "empty", "some of it", "a link back", "links back"])
def test_a_journal_deletes_nothing_that_is_in_no_other_place(some: Library, tmp_path: Path, target: str) -> None:
    before, new = contents(some.own), tmp_path / "new"
    (some.own / JOURNAL).write_text(json.dumps({"target": str(new), "files": list(before), "arrived": True}))
    if target == "a link back":
        new.symlink_to(some.own, target_is_directory=True)
    elif target != "gone":
        new.mkdir()
    if target == "some of it":
        shutil.copy(some.own / "one.gguf", new)
    elif target == "links back":
        for name in before:
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).symlink_to(some.own / name)
    again = library(tmp_path)
    assert not again.recover()
    # A disk that is away comes back, and then the move is finished.
    assert (again.own / JOURNAL).exists() == (target == "gone")
    (again.own / JOURNAL).unlink(missing_ok=True)
    assert contents(again.own) == before


def test_an_interrupted_move_into_a_link_to_the_folder_itself_is_no_reason_to_delete(
    some: Library, tmp_path: Path
) -> None:
    before = contents(some.own)
    (tmp_path / "new").symlink_to(some.own, target_is_directory=True)
    plain = {"target": str(tmp_path / "new"), "files": list(before), "arrived": False}
    (some.own / JOURNAL).write_text(json.dumps(plain))
    assert not library(tmp_path).recover()
    assert contents(some.own) == before
