"""What of an MLX folder's headers decides the memory it takes: weights by layer, and what each keeps of the text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from forespeak.models.gguf_values import damaged, unreadable
from forespeak.models.mlx_folder import WEIGHTS, Json, json_object, settings_number, tensors_of, weights_header
from forespeak.models.mlx_vocabulary import CONFIG
from forespeak.models.model_layout import MOST_LAYERS, LayerLayout, ModelLayout

_LAYER = re.compile(r"\b(?:layers|h|blocks)\.(\d{1,9})\.")
_INPUT = ("embed_tokens", "wte", "tok_embeddings", "word_embeddings", "embeddings")
_NOT_LOADED = ("vision", "audio", "multi_modal", "visual")
"""What sees and hears, which mlx-lm leaves out."""
_ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
_GEMMA = 6
"""Of so many layers of Gemma 3 one attends to everything, if the settings do not say (mlx_lm/models/gemma3_text.py)."""
_ATTENDING, _SLIDING = frozenset({"full_attention", "attention", "global"}), frozenset({"sliding_attention"})


def layout_of_folder(folder: Path) -> ModelLayout:
    """The layout of a model in a folder. Raises GgufError if it cannot be read."""
    try:
        config = json_object(folder / CONFIG)
        headers = [weights_header(path) for path in sorted(folder.glob(f"*{WEIGHTS}"))]
    except OSError as error:
        raise unreadable(folder, error) from error
    if config is None or not headers:
        raise damaged(folder, "It holds no model in the MLX format.")
    inner = config.get("text_config")
    config = config | inner if isinstance(inner, dict) else config
    weights: Counter[int | None] = Counter()
    types: Counter[str] = Counter()
    inputs = 0
    for header in headers:
        if isinstance(header, str):
            raise damaged(folder, header)
        for name, tensor in tensors_of([header]):
            if name.removeprefix("model.").startswith(_NOT_LOADED):
                continue
            begin, end = tensor["data_offsets"]
            place = _LAYER.search(name)
            weights[None if place is None else int(place[1])] += end - begin
            types[str(tensor.get("dtype"))] += 1
            if place is None and any(part in name for part in _INPUT):
                inputs += end - begin
    count = settings_number(config, "num_hidden_layers", "n_layers", "n_layer", "num_layers") or 1
    # A tensor may claim any number; what is behind the last layer is counted with the output.
    by_layer = [weights[number] for number in range(min(count, MOST_LAYERS))]
    floats = [kind for kind, _ in types.most_common() if kind in _ITEM_BYTES]
    embedding = settings_number(config, "hidden_size", "n_embd", "dim") or 0
    heads = settings_number(config, "num_attention_heads", "n_head", "n_heads") or 0
    head = settings_number(config, "head_dim") or (embedding // heads if heads else 0)
    whole = sum(weights.values())
    return ModelLayout(
        name=folder.name,
        architecture=_network(config),
        size_bytes=whole,
        layers=_layers(config, by_layer, heads, head),
        input_bytes=inputs,
        output_bytes=whole - sum(by_layer) - inputs,
        tied=False,
        embedding=embedding,
        feed_forward=_feed_forward(config),
        heads=heads,
        vocabulary=settings_number(config, "vocab_size") or 0,
        trained_context=settings_number(config, "max_position_embeddings", "max_seq_len", "n_positions") or 0,
        query_width=heads * head,
        value_bytes=_ITEM_BYTES[floats[0]] if floats else 2,
    )


def _network(config: Json) -> str:
    named = config.get("model_type")
    return named if isinstance(named, str) else ""


def _feed_forward(config: Json) -> int:
    dense = settings_number(config, "intermediate_size", "n_inner", "hidden_dim") or 0
    used = settings_number(config, "num_experts_per_tok", "num_experts_per_token", "moe_topk") or 0
    return max(dense, used * (settings_number(config, "moe_intermediate_size") or dense))


def _layers(config: Json, weights: list[int], heads: int, head: int) -> tuple[LayerLayout, ...]:
    """What attention keeps by layer. A recurrent state, of a few megabytes at most, is left out."""
    kinds = _kinds(config, len(weights))
    width = (settings_number(config, "num_key_value_heads", "n_kv_heads") or heads) * head
    key = value = width
    if (latent := settings_number(config, "kv_lora_rank")) is not None:
        key, value = latent, settings_number(config, "qk_rope_head_dim") or 0
    window = settings_number(config, "sliding_window")
    return tuple(
        LayerLayout(
            size,
            key if kind in _ATTENDING | _SLIDING else 0,
            value if kind in _ATTENDING | _SLIDING else 0,
            window=window if kind in _SLIDING else None,
        )
        for size, kind in zip(weights, kinds, strict=True)
    )


def _kinds(config: Json, count: int) -> list[str]:
    """What each layer does, by the words of the settings; one of which nothing is said attends to everything."""
    listed = config.get("layer_types")
    if isinstance(listed, list) and len(listed) >= count:
        return [kind if isinstance(kind, str) else "" for kind in listed[:count]]
    attending = config.get("full_attn_idxs")
    if isinstance(attending, list):
        numbers = {number for number in attending if isinstance(number, int)}
        return ["full_attention" if number in numbers else "conv" for number in range(count)]
    interval = settings_number(config, "full_attention_interval")
    if interval is not None:
        return ["linear_attention" if (number + 1) % interval else "full_attention" for number in range(count)]
    pattern = settings_number(config, "sliding_window_pattern")
    if pattern is None and _network(config).startswith("gemma3"):
        pattern = _GEMMA
    if pattern is None:
        return ["full_attention"] * count
    return ["sliding_attention" if (number + 1) % pattern else "full_attention" for number in range(count)]
