from __future__ import annotations

import sys

import psutil
import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

import mlx.core as mx

from forespeak.engines.mlx.runtime import give_memory_back

MB = 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="glibc keeps what is freed; others do not")
def test_what_was_freed_goes_back_to_the_system() -> None:
    """Matrices as small as a model's layers have, which come out of glibc's heap."""
    process = psutil.Process()
    # Once a large block was freed, glibc takes blocks up to its size from the heap.
    large = mx.ones((6_000_000,))
    mx.eval(large)
    del large
    give_memory_back()
    before = process.memory_info().rss
    arrays = [mx.full((700, 700), place) for place in range(100)]
    mx.eval(arrays)
    # What lies between them cannot shrink the heap from its end.
    kept = arrays[::20]
    assert process.memory_info().rss > before + 150 * MB
    del arrays
    give_memory_back()
    assert process.memory_info().rss < before + 40 * MB
    assert len(kept) == 5
