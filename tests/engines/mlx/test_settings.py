"""Settings that MLX can do something with, and those that it refuses in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (extra: mlx)")

import mlx.core as mx

from engines.mlx.conftest import accept_any_pair
from forespeak.engines.engine import CacheType, Loaded, LoadRequest, LoadSettings
from forespeak.engines.mlx import runtime
from forespeak.engines.mlx.engine import MlxEngine
from forespeak.engines.mlx.settings import cache_bits, on_processor, see_that_it_can
from forespeak.errors import UserFacingError


@pytest.fixture
def engine() -> Iterator[MlxEngine]:
    engine = MlxEngine(accept_any_pair)
    yield engine
    engine.close()


def load(engine: MlxEngine, target: Path, draft: Path | None = None, **settings: Any) -> Loaded:
    loaded = engine.load(LoadRequest(target, draft, LoadSettings(**settings)), lambda _: None, lambda: False)
    assert loaded is not None
    return loaded


def test_what_was_used_is_told(engine: MlxEngine, tiny: Path, near: Path) -> None:
    loaded = load(engine, tiny, near)
    for placement, summary in ((loaded.placement, loaded.target), (loaded.draft_placement, loaded.draft)):
        assert placement is not None
        assert summary is not None
        assert (placement.devices, placement.gpu_layers, placement.layers) == (("CPU",), 0, 2)
        # The tests' networks compute in float32.
        assert placement.cache_type is CacheType.F32
        assert [buffer.size_bytes for buffer in placement.buffers] == [summary.size_bytes]


@pytest.mark.parametrize(
    ("cache_type", "bits"),
    [(CacheType.F16, None), (CacheType.Q8_0, 8), (CacheType.Q4_0, 4)],
    ids=str,
)
def test_caches_that_mlx_has(engine: MlxEngine, wide: Path, cache_type: CacheType, bits: int | None) -> None:
    loaded = load(engine, wide, cache_type=cache_type)
    assert engine.target.cache_bits == bits
    assert loaded.placement is not None
    assert loaded.placement.cache_type is (CacheType.F32 if bits is None else cache_type)
    exact = LoadSettings(cache_type=cache_type, reproducible=True)
    assert cache_bits(exact) is None


def test_a_cache_that_cannot_be_quantised_says_what_it_is(engine: MlxEngine, ring: Path) -> None:
    """Heads of 16 values have no group that shares a scale."""
    placement = load(engine, ring, cache_type=CacheType.Q8_0).placement
    assert placement is not None
    assert placement.cache_type is CacheType.F32


@pytest.mark.parametrize("cache_type", [CacheType.F32, CacheType.BF16, CacheType.Q5_1, CacheType.Q5_0, CacheType.Q4_1])
def test_caches_that_mlx_has_not(engine: MlxEngine, tiny: Path, near: Path, cache_type: CacheType) -> None:
    before = load(engine, tiny, near)
    with pytest.raises(UserFacingError, match=f"no cache in {cache_type.value}") as caught:
        load(engine, tiny, near, cache_type=cache_type)
    assert "Q8_0" in caught.value.remedy
    assert engine.loaded_request == LoadRequest(before.target.path, near), "what was loaded stays"
    # The reproducible setting overrules it.
    see_that_it_can(LoadRequest(tiny, settings=LoadSettings(cache_type=cache_type, reproducible=True)))


def test_a_device_that_mlx_has_not(engine: MlxEngine, tiny: Path) -> None:
    for names in ({"device": "Vulkan0"}, {"device": "CPU", "draft_device": "Vulkan0"}):
        with pytest.raises(UserFacingError, match="does not compute on “Vulkan0”"):
            load(engine, tiny, tiny, **names)
    assert load(engine, tiny, device="cpu").placement is not None


def test_where_there_is_a_gpu_it_is_the_one_that_is_named(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_USUAL_DEVICE", mx.Device(mx.gpu))
    for settings in ({"device": "MTL0"}, {"gpu_layers": 12}, {"device": "MTL0", "draft_device": "mtl0"}):
        see_that_it_can(LoadRequest(tiny, tiny, LoadSettings(**settings)))
        assert not on_processor(LoadSettings(**settings))
    assert on_processor(LoadSettings(device="CPU"))
    assert on_processor(LoadSettings(gpu_layers=0))
    with pytest.raises(UserFacingError, match="on two devices"):
        see_that_it_can(LoadRequest(tiny, tiny, LoadSettings(draft_device="CPU")))


def test_the_processor_is_not_kept_for_the_next_model(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one load asked for is over with it."""
    chosen: list[Any] = []
    monkeypatch.setattr(runtime, "_USUAL_DEVICE", "the usual one")
    monkeypatch.setattr(runtime.mx, "set_default_device", chosen.append)
    runtime.use_processor(on_processor(LoadSettings(gpu_layers=0)))
    runtime.use_processor(on_processor(LoadSettings()))
    assert chosen == [mx.cpu, "the usual one"]
