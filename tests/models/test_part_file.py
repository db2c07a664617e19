"""The bytes so far and the note of them: what is believed after an end of any kind."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from forespeak.models import part_file
from forespeak.models.part_file import STEP, Identity, PartFile, Verification, finish, remove_part
from loopback_hub import content

DATA = content(3 * STEP + 1000)


def identity(data: bytes = DATA, *, etag: str | None = "known", sha256: str | None = None) -> Identity:
    digest = hashlib.sha256(data).hexdigest()
    return Identity("org/repo", "main", "a.gguf", len(data), digest if etag == "known" else etag, sha256)


def written(target: Path, count: int, piece: int = 50_000) -> PartFile:
    part = PartFile(target, identity())
    for start in range(0, count, piece):
        part.write(DATA[start : min(start + piece, count)])
    return part


def test_from_nothing_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    part = written(target, len(DATA))
    assert part.verify()
    part.close()
    assert not target.exists()
    finish(target)
    assert target.read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize("count", [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP + 500])
@pytest.mark.parametrize("piece", [1000, 65_536, 300_000])
def test_an_orderly_end_loses_nothing(tmp_path: Path, count: int, piece: int) -> None:
    written(tmp_path / "a", count, piece).close()
    again = PartFile(tmp_path / "a", identity())
    assert again.done == count
    again.write(DATA[count:])
    assert again.verify()
    again.close()


def test_what_is_not_noted_is_not_believed(tmp_path: Path) -> None:
    written(tmp_path / "a", 2 * STEP).close()
    with (tmp_path / "a.part").open("ab") as part:
        part.write(b"never hashed")
    again = PartFile(tmp_path / "a", identity())
    assert again.done == 2 * STEP
    assert (tmp_path / "a.part").stat().st_size == 2 * STEP
    again.close()


@pytest.mark.parametrize("left", [0, 1, STEP - 1, STEP + 1])
def test_a_shortened_part(tmp_path: Path, left: int) -> None:
    written(tmp_path / "a", 2 * STEP + 5000).close()
    os.truncate(tmp_path / "a.part", left)
    again = PartFile(tmp_path / "a", identity())
    assert left - STEP < again.done <= left
    again.close()


def test_a_part_that_is_away(tmp_path: Path) -> None:
    written(tmp_path / "a", STEP).close()
    (tmp_path / "a.part").unlink()
    again = PartFile(tmp_path / "a", identity())
    assert again.done == 0
    again.close()


def test_another_file_is_not_gone_on_with(tmp_path: Path) -> None:
    written(tmp_path / "a", STEP).close()
    other = PartFile(tmp_path / "a", identity(content(len(DATA), 3)))
    assert other.done == 0
    other.close()


def test_the_same_contents_of_another_commit_are(tmp_path: Path) -> None:
    written(tmp_path / "a", STEP).close()
    known = identity()
    again = PartFile(tmp_path / "a", Identity("org/other", "v2", "b.gguf", known.size, None, known.etag))
    assert again.done == STEP
    again.close()


def test_without_hashes_only_the_same_place_is_the_same(tmp_path: Path) -> None:
    weak = Identity("org/repo", "main", "a", 10, None, None)
    assert weak.is_same_file(Identity("org/repo", "main", "a", 10, None, None))
    assert not weak.is_same_file(Identity("org/repo", "v2", "a", 10, None, None))
    assert not weak.is_same_file(Identity("org/repo", "main", "a", 11, None, None))


@pytest.mark.parametrize(
    ("etag", "sha256", "verification"),
    [
        ("a" * 64, None, Verification.SHA256),
        (None, "a" * 64, Verification.SHA256),
        ("b" * 40, "a" * 64, Verification.SHA256),
        ("b" * 40, None, Verification.GIT),
        ("weak", None, Verification.SIZE),
        (None, None, Verification.SIZE),
        ("g" * 64, None, Verification.SIZE),
    ],
)
def test_what_can_be_checked(etag: str | None, sha256: str | None, verification: Verification) -> None:
    assert Identity("r", "v", "p", 1, etag, sha256).verification is verification


def test_wrong_bytes_are_noticed(tmp_path: Path) -> None:
    part = written(tmp_path / "a", len(DATA) - 4)
    part.write(b"XXXX")
    assert not part.verify()
    part.restart()
    assert part.done == 0
    part.write(DATA)
    assert part.verify()
    part.close()


def test_too_few_bytes_are_noticed(tmp_path: Path) -> None:
    part = written(tmp_path / "a", STEP)
    assert not part.verify()
    part.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_check_leaves_everything(tmp_path: Path) -> None:
    written(tmp_path / "a", 3 * STEP).close()
    asked = iter([False, True, True, True])
    part = PartFile(tmp_path / "a", identity(), lambda: next(asked))
    part.close()
    again = PartFile(tmp_path / "a", identity())
    assert again.done == 3 * STEP
    again.close()


def test_at_most_a_mebibyte_is_not_noted(tmp_path: Path) -> None:
    """At any moment, however slowly the other thread hashes."""
    part = PartFile(tmp_path / "a", identity())
    for start in range(0, len(DATA), 7777):
        part.write(DATA[start : start + 7777])
        lines = (tmp_path / "a.part.state").read_text().splitlines()[1:]
        noted = int(lines[-1].split()[0]) if lines else 0
        assert part.done - noted <= 1 << 20
    part.close()


def test_a_disk_that_refuses_the_note_is_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartFile(tmp_path / "a", identity())
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    part._state.close()
    part._state = full.open("wb", buffering=0)
    part.write(DATA)
    with pytest.raises(OSError, match="No space left"):
        part.flush()
    part.close()


def test_long_downloads_are_brought_to_the_disk_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(part_file, "_SYNC_SECONDS", 0.0)
    monkeypatch.setattr(part_file, "sync_file", synced.append)
    part = PartFile(tmp_path / "a", identity())
    begun = len(synced)
    part.write(DATA[: 2 * STEP])
    part.flush()
    assert len(synced) >= begun + 2
    part.close()


def test_removing_what_is_not_there(tmp_path: Path) -> None:
    remove_part(tmp_path / "a")
