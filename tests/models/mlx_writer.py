"""Writes the tokenizer's part of a model folder in the MLX format for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def mlx_folder(
    folder: Path,
    words: Mapping[str, int],
    *,
    added: Sequence[tuple[int, str, bool]] = (),
    merges: Sequence[Any] = (),
    config: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Path:
    """A folder with a byte-level BPE tokenizer. `added` are (id, text, special); `changes` go into tokenizer.json."""
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [{"id": token, "content": text, "special": special} for token, text, special in added],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "post_processor": None,
        "model": {"type": "BPE", "vocab": dict(words), "merges": list(merges)},
        **(changes or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", **(config or {})}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(settings or {})), encoding="utf-8")
    return folder
