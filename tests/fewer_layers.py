"""A real model with some of its layers left out: what it says makes no sense, and it says it in a third of the time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from forespeak.models.gguf import read_header
from forespeak.models.quantisation import TENSOR_TYPES
from models.gguf_writer import text

FEW = (*range(4), *range(26, 30))
"""Of the starter's thirty: the first ones read the text and the last ones turn to words. Without either, texts end
alike."""


def with_layers(source: Path, layers: Sequence[int], destination: Path) -> Path:
    """Write the llama in `source` with only these of its layers."""
    header, content = read_header(source), source.read_bytes()
    kinds = {kind.name: number for number, kind in TENSOR_TYPES.items()}
    places = {str(layer): str(place) for place, layer in enumerate(layers)}
    first = header.tensors[0]
    entries = bytearray(content[24 : content.index(text(first.name) + struct.pack("<I", len(first.shape)))])
    struct.pack_into(
        "<I", entries, entries.index(text("llama.block_count")) + len(text("llama.block_count")) + 4, len(layers)
    )
    described, bodies, offset = [], [], 0
    for tensor in header.tensors:
        words = tensor.name.split(".")
        if words[0] == "blk":
            if words[1] not in places:
                continue
            words[1] = places[words[1]]
        shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        described.append(text(".".join(words)) + shape + struct.pack("<IQ", kinds[tensor.type], offset))
        start = header.data_offset + tensor.offset
        bodies.append(content[start : start + tensor.size_bytes] + bytes(-tensor.size_bytes % 32))
        offset += len(bodies[-1])
    head = b"GGUF" + struct.pack("<I", 3) + struct.pack("<Q", len(described)) + content[16:24]
    head += bytes(entries) + b"".join(described)
    destination.write_bytes(head + bytes(-len(head) % 32) + b"".join(bodies))
    return destination
