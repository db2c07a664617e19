from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forespeak.models.gguf import GgufError, Problem, read_header
from forespeak.models.mlx_vocabulary import cached_mlx_fingerprint, cached_mlx_vocabulary, read_mlx_vocabulary
from forespeak.models.vocabulary import TokenType, read_vocabulary
from models.gguf_writer import ModelFile
from models.mlx_writer import mlx_folder

LLAMA: dict[str, Any] = {
    "pre_tokenizer": None,
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]},
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
    "model": {
        "type": "BPE",
        "byte_fallback": True,
        "unk_token": "<unk>",
        "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "<0x0A>": 3, "▁a": 4},
        "merges": [["▁", "a"]],
    },
}


def test_byte_level_tables(tmp_path: Path) -> None:
    found = read_mlx_vocabulary(
        mlx_folder(
            tmp_path / "m",
            {"a": 0, "Ġb": 1, "ab": 2},
            added=[(3, "<|im_end|>", True), (5, "<tool_call>", False)],
            merges=["a b"],
            config={"vocab_size": 8, "bos_token_id": 0},
            settings={"eos_token": {"content": "<|im_end|>"}, "pad_token": "<|im_end|>"},
        )
    )
    assert found.model == "gpt2"
    assert found.tokens == tuple(
        text.encode() for text in ("a", "Ġb", "ab", "<|im_end|>", "[PAD4]", "<tool_call>", "[PAD6]", "[PAD7]")
    )
    assert [found.type_of(token) for token in range(8)] == [
        *(TokenType.NORMAL, TokenType.NORMAL, TokenType.NORMAL, TokenType.CONTROL, TokenType.UNUSED),
        *(TokenType.USER_DEFINED, TokenType.UNUSED, TokenType.UNUSED),
    ]
    assert (found.bos, found.eos, found.eot, found.padding) == (0, 3, 3, 3)
    assert (found.add_bos, found.add_eos) == (False, False)
    assert found.piece(1) == b" b"


def test_sentencepiece_tables(tmp_path: Path) -> None:
    found = read_mlx_vocabulary(
        mlx_folder(
            tmp_path / "m",
            {},
            added=[(0, "<unk>", True), (1, "<s>", True), (2, "</s>", True)],
            settings={"bos_token": "<s>", "eos_token": "</s>"},
            changes={
                **LLAMA,
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                },
            },
        )
    )
    assert found.model == "llama"
    assert [found.type_of(token) for token in range(5)] == [
        *(TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, TokenType.BYTE, TokenType.NORMAL),
    ]
    assert (found.bos, found.eos, found.unknown) == (1, 2, 0)
    assert (found.add_bos, found.add_eos) == (True, False)
    assert (found.piece(3), found.piece(4)) == (b"\n", b" a")


def test_the_settings_say_whether_bos_is_added(tmp_path: Path) -> None:
    changes = {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a"}}]}}
    for name, settings, adds in (
        ("silent", {"bos_token": "a"}, True),
        ("off", {"bos_token": "a", "add_bos_token": False}, False),
        ("null", {"bos_token": "a", "add_bos_token": None}, True),
        ("other", {"bos_token": "b"}, False),
    ):
        folder = mlx_folder(tmp_path / name, {"a": 0, "b": 1}, settings=settings, changes=changes)
        assert read_mlx_vocabulary(folder).add_bos is adds


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ({"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}, "bert"),
        ({"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.0]], "unk_id": 0}, "t5"),
    ],
)
def test_other_kinds(tmp_path: Path, model: dict[str, Any], kind: str) -> None:
    changes = {"model": model, "pre_tokenizer": None, "decoder": None}
    found = read_mlx_vocabulary(mlx_folder(tmp_path / "m", {}, changes=changes))
    assert (found.model, found.size, found.unknown) == (kind, 2, 0)
    assert found.type_of(0) is TokenType.UNKNOWN


def test_merges_are_the_same_in_both_spellings_and_formats(tmp_path: Path) -> None:
    old = read_mlx_vocabulary(mlx_folder(tmp_path / "old", {"a": 0}, merges=["a b", "ab c"]))
    new = read_mlx_vocabulary(mlx_folder(tmp_path / "new", {"a": 0}, merges=[["a", "b"], ["ab", "c"]]))
    other = read_mlx_vocabulary(mlx_folder(tmp_path / "other", {"a": 0}, merges=["a b"]))
    file = read_vocabulary(read_header(ModelFile(["a"], merges=["a b", "ab c"]).write(tmp_path / "f.gguf")))
    assert old.merges_digest == new.merges_digest == file.merges_digest != other.merges_digest


def test_settings_of_the_text_part_count(tmp_path: Path) -> None:
    config = {"text_config": {"vocab_size": 5, "eos_token_id": [1, 0]}}
    found = read_mlx_vocabulary(mlx_folder(tmp_path / "m", {"a": 0, "b": 1}, config=config))
    assert (found.size, found.eos) == (5, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", "[1]"),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", json.dumps({"model": {"type": "BPE", "vocab": 3, "merges": []}, "decoder": {}})),
        ("tokenizer.json", json.dumps({"model": 7})),
        ("config.json", "no"),
        ("config.json", json.dumps({"vocab_size": 1 << 40})),
        ("tokenizer_config.json", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")),
    ],
)
def test_damaged_folders_are_told_in_words(tmp_path: Path, name: str, text: str) -> None:
    folder = mlx_folder(tmp_path / "m", {"a": 0})
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(GgufError) as caught:
        read_mlx_vocabulary(folder)
    assert caught.value.problem in {Problem.DAMAGED, Problem.UNSUPPORTED}


def test_what_is_not_there(tmp_path: Path) -> None:
    folder = mlx_folder(tmp_path / "m", {"a": 0})
    for optional in ("tokenizer_config.json", "config.json"):
        (folder / optional).unlink()
    assert read_mlx_vocabulary(folder).size == 1
    (folder / "tokenizer.json").unlink()
    with pytest.raises(GgufError) as caught:
        read_mlx_vocabulary(folder)
    assert caught.value.problem is Problem.NO_VOCABULARY
    assert cached_mlx_fingerprint(folder) is None


def test_the_caches_notice_changed_files(tmp_path: Path) -> None:
    folder = mlx_folder(tmp_path / "m", {"a": 0})
    first, name = cached_mlx_vocabulary(folder), cached_mlx_fingerprint(folder)
    assert cached_mlx_vocabulary(folder) is first
    assert name is not None
    mlx_folder(folder, {"b": 0})
    os.utime(folder / "tokenizer.json", ns=(1, 1))
    assert cached_mlx_vocabulary(folder).tokens == (b"b",)
    assert cached_mlx_fingerprint(folder) != name


def test_the_same_tokenizer_is_the_same_elsewhere(tmp_path: Path) -> None:
    folders = [mlx_folder(tmp_path / name, {"a": 0}) for name in ("one", "two")]
    assert len({cached_mlx_fingerprint(folder) for folder in folders}) == 1
    one, two = (read_mlx_vocabulary(folder) for folder in folders)
    assert replace(one, types=two.types) == two
    assert one.types.tolist() == two.types.tolist()
