from __future__ import annotations

import os
from pathlib import Path

import pytest

from forespeak.models.gguf import GgufHeader, KnownTexts, LazyArray, read_header
from models.field_data import VOCABULARIES, needs_field_data
from models.gguf_writer import ModelFile

WORDS: list[str | bytes] = [f"word {number}" for number in range(5000)]


def tokens(header: GgufHeader) -> LazyArray:
    found = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(found, LazyArray)
    return found


def test_a_list_met_before_is_read_the_same(tmp_path: Path) -> None:
    first = ModelFile(WORDS, merges=["a b"]).write(tmp_path / "first.gguf")
    # Another place in the file, and other merges.
    second = ModelFile(WORDS, merges=["a b", "b c"], architecture="llama").write(tmp_path / "another.gguf")
    known = KnownTexts()
    assert read_header(first, known) == read_header(first)
    assert len(known.alike(5000)) == 1
    met = read_header(second, known)
    assert met == read_header(second)
    assert tokens(met).known_digest == tokens(read_header(second)).digest()
    assert tokens(met).strings() == [f"word {number}".encode() for number in range(5000)]


def test_another_list_of_the_same_length_is_not_taken_for_it(tmp_path: Path) -> None:
    # Longer than the pieces in which files are read: the difference shows late.
    words: list[str | bytes] = [f"word {number:05}" for number in range(40_000)]
    first = ModelFile(words).write(tmp_path / "first.gguf")
    second = ModelFile([*words[:-1], "word X9999"]).write(tmp_path / "second.gguf")
    known = KnownTexts()
    read_header(first, known)
    met = tokens(read_header(second, known))
    assert met.known_digest == tokens(read_header(second)).digest()
    assert met.known_digest != tokens(read_header(first)).digest()


def test_a_file_that_has_taken_the_others_words_since(tmp_path: Path) -> None:
    first = ModelFile(WORDS).write(tmp_path / "first.gguf")
    known = KnownTexts()
    read_header(first, known)
    changed: list[str | bytes] = [*WORDS[:-1], "word X999"]
    for path in (first, tmp_path / "second.gguf"):
        ModelFile(changed).write(path)
    os.utime(first, ns=(1, 1))
    met = tokens(read_header(tmp_path / "second.gguf", known))
    assert met.known_digest == tokens(read_header(tmp_path / "second.gguf")).digest()


@pytest.mark.parametrize("change", ["gone", "rewritten"])
def test_a_file_that_has_changed_proves_nothing(tmp_path: Path, change: str) -> None:
    first = ModelFile(WORDS).write(tmp_path / "first.gguf")
    second = ModelFile(WORDS).write(tmp_path / "second.gguf")
    known = KnownTexts()
    read_header(first, known)
    if change == "gone":
        first.unlink()
    else:
        first.write_bytes(b"x" * 10)
    met = tokens(read_header(second, known))
    assert met.known_digest == tokens(read_header(second)).digest()


@needs_field_data
def test_real_vocabularies_one_after_another() -> None:
    known = KnownTexts()
    for _ in range(2):
        for path in VOCABULARIES.values():
            assert tokens(read_header(path, known)).known_digest == tokens(read_header(path)).digest()
