from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from forespeak.models.gguf import GgufError, GgufKind, LazyArray, Problem, read_header
from models.field_data import VOCABULARIES, needs_field_data
from models.gguf_writer import ModelFile, gguf

WEIGHTS = (("token_embd.weight", (8, 4)),)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def problem_of(path: Path) -> GgufError:
    with pytest.raises(GgufError) as caught:
        read_header(path)
    return caught.value


def test_what_a_model_says_about_itself(tmp_path: Path) -> None:
    path = ModelFile(["a", "b"], entries={"general.file_type": 0}).write(tmp_path / "tiny.gguf")
    header = read_header(path)
    assert (header.path, header.version, header.size_bytes) == (path, 3, path.stat().st_size)
    assert (header.architecture, header.name, header.context_length) == ("qwen2", "tiny", 4096)
    assert (header.kind, header.is_vocabulary_only) == (GgufKind.MODEL, False)
    assert (header.tensor_count, header.parameters, header.quantisation) == (2, 40, "F32")
    assert header.shard == (1, 1)
    first, second = header.tensors
    assert (first.name, first.shape, first.type, first.offset, first.size_bytes) == (
        "token_embd.weight",
        (8, 4),
        "F32",
        0,
        128,
    )
    assert second.offset == 128
    assert header.needed_bytes == header.data_offset + 128 + 32
    assert isinstance(header.metadata["tokenizer.ggml.tokens"], LazyArray)


def test_version_2_and_alignment(tmp_path: Path) -> None:
    header = read_header(write(tmp_path / "old.gguf", gguf({"general.alignment": 32}, WEIGHTS, version=2)))
    assert (header.version, header.data_offset % 32) == (2, 0)


@pytest.mark.parametrize(
    ("entries", "tensors", "kind"),
    [
        ({"general.architecture": "llama"}, WEIGHTS, GgufKind.MODEL),
        ({"general.architecture": "llama", "tokenizer.ggml.tokens": ["a"]}, (), GgufKind.VOCABULARY_ONLY),
        ({"general.architecture": "llama"}, (), GgufKind.OTHER),
        ({"general.architecture": "clip"}, WEIGHTS, GgufKind.PROJECTOR),
        ({"general.architecture": "qwen2vl", "general.type": "mmproj"}, WEIGHTS, GgufKind.PROJECTOR),
        ({"general.architecture": "llama", "general.type": "adapter"}, WEIGHTS, GgufKind.ADAPTER),
        ({"general.type": "imatrix"}, WEIGHTS, GgufKind.IMATRIX),
        ({"general.architecture": "bert"}, WEIGHTS, GgufKind.ENCODER),
        ({"general.architecture": "eagle3"}, WEIGHTS, GgufKind.DRAFT_HEAD),
        ({"split.no": 1, "split.count": 3}, WEIGHTS, GgufKind.LATER_SHARD),
        ({"general.architecture": "llama", "split.no": 0, "split.count": 3}, WEIGHTS, GgufKind.MODEL),
        # The first part of a split model may hold the header alone.
        ({"general.architecture": "llama", "split.no": 0, "split.count": 3}, (), GgufKind.MODEL),
        ({}, WEIGHTS, GgufKind.OTHER),
    ],
)
def test_kinds(tmp_path: Path, entries: dict[str, object], tensors: tuple[()], kind: GgufKind) -> None:
    assert read_header(write(tmp_path / "some.gguf", gguf(entries, tensors))).kind is kind


def test_wrong_types_of_entries_count_as_absent(tmp_path: Path) -> None:
    entries = {"general.architecture": 5, "general.name": 6, "general.file_type": "x", "split.count": "y"}
    header = read_header(write(tmp_path / "odd.gguf", gguf(entries, WEIGHTS)))
    assert (header.architecture, header.name, header.context_length) == (None, "odd", None)
    assert (header.quantisation, header.shard) == ("F32", (1, 1))


def test_a_file_cut_in_its_tensors_says_how_much_is_there(tmp_path: Path) -> None:
    path = ModelFile(["a", "b"]).write(tmp_path / "cut.gguf")
    needed = read_header(path).needed_bytes
    path.write_bytes(path.read_bytes()[: needed - 1])
    error = problem_of(path)
    assert error.problem is Problem.TRUNCATED
    assert f"{needed:,} bytes" in error.why or "kB" in error.why
    assert "stopped early" in error.why
    assert "again" in error.remedy


def test_files_that_are_no_models(tmp_path: Path) -> None:
    error = problem_of(write(tmp_path / "note.gguf", b"Dear model, how are you?"))
    assert (error.problem, error.what) == (Problem.NOT_GGUF, "“note.gguf” is not a GGUF model.")
    assert "a text file" in error.why
    assert "web page" in problem_of(write(tmp_path / "page.gguf", b"<!doctype html><p>Sign in")).why
    assert problem_of(write(tmp_path / "empty.gguf", b"")).problem is Problem.EMPTY
    missing = problem_of(tmp_path / "gone.gguf")
    assert missing.problem is Problem.MISSING
    assert str(tmp_path) in missing.why
    assert problem_of(tmp_path / "note.gguf" / "inside").problem is Problem.MISSING
    assert problem_of(tmp_path / ("x" * 5000)).problem is Problem.UNREADABLE
    assert problem_of(tmp_path / "with\0nul.gguf").problem is Problem.UNREADABLE
    folder = problem_of(tmp_path)
    assert folder.problem is Problem.NOT_A_FILE
    assert "a folder" in folder.what


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert problem_of(tmp_path / "pipe.gguf").problem is Problem.NOT_A_FILE


@pytest.mark.skipif(
    sys.platform == "win32" or (hasattr(os, "geteuid") and os.geteuid() == 0),
    reason="nothing is forbidden to this user",
)
def test_a_forbidden_file(tmp_path: Path) -> None:
    path = ModelFile(["a"]).write(tmp_path / "locked.gguf")
    path.chmod(0)
    assert problem_of(path).problem is Problem.UNREADABLE


def test_an_error_of_the_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ModelFile(["a"]).write(tmp_path / "bad.gguf")

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", fail)
    error = problem_of(path)
    assert error.problem is Problem.UNREADABLE
    assert "Input/output error" in error.why


@needs_field_data
@pytest.mark.parametrize("name", list(VOCABULARIES))
def test_real_headers_are_read_in_milliseconds(name: str) -> None:
    start = time.perf_counter()
    header = read_header(VOCABULARIES[name])
    seconds = time.perf_counter() - start
    assert header.kind is GgufKind.VOCABULARY_ONLY
    assert header.context_length
    assert header.quantisation is None
    assert seconds < 1  # 2 to 70 ms on an idle machine
