"""What is told of a loaded model: read from llama.cpp's words for machines with GPUs, and true on this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engines.llamacpp.conftest import accept_any_pair
from fewer_layers import FEW
from forespeak.engines.collect import collect
from forespeak.engines.devices import PROCESSOR, Device, ModelSetting
from forespeak.engines.engine import (
    Buffer,
    CacheType,
    ChatMessage,
    GenerationRequest,
    LoadRequest,
    LoadSettings,
    Role,
    Split,
)
from forespeak.engines.llamacpp import bindings
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.engines.llamacpp.placement import placement_of
from forespeak.errors import UserFacingError
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import Source

MIB = 1 << 20
CARD = Device("CUDA0", "A card", "GPU", 8 << 30, 8 << 30, "CUDA")
ON_CARD = ModelSetting((CARD, replace(CARD, name="CUDA1")), 3, Split.LAYER, CacheType.F16, None)
MODEL_TOLD = [
    "load_tensors: layer   0 assigned to device CPU, is_swa = 0\n",
    "load_tensors: layer   1 assigned to device CUDA0, is_swa = 0\n",
    "load_tensors: layer   2 assigned to device CUDA0, is_swa = 1\n",
    "load_tensors: layer   3 assigned to device CUDA1, is_swa = 0\n",
    "load_tensors:   CPU_Mapped model buffer size =    92.50 MiB\n",
    "load_tensors:        CUDA0 model buffer size =   100.00 MiB\n",
    "load_tensors:    CUDA_Host model buffer size =     1.00 MiB\n",
]
CONTEXT_TOLD = [
    "llama_context: flash_attn            = auto\n",
    "llama_context:  CUDA_Host  output buffer size =     0.50 MiB\n",
    "llama_kv_cache:      CUDA0 KV buffer size =    11.25 MiB\n",
    "llama_kv_cache_swa:  CUDA0 KV buffer size =     0.75 MiB\n",
    "llama_kv_cache: size =   12.00 MiB (   512 cells,  30 layers,  1/1 seqs), K (q8_0):    5.62 MiB, V (q8_0)\n",
    "resolve_fused_ops: Flash Attention enabled\n",
    "sched_reserve:      CUDA0 compute buffer size =    20.00 MiB\n",
]


def test_llama_cpps_words_are_read() -> None:
    found = placement_of(MODEL_TOLD, CONTEXT_TOLD, ON_CARD, 4)
    assert (found.devices, found.gpu_layers, found.layers) == (("CUDA0", "CUDA1", "CPU"), 3, 4)
    assert (found.cache_type, found.flash_attention, found.threads, found.split) == (
        CacheType.Q8_0,
        True,
        4,
        Split.LAYER,
    )
    assert set(found.buffers) == {
        Buffer("weights", "CPU", round(93.5 * MIB)),
        Buffer("weights", "CUDA0", 100 * MIB),
        Buffer("scores", "CPU", MIB // 2),
        Buffer("cache", "CUDA0", 12 * MIB),
        Buffer("buffers", "CUDA0", 20 * MIB),
    }


def test_flash_attention_that_a_device_cannot_do_is_not_claimed() -> None:
    told = [*CONTEXT_TOLD[:-2], "resolve_fused_ops: Flash Attention not supported, set to disabled\n"]
    assert not placement_of(MODEL_TOLD, told, ON_CARD, 4).flash_attention
    forced = ["llama_context: flash_attn            = disabled\n"]
    assert not placement_of([], forced, replace(PROCESSOR, flash_attention=True), 1).flash_attention


def test_a_model_wholly_on_a_gpu_is_not_on_the_processor() -> None:
    found = placement_of(MODEL_TOLD[1:3], CONTEXT_TOLD, ON_CARD, 4)
    assert (found.devices, found.gpu_layers, found.layers) == (("CUDA0",), 2, 2)


def written(engine: LlamaEngine, *sources: Source) -> str:
    request = GenerationRequest(
        (ChatMessage(Role.USER, "Name three colours."),), sources, SamplingSettings(temperature=0.0), max_tokens=12
    )
    return collect(engine.generate(request, lambda: False)).text


def test_a_quantised_cache_writes_and_what_is_told_is_true(q4_1: Path) -> None:
    engine = LlamaEngine(accept_any_pair)
    request = LoadRequest(q4_1, q4_1, LoadSettings(context_length=512, threads=2, cache_type=CacheType.Q8_0))
    try:
        loaded = engine.load(request, lambda _: None, lambda: False)
        assert loaded is not None
        assert loaded.computes_on_cpu
        for place in (loaded.placement, loaded.draft_placement):
            assert place is not None
            assert (place.devices, place.gpu_layers, place.layers) == (("CPU",), 0, len(FEW) + 1)
            assert (place.cache_type, place.flash_attention, place.threads) == (CacheType.Q8_0, True, 2)
            sizes = {buffer.kind: buffer.size_bytes for buffer in place.buffers}
            # Each layer keeps 2 * 192 values of 512 places, in blocks of 34 bytes for 32 values.
            assert sizes["cache"] == pytest.approx(len(FEW) * 2 * 192 * 512 * 34 / 32, rel=0.01)
            assert sizes["weights"] == pytest.approx(loaded.target.size_bytes, rel=0.05)
            assert sizes["buffers"] > MIB
        assert len(written(engine)) > 20
        # What a check of parity measures is not this cache, but the exact one; there, drafts change no word.
        with engine.bench(256) as bench:
            assert isinstance(bench, LlamaEngine)
            place = bench.target.placement
            assert (place.cache_type, place.flash_attention) == (CacheType.F32, False)
            assert written(bench, Source.DRAFT_MODEL) == written(bench)
    finally:
        engine.close()


def test_what_cannot_be_is_refused_and_what_is_loaded_stays(q4_1: Path) -> None:
    engine = LlamaEngine(accept_any_pair)
    request = LoadRequest(q4_1, settings=LoadSettings(context_length=256, threads=2))
    try:
        assert engine.load(request, lambda _: None, lambda: False) is not None
        before = engine.target
        for wrong in (
            replace(request.settings, cache_type=CacheType.Q4_0, flash_attention=False),
            replace(request.settings, device="CUDA9"),
        ):
            with pytest.raises(UserFacingError):
                engine.load(replace(request, settings=wrong), lambda _: None, lambda: False)
        assert engine.target is before
        assert engine.loaded_request == request
    finally:
        engine.close()


def test_layers_are_chosen_by_who_knows_the_memory(q4_1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU is listed that is not there: the load only goes well because nothing is put onto it."""
    processor = bindings.devices()
    monkeypatch.setattr(bindings, "devices", lambda: [CARD, *processor])
    seen: list[Sequence[Device]] = []

    def none(request: LoadRequest, gpus: Sequence[Device]) -> LoadRequest:
        seen.append(gpus)
        return replace(request, settings=replace(request.settings, gpu_layers=0, draft_gpu_layers=0))

    settings = LoadSettings(context_length=256, threads=2)
    request = LoadRequest(q4_1, settings=settings)
    engine = LlamaEngine(accept_any_pair, layer_choice=none)
    try:
        for _ in range(2):
            loaded = engine.load(request, lambda _: None, lambda: False)
            assert loaded is not None
            assert loaded.placement is not None
            assert loaded.placement.gpu_layers == 0
        assert seen == [[CARD], [CARD]]
        assert engine.loaded_request == LoadRequest(q4_1, settings=replace(settings, gpu_layers=0, draft_gpu_layers=0))
    finally:
        engine.close()


def test_a_loaded_pair_gives_its_memory_to_the_next() -> None:
    engine = LlamaEngine(accept_any_pair)
    buffers = (Buffer("weights", "CUDA0", 3 * MIB), Buffer("cache", "CUDA0", MIB), Buffer("cache", "CPU", 9 * MIB))
    placement = replace(placement_of(MODEL_TOLD, CONTEXT_TOLD, ON_CARD, 1), buffers=buffers)
    loaded = SimpleNamespace(placement=placement, close=lambda: None)
    engine._target = engine._draft = loaded  # type: ignore[assignment]
    used = replace(CARD, free_bytes=MIB)
    assert engine._with_own_memory(used).free_bytes == 9 * MIB
    assert engine._with_own_memory(CARD) == CARD, "no more than there is"
    assert engine._with_own_memory(replace(used, name="CUDA1")).free_bytes == MIB
