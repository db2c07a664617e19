from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forespeak.models.fingerprint import vocabulary_fingerprint
from forespeak.models.gguf import read_header
from models.gguf_writer import CONTROL, NORMAL, ModelFile, gguf

SOME = ModelFile(["a", "b", "<s>"], [NORMAL, NORMAL, CONTROL], settings={"bos_token_id": 2})


def fingerprint(file: ModelFile, folder: Path) -> str | None:
    return vocabulary_fingerprint(read_header(file.write(folder / "some.gguf")))


def test_one_vocabulary_in_other_files_is_the_same(tmp_path: Path) -> None:
    first = fingerprint(SOME, tmp_path)
    assert first is not None
    others = replace(SOME, architecture="llama", entries={"tokenizer.chat_template": "{{ x }}", "general.name": "b"})
    assert fingerprint(others, tmp_path) == first
    assert fingerprint(replace(SOME, settings={**SOME.settings, "scores": [0.1, 0.2, 0.3]}), tmp_path) == first


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": ["a", "c", "<s>"]},
        {"tokens": ["a", "b", "<s>", "d"], "types": [NORMAL, NORMAL, CONTROL, NORMAL]},
        {"types": [NORMAL, CONTROL, CONTROL]},
        {"merges": ["a b"]},
        {"model": "llama"},
        {"pre": "smollm"},
        {"settings": {"bos_token_id": 1}},
        {"settings": {"bos_token_id": 2, "add_bos_token": True}},
        {"settings": {"bos_token_id": 2, "eot_token_id": 2}},
    ],
)
def test_whatever_a_verdict_looks_at_counts(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert fingerprint(replace(SOME, **changes), tmp_path) != fingerprint(SOME, tmp_path)


def test_without_a_vocabulary_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    path.write_bytes(gguf({"general.architecture": "llama"}, [("t", (4,))]))
    assert vocabulary_fingerprint(read_header(path)) is None
