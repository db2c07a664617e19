from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

from mlx_lm.utils import load_tokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from forespeak.engines.mlx.vocabulary import MlxVocabulary
from forespeak.errors import UserFacingError
from tiny_llama import vocabulary

SIZE = len(vocabulary().tokens)


def loaded(folder: Path, size: int = SIZE) -> MlxVocabulary:
    return MlxVocabulary(load_tokenizer(folder), size)


def written(tokenizer: Tokenizer, folder: Path, **settings: Any) -> Path:
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("text", ["naïve café 京都 🎂", "\n\tdef f(x):\n", " a  b ", "the then 1234"])
def test_pieces_add_up_to_the_text(tiny: Path, text: str) -> None:
    tokens = loaded(tiny)
    assert b"".join(map(tokens.piece, tokens.tokenize(text))).decode() == text


@pytest.mark.parametrize("names", [{}, {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}], ids=["none", "bos"])
def test_prompts_are_neither_cut_nor_filled_up(tiny: Path, tmp_path: Path, names: dict[str, str]) -> None:
    tokenizer = Tokenizer.from_file(str(tiny / "tokenizer.json"))
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=12)
    tokens = loaded(written(tokenizer, tmp_path / "trained", **names))
    assert len(tokens.tokenize("x" * 20)) == 20
    assert len(tokens.tokenize("x")) == 1


def test_control_tokens_end_a_reply_and_add_no_text(tiny: Path) -> None:
    tokens = loaded(tiny)
    start, letter, end = tokens.tokenize("<|im_start|>x<|im_end|>")
    assert (tokens.bos, tokens.eos) == (start, end)
    assert [tokens.piece(token) for token in (start, letter, end)] == [b"", b"x", b""]
    assert [tokens.ends_generation(token) for token in (start, letter, end)] == [False, False, True]
    assert (tokens.text(end), tokens.text(-1)) == ("<|im_end|>", "")
    assert not tokens.adds_bos


def test_rows_may_be_longer_than_the_tokenizer(tiny: Path) -> None:
    tokens = loaded(tiny, SIZE + 6)
    assert (tokens.size, tokens.piece(SIZE + 5), tokens.text(SIZE + 5)) == (SIZE + 6, b"", "")


def test_a_token_without_weights_is_a_clear_error(tiny: Path) -> None:
    """MLX would read behind its matrix."""
    tokens = loaded(tiny, SIZE - 1)
    assert tokens.tokenize("the")
    with pytest.raises(UserFacingError, match="cannot read this text"):
        tokens.tokenize("the<|im_end|>")


def test_pieces_of_a_sentencepiece_tokenizer(tmp_path: Path) -> None:
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a"]
    tokenizer = Tokenizer(models.BPE({n: i for i, n in enumerate(names)}, [("▁", "a")], byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names[:3]])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    tokens = loaded(written(tokenizer, tmp_path / "llama", bos_token="<s>", eos_token="</s>"), len(names) + 1)
    ids = tokens.tokenize(" a京<think></s>")
    assert [tokens.piece(token) for token in ids] == [
        b" a",
        *(bytes([byte]) for byte in "京".encode()),
        b"<think>",
        b"",
    ]
    assert tokens.ends_generation(ids[-1])


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    with pytest.raises(UserFacingError, match="of a kind that this app does not know"):
        loaded(written(tokenizer, tmp_path / "words"), 2)
