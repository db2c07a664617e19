from __future__ import annotations

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, QuantizedKVCache, RotatingKVCache

from forespeak.engines.mlx.caches import is_trimmable, trim, window


def fill(*caches: KVCache | RotatingKVCache | QuantizedKVCache, count: int) -> None:
    for cache in caches:
        for _ in range(count):
            cache.update_and_fetch(mx.zeros((1, 1, 1, 64)), mx.zeros((1, 1, 1, 64)))


def test_what_can_give_tokens_back() -> None:
    assert is_trimmable([KVCache(), QuantizedKVCache(), RotatingKVCache(8), CacheList(KVCache(), RotatingKVCache(8))])
    assert not is_trimmable([KVCache(), ArraysCache(2)])
    assert not is_trimmable([CacheList(KVCache(), ArraysCache(2))])


def test_the_shortest_ring_counts() -> None:
    assert window([KVCache(), QuantizedKVCache()]) is None
    assert window([KVCache(), RotatingKVCache(8), CacheList(RotatingKVCache(5), KVCache())]) == 5


def test_trimming_is_all_or_told() -> None:
    whole, quantised, ring = KVCache(), QuantizedKVCache(), RotatingKVCache(8)
    fill(whole, quantised, ring, count=7)
    assert trim([whole, quantised, CacheList(ring)], 3)
    assert [cache.offset for cache in (whole, quantised, ring)] == [4, 4, 4]
    assert not trim([whole, quantised, ring], 5), "more than is there"
    fill(ring, count=9)
    assert not trim([ring], 1), "a ring that has gone round"
    assert not trim([KVCache(), ArraysCache(1)], 1)
