"""What one model takes: weights, cache, buffers; how much of it on a GPU. In bytes, by llama.cpp's own sums."""

from __future__ import annotations

from dataclasses import dataclass

from forespeak.models.model_layout import LayerLayout, ModelLayout
from forespeak.models.quantisation import TENSOR_TYPES

_CELLS = 256
"""Contexts are made of so many positions at a time."""
_BYTES_PER_TOKEN = 430
"""What llama.cpp's vocabulary and ours keep for each token: measured, with merges."""
_STATE_BYTES = 4
_MLX_BYTES_PER_TOKEN = 700
"""What the Hugging Face tokenizer and our table keep for each token: measured, with merges."""
_MLX_FREED = 50_000_000
"""What MLX keeps of buffers that it has freed, between two times that they are given back: measured."""

CACHE_TYPES = {kind.name: kind for kind in TENSOR_TYPES.values()}


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """How a model's context is made. `outputs`: rows of scores kept at once. `windows`: a sliding window's cache
    holds no more than its window; without, it holds the whole context, so that a draft can be taken back anywhere.
    """

    length: int
    cache_type: str = "F16"
    flash_attention: bool = False
    batch: int = 128
    outputs: int = 49
    windows: bool = False

    @property
    def cells(self) -> int:
        return -(-max(1, self.length) // _CELLS) * _CELLS


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """One model's parts. `host_` is main memory, where `gpu_` may be, too. Bytes."""

    host_weights: int
    gpu_weights: int
    host_cache: int
    gpu_cache: int
    host_buffers: int
    gpu_buffers: int

    @property
    def host(self) -> int:
        return self.host_weights + self.host_cache + self.host_buffers

    @property
    def gpu(self) -> int:
        return self.gpu_weights + self.gpu_cache + self.gpu_buffers


def memory_of(layout: ModelLayout, settings: ContextSettings, gpu_layers: int) -> ModelMemory:
    """What a model takes with its last `gpu_layers` layers on a GPU; -1: all, and the output with them."""
    if layout.is_mlx:
        return _mlx_memory(layout, settings, on_gpu=gpu_layers != 0)
    count = len(layout.layers)
    on_gpu = count + 1 if gpu_layers < 0 else min(gpu_layers, count + 1)
    # llama.cpp counts the output as one more layer behind the last.
    first = count + 1 - on_gpu
    caches = cache_bytes(layout, settings)
    output = layout.output_bytes + (layout.input_bytes if layout.tied else 0)
    gpu_weights = sum(layer.weight_bytes for layer in layout.layers[first:]) + (output if on_gpu else 0)
    host_weights = layout.weight_bytes - gpu_weights + (layout.input_bytes if layout.tied and on_gpu else 0)
    compute = compute_bytes(layout, settings)
    rows = 4 * layout.vocabulary * settings.outputs
    kept = rows + _BYTES_PER_TOKEN * layout.vocabulary
    # What is not on the GPU needs buffers beside the processor; the batch's input is put together there at any rate.
    beside = compute + work_bytes(layout, settings) if on_gpu <= count else _input_bytes(layout, settings)
    return ModelMemory(
        host_weights=host_weights,
        gpu_weights=gpu_weights,
        host_cache=sum(caches[:first]),
        gpu_cache=sum(caches[first:]),
        host_buffers=kept + beside,
        gpu_buffers=compute if on_gpu else 0,
    )


def _mlx_memory(layout: ModelLayout, settings: ContextSettings, *, on_gpu: bool) -> ModelMemory:
    """What MLX takes: all on one device; the text in the network's own numbers, or quantised in groups of 64."""
    assert layout.value_bytes is not None
    quantised = CACHE_TYPES[settings.cache_type] if settings.cache_type in {"Q8_0", "Q4_0"} else None
    cache = 0
    for layer in layout.layers:
        cells = min(settings.cells, -(-layer.window // _CELLS) * _CELLS) if layer.window else settings.cells
        values = cells * (layer.key_width + layer.value_width)
        # A ring cannot be quantised. A scale and an offset of two bytes for 64 values are as much as ggml's for 32.
        if quantised is not None and layer.window is None:
            cache += values * quantised.block_bytes // quantised.block_values
        else:
            cache += values * layout.value_bytes
    tokens = min(settings.batch, settings.cells)
    by_token = layout.value_bytes * (3 * layout.feed_forward + 4 * layout.embedding + 2 * layout.query_width)
    # Processors have no fused attention: the scores of a batch with all that was read, before and after the softmax.
    scores = 0 if on_gpu else 2 * layout.value_bytes * settings.cells * layout.heads
    rows = (4 + layout.value_bytes) * layout.vocabulary * settings.outputs
    buffers = max(tokens * (by_token + scores), rows) + _MLX_FREED
    kept = 4 * layout.vocabulary * settings.outputs + _MLX_BYTES_PER_TOKEN * layout.vocabulary
    return ModelMemory(
        host_weights=0 if on_gpu else layout.weight_bytes,
        gpu_weights=layout.weight_bytes if on_gpu else 0,
        host_cache=0 if on_gpu else cache,
        gpu_cache=cache if on_gpu else 0,
        host_buffers=kept + (0 if on_gpu else buffers),
        gpu_buffers=buffers if on_gpu else 0,
    )


def cache_bytes(layout: ModelLayout, settings: ContextSettings) -> list[int]:
    """Each layer's share of the cache: keys and values of the context, or a recurrent state."""
    # Without flash attention the values lie transposed, and all layers' are as wide as the widest.
    widest = 0 if settings.flash_attention else max((layer.value_width for layer in layout.layers), default=0)
    return [_layer_cache(layer, settings, widest) for layer in layout.layers]


def _layer_cache(layer: LayerLayout, settings: ContextSettings, widest: int) -> int:
    cells = settings.cells
    if layer.window is not None and settings.windows:
        cells = min(cells, -(-(layer.window + settings.batch) // _CELLS) * _CELLS)
    kind = CACHE_TYPES[settings.cache_type]
    value_width = max(layer.value_width, widest) if layer.value_width else 0
    values = layer.key_width + value_width + layer.index_width
    return cells * -(-values * kind.block_bytes // kind.block_values) + _STATE_BYTES * layer.state_values


def compute_bytes(layout: ModelLayout, settings: ContextSettings) -> int:
    """The buffer in which a batch is computed: the largest of attention, feed-forward and output.

    llama.cpp reserves it for a full batch behind a full context (`llama_context::sched_reserve`). What is alive at
    the peak was read from its graphs and checked against what it reserves.
    """
    tokens = min(settings.batch, settings.cells)
    mask = (2 if settings.flash_attention else 4) * settings.cells if layout.attends else 0
    widest_value = max((layer.value_width for layer in layout.layers), default=0)
    scores = 0 if settings.flash_attention else 4 * settings.cells * layout.heads
    beside = 4 * (3 * layout.embedding + 2 * layout.query_width) + 8 * widest_value
    attention = scores + beside if layout.attends else 0
    experts = 2 * layout.experts_used * layout.embedding + 5 * layout.embedding if layout.experts_used else 0
    feed_forward = 4 * max(3 * layout.feed_forward + 4 * layout.embedding, experts)
    recurrent = 4 * (5 * layout.inner_width + 4 * layout.embedding)
    by_token = max(attention, feed_forward, recurrent if any(layer.state_values for layer in layout.layers) else 0)
    output = 4 * settings.outputs * (layout.vocabulary + layout.embedding) + 4 * tokens * layout.embedding
    return max(tokens * (mask + by_token) + _turned_values(layout, settings), output)


def _turned_values(layout: ModelLayout, settings: ContextSettings) -> int:
    """Latent attention has its values in its keys, which lie the wrong way round without flash attention."""
    if settings.flash_attention or any(layer.value_width for layer in layout.layers):
        return 0
    kind = CACHE_TYPES[settings.cache_type]
    widest = max((layer.key_width for layer in layout.layers), default=0)
    return settings.cells * widest * kind.block_bytes // kind.block_values


def work_bytes(layout: ModelLayout, settings: ContextSettings) -> int:
    """Beside the compute buffer, what a processor needs to multiply a batch's attention with an F16 cache."""
    if settings.flash_attention or settings.cache_type == "F32" or not layout.attends:
        return 0
    return 2 * settings.cells * min(settings.batch, settings.cells) * layout.heads


def _input_bytes(layout: ModelLayout, settings: ContextSettings) -> int:
    tokens = min(settings.batch, settings.cells)
    return tokens * (4 * layout.embedding + (4 * settings.cells if layout.attends else 0))
