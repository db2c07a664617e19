"""Writes small GGUF files for tests: any entries, tensors without meaning."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True)
class Raw:
    """A value with its type written out: `kind` as in the format, `data` its bytes."""

    kind: int
    data: bytes


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def _scalar(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return (5, struct.pack("<i", value)) if value < 0 else (4, struct.pack("<I", value))
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    return 8, text(value)


def value(item: Any) -> bytes:
    if isinstance(item, Raw):
        return struct.pack("<I", item.kind) + item.data
    if isinstance(item, list | tuple):
        if item and all(isinstance(element, int) and not isinstance(element, bool) for element in item):
            return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack(f"<{len(item)}i", *item)
        parts = [_scalar(element) for element in item]
        kind = parts[0][0] if parts else 8
        return struct.pack("<IIQ", 9, kind, len(item)) + b"".join(data for _, data in parts)
    kind, data = _scalar(item)
    return struct.pack("<I", kind) + data


def gguf(entries: Mapping[str, Any], tensors: Sequence[tuple[str, tuple[int, ...]]] = (), *, version: int = 3) -> bytes:
    """A whole file; every tensor is F32 and full of zeros."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries))
    head += b"".join(text(key) + value(item) for key, item in entries.items())
    offset = 0
    body = b""
    for name, shape in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, offset)
        size = 4
        for length in shape:
            size *= length
        body += bytes(-(-size // 32) * 32)
        offset = len(body)
    return head + bytes(-len(head) % 32) + body if tensors else head


@dataclass
class ModelFile:
    """A tiny model with a byte-level BPE vocabulary. Change what a test needs, then `write`."""

    tokens: list[str | bytes]
    types: list[int] | None = None
    merges: list[str] = field(default_factory=lambda: ["a b", "ab c"])
    model: str = "gpt2"
    pre: str = "qwen2"
    settings: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Any] = field(default_factory=dict)
    architecture: str = "qwen2"
    tensors: tuple[tuple[str, tuple[int, ...]], ...] = (("token_embd.weight", (8, 4)), ("output_norm.weight", (8,)))

    def write(self, path: Path) -> Path:
        entries: dict[str, Any] = {
            "general.architecture": self.architecture,
            "general.name": path.stem,
            f"{self.architecture}.context_length": 4096,
            "tokenizer.ggml.model": self.model,
            "tokenizer.ggml.pre": self.pre,
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": self.types or [NORMAL] * len(self.tokens),
            "tokenizer.ggml.merges": self.merges,
            **{f"tokenizer.ggml.{key}": item for key, item in self.settings.items()},
            **self.entries,
        }
        path.write_bytes(gguf(entries, self.tensors))
        return path
