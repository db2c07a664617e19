"""Models of all kinds on disk, for tests of the library."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forespeak.models.library import Library, LibraryItem
from forespeak.models.roots import Root
from models.gguf_writer import ModelFile

WEIGHTS = (("token_embd.weight", (8, 4)), ("output_norm.weight", (8,)))


def write_model(path: Path, tokens: Sequence[str] = ("a", "b"), **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return ModelFile(list(tokens), **changes).write(path)


def write_set(folder: Path, stem: str, count: int, leave_out: Sequence[int] = ()) -> list[Path]:
    """A split model: the first part holds what there is to know, each part has a tensor of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number in range(1, count + 1):
        path = folder / f"{stem}-{number:05d}-of-{count:05d}.gguf"
        if number in leave_out:
            continue
        file = ModelFile(
            ["a", "b"],
            entries={"split.no": number - 1, "split.count": count},
            tensors=((f"blk.{number}.weight", (8, number)),),
        )
        written.append(file.write(path))
    return written


def safetensors(tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str] | None = None) -> bytes:
    """A whole file of zeros: (dtype, shape) by name."""
    sizes = {"U32": 4, "F32": 4, "F16": 2, "BF16": 2}
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = sizes[dtype]
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


MLX_CONFIG = {
    "model_type": "qwen2",
    "max_position_embeddings": 32768,
    "vocab_size": 3,
    "quantization": {"bits": 4, "group_size": 64},
}
MLX_TENSORS = {
    "model.layers.0.mlp.up_proj.weight": ("U32", (16, 8)),
    "model.layers.0.mlp.up_proj.scales": ("F16", (16, 1)),
    "model.layers.0.mlp.up_proj.biases": ("F16", (16, 1)),
    "model.norm.weight": ("F16", (64,)),
}
MLX_PARAMETERS = 16 * 8 * 8 + 64


def write_mlx(folder: Path, config: Mapping[str, Any] | None = None, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
    (folder / "config.json").write_text(json.dumps(MLX_CONFIG if config is None else config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ x }}"}), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(MLX_TENSORS, {"format": "mlx"}))
    for name, content in files.items():
        (folder / name.replace("_at_", ".")).write_bytes(content)
    return folder


def write_cached(
    cache: Path, repo: str, commit: str, name: str, blob: str, content: bytes | None = None, *, links: bool = True
) -> Path:
    """A file in a Hugging Face cache: a link to its blob, or without links the file itself."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    path = folder / "snapshots" / commit / name
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = folder / "blobs" / blob
    whole.parent.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (whole if links else path).write_bytes(content)
    if links:
        path.symlink_to(os.path.relpath(whole, path.parent))
    return path


def library(tmp_path: Path, *roots: Root) -> Library:
    return Library(tmp_path / "models", roots, tmp_path / "cache")


def only(items: Sequence[LibraryItem]) -> LibraryItem:
    assert len(items) == 1, [item.path for item in items]
    return items[0]
