"""What of a model's header decides the memory it takes: weights by layer, and what each layer keeps of the text.

The rules are those of llama.cpp: `llama_model_base::load_hparams`, `llama_model::create_memory`, `llama-hparams.cpp`
and the `load_arch_hparams` of the architectures named here. One that is not named is read as ordinary attention.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forespeak.models.gguf import GgufHeader, LazyArray, read_header
from forespeak.models.shards import shard_paths

_RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
_HYBRID_BY_HEADS = frozenset(
    {
        *("jamba", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe"),
        *("kimi-linear", "kimi-k3", "bailingmoe3"),
    }
)
"""Hybrids whose recurrent layers are those without KV heads."""
_HYBRID_BY_INTERVAL = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4, "qwen4exp": 4, "minimax-01": 8}
"""Hybrids in which every so many layers one attends, if the file does not list its recurrent layers."""
_BOTH_IN_ONE = frozenset({"falcon-h1"})
_WITHOUT_CACHE = frozenset({"dream", "llada", "llada-moe", "rnd1"})
_WITHOUT_FEED_FORWARD = frozenset({"nemotron_h", "nemotron_h_moe"})
"""Their feed-forward layers are layers of their own, and keep nothing."""

_WINDOWS: dict[str, tuple[int, bool]] = {
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "cohere2": (4, False),
    "cohere2moe": (4, True),
    "llama4": (4, False),
    "gpt-oss": (2, False),
    "olmo2": (4, False),
    "exaone4": (4, False),
    "exaone-moe": (4, False),
    "smallthinker": (4, True),
    "plamo3": (8, False),
    "mellum": (4, False),
    "afmoe": (4, False),
    "laguna": (4, True),
    "muse-glimmer": (4, False),
}
"""Of so many layers one attends to everything, the last or the first of them; the others to a sliding window."""
_WINDOW_WITHOUT_ENTRY = {"gemma2": 4096, "llama4": 8192, "exaone-moe": 128}
_WINDOW_NOT_USED = frozenset({"phi3"})

MOST_LAYERS = 512
"""A file may claim any number; llama.cpp takes no more (src/llama-hparams.h, `LLAMA_MAX_LAYERS`)."""

_LAYER = re.compile(r"blk\.(\d{1,9})\.")


@dataclass(frozen=True, slots=True)
class LayerLayout:
    """One layer. Widths are values per position in the cache, 0 for none; `window` None: it attends to everything.

    `state_values`: numbers of a recurrent state, which does not grow with the text.
    """

    weight_bytes: int
    key_width: int = 0
    value_width: int = 0
    index_width: int = 0
    window: int | None = None
    state_values: int = 0


@dataclass(frozen=True, slots=True)
class ModelLayout:
    """What memory depends on. `input_bytes` is looked up and stays in the processor's memory; `output_bytes` are what
    turns a layer's result into scores. `tied`: the output uses the input's table, which a GPU then holds once more.

    `query_width`: values of a token's queries, all heads together. `experts_used` 0: not a mixture of experts.
    `inner_width`: of a state space model, else 0. `size_bytes`: all files of the model. `value_bytes`: of a model in
    the MLX format, what a value takes that its network computes.
    """

    name: str
    architecture: str
    size_bytes: int
    layers: tuple[LayerLayout, ...]
    input_bytes: int
    output_bytes: int
    tied: bool
    embedding: int
    feed_forward: int
    heads: int
    vocabulary: int
    trained_context: int
    query_width: int = 0
    experts_used: int = 0
    inner_width: int = 0
    value_bytes: int | None = None

    @property
    def is_mlx(self) -> bool:
        return self.value_bytes is not None

    @property
    def weight_bytes(self) -> int:
        return self.input_bytes + self.output_bytes + sum(layer.weight_bytes for layer in self.layers)

    @property
    def attends(self) -> bool:
        return any(layer.key_width for layer in self.layers)


def layout_of_file(path: Path) -> ModelLayout:
    """The layout of a model on disk, all its shards or its folder together. Raises GgufError."""
    if path.is_dir():
        # It is made of what stands here.
        from forespeak.models.mlx_layout import layout_of_folder

        return layout_of_folder(path)
    return layout_of([read_header(part) for part in shard_paths(path)])


def layout_of(headers: Sequence[GgufHeader]) -> ModelLayout:
    """The layout of a model by the headers of its files, the first one first."""
    facts = _Facts(headers[0])
    count = facts.layers()
    weights = [0] * count
    outside: dict[str, int] = {}
    for header in headers:
        for tensor in header.tensors:
            match = _LAYER.match(tensor.name)
            if match is not None and int(match[1]) < count:
                weights[int(match[1])] += tensor.size_bytes
            else:
                outside[tensor.name] = tensor.size_bytes
    inputs = sum(size for name, size in outside.items() if name.startswith(("token_embd", "per_layer_token_embd")))
    heads = max(facts.per_layer("attention.head_count", count, 0), default=0)
    embedding = facts.number("embedding_length")
    return ModelLayout(
        name=facts.header.name,
        architecture=facts.architecture,
        size_bytes=sum(header.size_bytes for header in headers),
        layers=_layers(facts, weights),
        input_bytes=inputs,
        output_bytes=sum(outside.values()) - inputs,
        tied="output.weight" not in outside,
        embedding=embedding,
        feed_forward=_feed_forward(facts),
        heads=heads,
        query_width=heads * facts.number("attention.key_length", embedding // heads if heads else 0),
        vocabulary=_vocabulary(facts),
        trained_context=facts.number("context_length"),
        experts_used=max(facts.per_layer("expert_used_count", count, 0), default=0),
        inner_width=facts.number("ssm.inner_size"),
    )


class _Facts:
    """A header's entries of its architecture, with or without an entry for each layer."""

    def __init__(self, header: GgufHeader) -> None:
        self.header = header
        self.architecture = header.architecture or ""

    def number(self, key: str, default: int = 0) -> int:
        values = self.per_layer(key, 1, default)
        return values[0] if values else default

    def layers(self) -> int:
        return min(max(1, self.number("block_count", 1)), MOST_LAYERS)

    def has(self, key: str) -> bool:
        return f"{self.architecture}.{key}" in self.header.metadata

    def per_layer(self, key: str, count: int, default: int) -> list[int]:
        """One number for each of `count` layers; what is missing or is no number is `default`."""
        value = self.header.metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, LazyArray):
            # Longer than any model has layers.
            return [default] * count
        items = list(value) if isinstance(value, tuple) else [value] * count
        # A hostile header may hold anything; nothing in it is as large as this.
        numbers = [int(item) if isinstance(item, int) and 0 <= item < 1 << 32 else default for item in items[:count]]
        return numbers + [default] * (count - len(numbers))


def _vocabulary(facts: _Facts) -> int:
    tokens = facts.header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, LazyArray):
        return tokens.count
    return len(tokens) if isinstance(tokens, tuple) else facts.number("vocab_size")


def _feed_forward(facts: _Facts) -> int:
    """The widest feed-forward, or what the experts that a token uses have together."""
    count = facts.layers()
    dense = max(facts.per_layer("feed_forward_length", count, 0), default=0)
    used = max(facts.per_layer("expert_used_count", count, 0), default=0)
    own = max(facts.per_layer("expert_feed_forward_length", count, 0), default=0) or dense
    shared = facts.number("expert_shared_feed_forward_length")
    return max(dense, used * own, shared)


def _layers(facts: _Facts, weights: list[int]) -> tuple[LayerLayout, ...]:
    count = len(weights)
    trunk = count - facts.number("nextn_predict_layers")
    # A model that is nothing but such layers has no trunk.
    trunk = trunk if trunk > 0 else count
    recurrent, state = _recurrent_layers(facts, count), _state_values(facts)
    windows = _windows(facts, trunk)
    heads = facts.per_layer("attention.head_count", count, 0)
    kv_heads = facts.per_layer("attention.head_count_kv", count, 0) if facts.has("attention.head_count_kv") else heads
    size = facts.number("embedding_length") // heads[0] if heads and heads[0] else 0
    key = facts.number("attention.key_length", size)
    value = facts.number("attention.value_length", size)
    in_window = (facts.number("attention.key_length_swa", key), facts.number("attention.value_length_swa", value))
    compressed = facts.number("attention.key_length_mla") > 0 and facts.number("attention.value_length_mla") > 0
    index = facts.number("attention.indexer.key_length")
    feed_forward = facts.per_layer("feed_forward_length", count, 0)
    keeps = _layers_with_cache(facts, count)
    layers = []
    for number in range(count):
        window = windows[number] if number < trunk else None
        attends = number < keeps and number < trunk and facts.architecture not in _WITHOUT_CACHE
        if recurrent[number] and facts.architecture not in _BOTH_IN_ONE:
            attends = False
        if facts.architecture in _WITHOUT_FEED_FORWARD and feed_forward[number]:
            attends = False
        wide_key, wide_value = (key, value) if window is None else in_window
        layers.append(
            LayerLayout(
                weight_bytes=weights[number],
                key_width=wide_key * kv_heads[number] if attends else 0,
                value_width=wide_value * kv_heads[number] if attends and not compressed else 0,
                index_width=index if attends else 0,
                window=window,
                state_values=state if recurrent[number] else 0,
            )
        )
    return tuple(layers)


def _layers_with_cache(facts: _Facts, count: int) -> int:
    """How many layers, from the first on, have a cache of their own; later ones use theirs."""
    if facts.architecture == "gemma3n":
        return 20
    if facts.architecture == "gemma4":
        return count - facts.number("attention.shared_kv_layers")
    return count


def _recurrent_layers(facts: _Facts, count: int) -> list[bool]:
    architecture = facts.architecture
    if architecture in _RECURRENT or architecture in _BOTH_IN_ONE:
        return [True] * count
    if architecture in _HYBRID_BY_HEADS:
        kv_heads = facts.per_layer("attention.head_count_kv", count, 0)
        feed_forward = facts.per_layer("feed_forward_length", count, 0)
        alone = architecture in _WITHOUT_FEED_FORWARD
        return [heads == 0 and not (alone and width) for heads, width in zip(kv_heads, feed_forward, strict=True)]
    if architecture in _HYBRID_BY_INTERVAL:
        trunk = count - facts.number("nextn_predict_layers")
        if facts.has("attention.recurrent_layers"):
            return [bool(each) for each in facts.per_layer("attention.recurrent_layers", count, 0)]
        interval = max(1, facts.number("full_attention_interval", _HYBRID_BY_INTERVAL[architecture]))
        return [number < trunk and (number + 1) % interval != 0 for number in range(count)]
    return [False] * count


def _state_values(facts: _Facts) -> int:
    """Values of one layer's recurrent state, in F32: `n_embd_r` and `n_embd_s` in llama-hparams.cpp."""
    width, heads = facts.number("embedding_length"), facts.number("attention.head_count")
    inner, state = facts.number("ssm.inner_size"), facts.number("ssm.state_size")
    kernel, groups = facts.number("ssm.conv_kernel"), facts.number("ssm.group_count")
    if head := facts.number("wkv.head_size"):
        return facts.number("token_shift_count", 2) * width + width * head
    if cells := facts.number("shortconv.l_cache"):
        return width * (cells - 1)
    if head := facts.number("kda.head_dim"):
        return 3 * (kernel - 1 if kernel else 3) * heads * head + head * head * heads
    if facts.architecture == "minimax-01":
        head = facts.number("attention.key_length", width // heads if heads else 0)
        return head * head * heads
    return max(0, kernel - 1) * (inner + 2 * groups * state) + state * inner


def _windows(facts: _Facts, count: int) -> list[int | None]:
    architecture = facts.architecture
    width = facts.number("attention.sliding_window", _WINDOW_WITHOUT_ENTRY.get(architecture, 0))
    pattern = facts.header.metadata.get(f"{architecture}.attention.sliding_window_pattern")
    known = _WINDOWS.get(architecture)
    if width == 0 or architecture in _WINDOW_NOT_USED or (known is None and not isinstance(pattern, tuple)):
        return [None] * count
    if architecture == "exaone4" and count != 64:
        return [None] * count
    width = {"llama4": 8192, "smallthinker": 4096}.get(architecture, width)
    if isinstance(pattern, tuple):
        slides = facts.per_layer("attention.sliding_window_pattern", count, 0)
        return [width if each else None for each in slides]
    assert known is not None
    every, first = facts.number("attention.sliding_window_pattern", known[0]), known[1]
    attending = 0 if first else every - 1
    return [None if every and number % every == attending else width for number in range(count)]
