from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.file_facts import FileFacts
from forespeak.models.gguf import GgufKind
from forespeak.models.library_cache import FILE_NAME, MOST_FILES, FactsCache

FACTS = FileFacts(GgufKind.MODEL, title="Ä", weights=(("F32", 5),), parameters=2**40, shard=(2, 3), label=None)
PATH = Path("/models/a.gguf")


def filled(folder: Path) -> Path:
    cache = FactsCache(folder)
    cache.put(PATH, (5, 6), FACTS)
    cache.put(Path("/models/b.gguf"), (7, 8), replace(FACTS, problem="damaged"))
    cache.save()
    return folder / FILE_NAME


def test_facts_survive(tmp_path: Path) -> None:
    filled(tmp_path)
    again = FactsCache(tmp_path)
    assert again.get(PATH, (5, 6)) == FACTS
    assert again.get(PATH, (5, 7)) is None
    assert again.get(Path("/models/c.gguf"), (5, 6)) is None


def test_nothing_new_is_not_written(tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.unlink()
    again = FactsCache(tmp_path)
    again.save()
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b"{}", b"null", b'{"fields": 5, "files": 6}', b"[" * 99999]
)
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    filled(tmp_path).write_bytes(content)
    cache = FactsCache(tmp_path)
    assert cache.get(PATH, (5, 6)) is None
    cache.put(PATH, (5, 6), FACTS)
    cache.save()
    assert FactsCache(tmp_path).get(PATH, (5, 6)) == FACTS


def test_another_version_counts_as_empty(tmp_path: Path) -> None:
    path = filled(tmp_path)
    content = json.loads(path.read_bytes())
    content["fields"].append("something new")
    path.write_text(json.dumps(content))
    assert FactsCache(tmp_path).get(PATH, (5, 6)) is None


@pytest.mark.parametrize(
    ("place", "value"), [(0, "nonsense"), (4, "x"), (4, None), (9, 5), (9, [["F32"]]), (11, [1]), (1, 7), (12, 1.5)]
)
def test_a_damaged_entry_does_not_spoil_the_others(tmp_path: Path, place: int, value: object) -> None:
    path = filled(tmp_path)
    content = json.loads(path.read_bytes())
    content["files"]["/models/b.gguf"][1][place] = value
    path.write_text(json.dumps(content))
    cache = FactsCache(tmp_path)
    assert cache.get(Path("/models/b.gguf"), (7, 8)) is None
    assert cache.get(PATH, (5, 6)) == FACTS


def test_what_was_not_seen_for_long_goes(tmp_path: Path) -> None:
    cache = FactsCache(tmp_path)
    for number in range(MOST_FILES + 5):
        cache.put(Path(f"/{number}"), (1,), FACTS)
    cache.put(Path("/1"), (2,), FACTS)
    cache.save()
    again = FactsCache(tmp_path)
    assert again.get(Path("/1"), (2,)) is not None
    assert again.get(Path("/2"), (1,)) is None
    assert again.get(Path(f"/{MOST_FILES + 4}"), (1,)) is not None


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = FactsCache(tmp_path / "file" / "below")
    cache.put(PATH, (5, 6), FACTS)
    cache.save()
    assert cache.get(PATH, (5, 6)) == FACTS
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
