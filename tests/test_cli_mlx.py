"""The command line with a folder in the MLX format as its target."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from forespeak import cli
from models.mlx_writer import mlx_folder
from tiny_llama import vocabulary, write_llama


def test_without_mlx_lm_it_says_what_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "forespeak.engines.mlx.engine", None)
    folder = mlx_folder(tmp_path / "mlx", {"a": 0, "b": 1})
    assert cli.run(["chat", "--target", str(folder), "--draft", "none", "-p", "hello"]) != 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "needs mlx-lm" in said.err
    assert "choose a GGUF file" in said.err


@pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed (extra: mlx)")
def test_a_folder_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mlx_folders import convert

    folder = str(convert(write_llama(vocabulary(), tmp_path / "tiny.gguf"), tmp_path / "tiny"))
    arguments = ["chat", "--target", folder, "--draft", folder, "--draft-tokens", "4", "--json", "--max-tokens", "12"]
    assert cli.run([*arguments, "-p", "the thing"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["stats"]["generated_tokens"] == 12
    assert reply["stats"]["accepted_draft_tokens_count"] > 0
