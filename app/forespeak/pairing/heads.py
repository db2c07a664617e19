"""Draft heads (EAGLE-3, DFlash, MTP layers in a file of their own): which target one was made for.

A head reads the target's hidden states, so it works with the one target that it was trained with. Its file says how
long those are and which layers they come from, and holds the target's vocabulary (llama.cpp, src/models/eagle3.cpp,
dflash.cpp, gemma4-assistant.cpp).
"""

from __future__ import annotations

from forespeak.models.gguf import GgufHeader, GgufKind

_HIDDEN_SIZE = {
    "eagle3": "eagle3.target_hidden_size",
    "dflash": "dflash.embedding_length",
    "gemma4-assistant": "gemma4-assistant.embedding_length_out",
}
_FAMILY = {"gemma4-assistant": "gemma4"}


def is_head(header: GgufHeader) -> bool:
    """Whether a file holds a head only: one of its own kind, or the prediction layers of a model without the rest."""
    if header.kind is GgufKind.DRAFT_HEAD:
        return True
    if header.kind is not GgufKind.MODEL or not (header.integer(f"{header.architecture}.nextn_predict_layers") or 0):
        return False
    return not any(tensor.name.startswith("blk.0.") for tensor in header.tensors)


def mismatch(head: GgufHeader, target: GgufHeader) -> str | None:
    """Why a head was made for another target, in a sentence; None if nothing in its file says so."""
    kind = head.architecture or ""
    if kind in _HIDDEN_SIZE:
        family = _FAMILY.get(kind)
        if family is not None and not (target.architecture or "").startswith(family):
            return f"It was made for a target of the kind {family}, and this one is of the kind {target.architecture}."
        wanted = head.integer(_HIDDEN_SIZE[kind])
    else:
        if kind != target.architecture:
            return f"It was made for a target of the kind {kind}, and this one is of the kind {target.architecture}."
        wanted = head.integer(f"{kind}.embedding_length")
    there = target.integer(f"{target.architecture}.embedding_length")
    if wanted is not None and there is not None and wanted != there:
        return f"It was made for a target whose hidden states have {wanted:,} numbers, and this one's have {there:,}."
    layers = head.metadata.get(f"{kind}.target_layers")
    count = target.integer(f"{target.architecture}.block_count")
    if isinstance(layers, tuple) and count is not None:
        last = max((layer for layer in layers if isinstance(layer, int)), default=0)
        if last > count:
            return f"It reads layer {last:,} of its target, and this one has {count:,}."
    return None
