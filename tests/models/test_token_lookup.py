"""Tokens by their text, and texts by their token, from a model's file."""

from __future__ import annotations

from pathlib import Path

from forespeak.models.token_lookup import text_of_token, tokens_written
from models.gguf_writer import ModelFile


def test_tokens_are_found_by_all_of_their_text(tmp_path: Path) -> None:
    path = ModelFile(["a", "Ġtea", "tea", "Ċ", "Ã©", "<|end|>"]).write(tmp_path / "model.gguf")
    assert tokens_written(path, " tea") == (1,)
    assert tokens_written(path, "tea") == (2,)
    assert tokens_written(path, "\n") == (3,)
    assert tokens_written(path, "é") == (4,)
    assert tokens_written(path, "<|end|>") == (5,)
    assert tokens_written(path, "te") == tokens_written(path, "") == ()
    assert text_of_token(path, 1) == " tea"
    assert text_of_token(path, 6) is None
    assert text_of_token(path, -1) is None
