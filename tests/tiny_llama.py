"""Real models that llama.cpp loads and runs, a hundred kilobytes small: random weights, any vocabulary."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.gguf_writer import CONTROL, NORMAL, ModelFile, text, value

WIDTH, HEADS, LAYERS = 32, 2, 1
_ALPHABET = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTES = [chr(byte) for byte in _ALPHABET] + [chr(0x100 + index) for index in range(256 - len(_ALPHABET))]
"""The tokens of single bytes, without which a byte-level tokenizer cannot write every text."""
PAIRS = ["t h", "h e", "i n", "e r", "o n", "a n", "r e", "th e"]


def vocabulary(*, model: str = "gpt2") -> ModelFile:
    """Single bytes, a few merged pairs and the markers of ChatML; what a test needs is changed in it."""
    tokens: list[str | bytes] = [*BYTES, *(pair.replace(" ", "") for pair in PAIRS), "<|im_start|>", "<|im_end|>"]
    kinds = [NORMAL] * (len(tokens) - 2) + [CONTROL, CONTROL]
    settings = {"bos_token_id": len(tokens) - 2, "eos_token_id": len(tokens) - 1}
    return ModelFile(tokens, kinds, merges=list(PAIRS), model=model, pre="gpt-2", settings=settings)


def write_llama(file: ModelFile, path: Path, *, seed: int = 0, noise: float = 0.0) -> Path:
    """A llama of one layer with the file's vocabulary. Equal seeds give equal weights, token by token.

    `noise` moves them: a draft with some makes other choices now and then.
    """
    weights = dict(_weights(len(file.tokens), seed, noise))
    entries: dict[str, Any] = {
        "general.architecture": "llama",
        "general.name": path.stem,
        "general.file_type": 0,
        "llama.context_length": 2048,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": WIDTH,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": WIDTH // HEADS,
        "tokenizer.ggml.model": file.model,
        "tokenizer.ggml.pre": file.pre,
        "tokenizer.ggml.tokens": file.tokens,
        "tokenizer.ggml.token_type": file.types or [NORMAL] * len(file.tokens),
        "tokenizer.ggml.merges": file.merges,
        **{f"tokenizer.ggml.{key}": item for key, item in file.settings.items()},
        **file.entries,
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(entries))
    head += b"".join(text(key) + value(item) for key, item in entries.items())
    body = b""
    for name, array in weights.items():
        shape = array.shape[::-1]
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, len(body))
        body += array.tobytes() + bytes(-array.nbytes % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + body)
    return path


def _weights(tokens: int, seed: int, noise: float) -> dict[str, NDArray[np.float32]]:
    shapes: dict[str, tuple[int, ...]] = {"output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{name}_norm.weight": (WIDTH,) for name in ("attn", "ffn")}
        names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        shapes |= {f"blk.{layer}.{name}.weight": (WIDTH, WIDTH) for name in names}
    rng, other = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    found = {}
    for name, shape in shapes.items():
        array = rng.normal(size=shape) + noise * other.normal(size=shape)
        found[name] = np.ones(shape) if "norm" in name else array / WIDTH**0.5
    for table, shift in (("token_embd", 10), ("output", 20)):
        # One row after the other, so that a token has the same row however many there are.
        rows, moved = np.random.default_rng(seed + shift), np.random.default_rng(seed + shift + 1)
        found[f"{table}.weight"] = np.stack(
            [rows.normal(size=WIDTH) + noise * moved.normal(size=WIDTH) for _ in range(tokens)]
        )
    return {name: array.astype(np.float32) for name, array in found.items()}
