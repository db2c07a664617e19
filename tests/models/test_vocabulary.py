from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from forespeak.models.gguf import GgufError, Problem, read_header
from forespeak.models.vocabulary import (
    TokenType,
    Vocabulary,
    cached_header,
    cached_vocabulary,
    read_vocabulary,
)
from models.field_data import VOCABULARIES, needs_field_data
from models.gguf_writer import BYTE, CONTROL, NORMAL, USER_DEFINED, ModelFile, gguf


def vocabulary(file: ModelFile, folder: Path) -> Vocabulary:
    return read_vocabulary(read_header(file.write(folder / "some.gguf")))


def test_tables(tmp_path: Path) -> None:
    found = vocabulary(
        ModelFile(
            ["a", "Ġb", "<|im_end|>", ""],
            [NORMAL, NORMAL, CONTROL, 99],
            settings={"eos_token_id": 2, "bos_token_id": 900, "scores": [0.0, -1.0, 0.5, 1.0]},
        ),
        tmp_path,
    )
    assert found.tokens == (b"a", "Ġb".encode(), b"<|im_end|>", b"[EMPTY_3]")
    assert found.types.tolist() == [1, 1, 3, 99]
    assert [found.type_of(token) for token in range(4)] == [
        TokenType.NORMAL,
        TokenType.NORMAL,
        TokenType.CONTROL,
        TokenType.UNDEFINED,
    ]
    assert found.scores is not None
    assert found.scores.tolist() == [0.0, -1.0, 0.5, 1.0]
    assert found.merges is not None
    assert found.merges.strings() == [b"a b", b"ab c"]
    assert (found.model, found.pre, found.size) == ("gpt2", "qwen2", 4)
    assert (found.bos, found.eos, found.eot) == (None, 2, 2)


@pytest.mark.parametrize(
    ("model", "pre", "flags"),
    [
        ("gpt2", "qwen2", (False, False)),
        ("gpt2", "llama-bpe", (True, False)),
        ("llama", "default", (True, False)),
        ("t5", "", (False, True)),
        ("gemma4", "", (True, False)),
    ],
)
def test_what_holds_where_a_file_is_silent(tmp_path: Path, model: str, pre: str, flags: tuple[bool, bool]) -> None:
    found = vocabulary(ModelFile(["a", "b", "c"], model=model, pre=pre), tmp_path)
    assert (found.add_bos, found.add_eos) == flags


def test_a_file_that_speaks_is_believed(tmp_path: Path) -> None:
    said = {"add_bos_token": False, "add_eos_token": True, "bos_token_id": 0, "eot_token_id": 1}
    found = vocabulary(ModelFile(["a", "b", "<|im_end|>"], model="llama", settings=said), tmp_path)
    assert (found.add_bos, found.add_eos, found.bos, found.eos, found.eot) == (False, True, 0, 2, 1)


@pytest.mark.parametrize(
    ("model", "text", "kind", "piece"),
    [
        ("gpt2", "Ġfoo", NORMAL, b" foo"),
        ("gpt2", "Ċ", NORMAL, b"\n"),
        ("gpt2", "ä½", NORMAL, b"\xe4\xbd"),
        ("gpt2", "Ġfoo", USER_DEFINED, "Ġfoo".encode()),
        ("gpt2", "not byte-level: ", NORMAL, b"not byte-level: "),
        ("llama", "▁foo", NORMAL, b" foo"),
        ("llama", "<0x0A>", BYTE, b"\n"),
        ("llama", "<0xZZ>", BYTE, b"<0xZZ>"),
        ("llama", "</s>", CONTROL, b"</s>"),
    ],
)
def test_pieces(tmp_path: Path, model: str, text: str, kind: int, piece: bytes) -> None:
    assert vocabulary(ModelFile(["x", text], [NORMAL, kind], model=model), tmp_path).piece(1) == piece


def test_files_without_a_usable_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    path.write_bytes(gguf({"general.architecture": "llama"}, [("t", (4,))]))
    with pytest.raises(GgufError) as caught:
        read_vocabulary(read_header(path))
    assert caught.value.problem is Problem.NO_VOCABULARY
    for broken in (
        ModelFile(["a", "b", "a"]),
        ModelFile(["a", "b"], types=[1]),
        ModelFile(["a", "b"], settings={"scores": [0.5]}),
        ModelFile(["a", "b"], settings={"token_type": [0.5, 0.5]}),
        ModelFile(["a", "b"], settings={"token_type": ["x", "y"]}),
        ModelFile(["a", "b"], settings={"tokens": [1, 2]}),
    ):
        with pytest.raises(GgufError) as caught:
            vocabulary(broken, tmp_path)
        assert caught.value.problem is Problem.DAMAGED


def test_the_cache_notices_a_changed_file(tmp_path: Path) -> None:
    path = ModelFile(["a", "b"]).write(tmp_path / "cached.gguf")
    first = cached_vocabulary(path)
    assert cached_vocabulary(path) is first
    assert cached_header(path) is cached_header(path)
    ModelFile(["a", "c"]).write(path)
    os.utime(path, ns=(1, 1))
    assert cached_vocabulary(path).tokens == (b"a", b"c")
    path.unlink()
    with pytest.raises(GgufError):
        cached_vocabulary(path)


@needs_field_data
@pytest.mark.parametrize("name", list(VOCABULARIES))
def test_real_vocabularies_agree_with_llama_cpp(name: str) -> None:
    """The token texts, types and special tokens are those that llama.cpp itself reports."""
    llama_cpp = pytest.importorskip("llama_cpp")
    path = VOCABULARIES[name]
    ours = cached_vocabulary(path)
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    try:
        theirs = llama_cpp.llama_model_get_vocab(model)
        assert llama_cpp.llama_vocab_n_tokens(theirs) == ours.size
        rng = np.random.default_rng(1)
        sample = [*range(600), *rng.integers(0, ours.size, 3000).tolist(), *range(ours.size - 300, ours.size)]
        for token in sample:
            assert llama_cpp.llama_vocab_get_text(theirs, token) == ours.tokens[token]
            buffer = llama_cpp.ctypes.create_string_buffer(512)
            length = llama_cpp.llama_token_to_piece(theirs, token, buffer, 512, 0, True)
            if ours.type_of(token) is not TokenType.UNUSED:
                assert buffer.raw[:length] == ours.piece(token)
        assert llama_cpp.llama_vocab_get_add_bos(theirs) == ours.add_bos
        assert llama_cpp.llama_vocab_get_add_eos(theirs) == ours.add_eos
        for special, found in (("bos", ours.bos), ("eos", ours.eos)):
            assert getattr(llama_cpp, f"llama_vocab_{special}")(theirs) == (-1 if found is None else found)
    finally:
        llama_cpp.llama_model_free(model)
