"""mlx-lm's caches: what can be taken back from them, and taking it back so that it is known to have worked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from forespeak.engines.engine import CacheType
from forespeak.engines.mlx.runtime import KVCache, make_prompt_cache, mx, nn

_GROUPS = (64, 32)
"""So many values share a scale in a quantised cache: as many as divide the length of a head."""

NO_ROLLBACK = (
    "This target keeps what it has read in a state from which nothing can be taken back, so drafts cannot be tested."
)


def new_cache(network: nn.Module, bits: int | None = None) -> list[Any]:
    """An empty cache. With `bits`, those parts are quantised that can be cut while they are: whole attention."""
    cache: list[Any] = make_prompt_cache(network)
    if bits is None:
        return cache
    group = _group_size(network)
    return [part.to_quantized(group, bits) if group and type(part) is KVCache else part for part in cache]


def _group_size(network: nn.Module) -> int | None:
    """How many values may share a scale, by the heads that the network has; None if no cache of it can be quantised."""
    cache = make_prompt_cache(network)
    network(mx.array([[0]]), cache=cache)
    shapes = [array.shape[-1] for part in cache if type(part) is KVCache for array in (part.keys, part.values)]
    return next((group for group in _GROUPS if shapes and all(length % group == 0 for length in shapes)), None)


def cache_type(cache: Sequence[Any]) -> CacheType:
    """In which numbers a cache that is not empty keeps the text; F16 also where it keeps nothing but a state."""
    names = {mx.float32: CacheType.F32, mx.bfloat16: CacheType.BF16}
    for leaf in leaves(cache):
        bits = getattr(leaf, "bits", None)
        if bits is not None:
            return CacheType.Q8_0 if bits == 8 else CacheType.Q4_0
        keys = getattr(leaf, "keys", None)
        if keys is not None:
            return names.get(keys.dtype, CacheType.F16)
    return CacheType.F16


def leaves(cache: Sequence[Any]) -> Iterator[Any]:
    """The caches that a cache consists of: some layers have several."""
    for part in cache:
        children = getattr(part, "caches", None)
        if children is None:
            yield part
        else:
            yield from leaves(children)


def is_trimmable(empty_cache: Sequence[Any]) -> bool:
    """Whether tokens can be taken back at all. States (recurrent layers, convolutions) never give any back."""
    return all(leaf.is_trimmable() for leaf in leaves(empty_cache))


def window(empty_cache: Sequence[Any]) -> int | None:
    """The length of the shortest ring of a cache, which at that length begins to write over its oldest tokens."""
    return min((leaf.max_size for leaf in leaves(empty_cache) if getattr(leaf, "max_size", None)), default=None)


def trim(cache: Sequence[Any], count: int) -> bool:
    """Take the newest `count` tokens back. False if that failed, and then the cache holds nothing reliable."""
    parts = list(leaves(cache))
    # mlx-lm's own function returns 0 for a ring that has gone round, and does not look at what others gave back.
    return all(part.is_trimmable() for part in parts) and all(part.trim(count) == count for part in parts)


def snapshot(cache: Sequence[Any]) -> list[tuple[Any, dict[str, Any]]]:
    """What a cache holds, to be given back to it before anything that was put together since is evaluated.

    No bytes are copied: networks write into arrays by changing what a Python object refers to. An evaluation takes
    over the bytes of what nobody else refers to, so drop this before.
    """
    return [(leaf, {name: _held(value) for name, value in vars(leaf).items()}) for leaf in leaves(cache)]


def restore(kept: Sequence[tuple[Any, dict[str, Any]]]) -> None:
    for leaf, values in kept:
        vars(leaf).clear()
        vars(leaf).update(values)


def _held(value: Any) -> Any:  # noqa: ANN401 -- whatever a cache of mlx-lm keeps
    if isinstance(value, mx.array):
        return mx.array(value)
    return type(value)(map(_held, value)) if type(value) in {list, tuple} else value


def window_words(length: int) -> str:
    return (
        f"Some layers of this target hold the last {length:,} tokens only. From there on nothing can be taken back "
        "from them, so drafts cannot be tested."
    )
