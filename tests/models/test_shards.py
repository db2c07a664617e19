from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models.shards import ShardName, missing_words, shard_name, shard_paths


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model-00001-of-00003.gguf", ShardName("model", 1, 3, ".gguf")),
        ("a-b-Q4_K_M-00012-of-00099.GGUF", ShardName("a-b-Q4_K_M", 12, 99, ".GGUF")),
        ("model-00001-of-00002.safetensors", ShardName("model", 1, 2, ".safetensors")),
        ("x-00001-of-00002-00003-of-00004.gguf", ShardName("x-00001-of-00002", 3, 4, ".gguf")),
        ("model.gguf", None),
        ("model-1-of-3.gguf", None),
        ("model-00000-of-00003.gguf", None),
        ("model-00004-of-00003.gguf", None),
        ("-00001-of-00003.gguf", None),
        ("model-00001-of-00003.gguf.part", None),
        ("model-00001-of-00003", None),
    ],
)
def test_names_of_parts(name: str, expected: ShardName | None) -> None:
    assert shard_name(name) == expected


def test_the_name_of_another_part() -> None:
    part = shard_name("some model-00002-of-00010.gguf")
    assert part is not None
    assert part.part(10) == "some model-00010-of-00010.gguf"


def test_the_files_of_a_model_by_one_of_them(tmp_path: Path) -> None:
    assert [path.name for path in shard_paths(tmp_path / "m-00002-of-00002.gguf")] == [
        "m-00001-of-00002.gguf",
        "m-00002-of-00002.gguf",
    ]
    assert list(shard_paths(tmp_path / "m.gguf")) == [tmp_path / "m.gguf"]
    first = next(shard_paths(tmp_path / "m-00007-of-999999999.gguf"))
    assert first.name == "m-00001-of-999999999.gguf"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ([2], "Part 2 of 9 is missing."),
        ([3, 2], "Parts 2 and 3 of 9 are missing."),
        ([1, 5, 6, 7], "Parts 1 and 5 to 7 of 9 are missing."),
        ([1, 3, 4, 9], "Parts 1, 3 and 4 and 9 of 9 are missing."),
    ],
)
def test_missing_parts_in_words(missing: list[int], words: str) -> None:
    assert missing_words(missing, 9) == words
