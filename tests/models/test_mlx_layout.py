"""What an MLX folder takes, worked out by hand, and in a memory plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forespeak.models.gguf import GgufError
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.memory import Fit, MemorySettings, Part, PartKind, plan_of_files
from forespeak.models.mlx_layout import layout_of_folder
from forespeak.models.model_layout import MOST_LAYERS, layout_of_file
from forespeak.models.model_memory import ContextSettings, ModelMemory, memory_of
from models.library_folders import safetensors, write_mlx

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 6,
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
GB = 1_000_000_000


def folder(path: Path, kind: str = "F16", more: dict[str, Any] | None = None, **config: Any) -> Path:
    tensors: dict[str, Any] = {"model.embed_tokens.weight": (kind, (1000, 64)), "lm_head.weight": (kind, (1000, 64))}
    for number in range(6):
        tensors[f"model.layers.{number}.mlp.up_proj.weight"] = (kind, (256, 64))
    tensors |= more or {}
    return write_mlx(path, CONFIG | config, model_at_safetensors=safetensors(tensors, {"format": "mlx"}))


def memory(path: Path, length: int = 1024, cache_type: str = "F16", *, gpu: bool = False) -> ModelMemory:
    return memory_of(layout_of_file(path), ContextSettings(length, cache_type), -1 if gpu else 0)


def test_weights_by_layer(tmp_path: Path) -> None:
    found = layout_of_file(folder(tmp_path))
    assert [layer.weight_bytes for layer in found.layers] == [2 * 256 * 64] * 6
    assert (found.input_bytes, found.output_bytes) == (2 * 64_000, 2 * 64_000)
    assert found.size_bytes == found.weight_bytes
    assert (found.embedding, found.feed_forward, found.heads, found.query_width) == (64, 256, 4, 64)
    assert (found.vocabulary, found.trained_context) == (1000, 4096)
    assert found.is_mlx


def test_what_sees_is_not_loaded(tmp_path: Path) -> None:
    more = {"vision_tower.layers.0.weight": ("F16", (64, 64)), "multi_modal_projector.w": ("F16", (64, 64))}
    inner: dict[str, Any] = {"text_config": {"num_hidden_layers": 6, "hidden_size": 64}}
    found = layout_of_file(folder(tmp_path / "both", more=more, **inner))
    assert found.size_bytes == layout_of_file(folder(tmp_path / "plain")).size_bytes


def test_packed_weights_compute_in_the_type_of_their_scales(tmp_path: Path) -> None:
    packed = {f"model.layers.{number}.mlp.down_proj.weight": ("U32", (64, 32)) for number in range(6)}
    scales = {f"model.layers.{number}.mlp.down_proj.scales": ("BF16", (64, 4)) for number in range(6)}
    found = layout_of_file(folder(tmp_path, "U32", packed | scales))
    assert found.value_bytes == 2
    assert found.layers[0].weight_bytes == 4 * 256 * 64 + 4 * 64 * 32 + 2 * 64 * 4


def test_a_cache_in_the_networks_own_numbers(tmp_path: Path) -> None:
    half, full = folder(tmp_path / "half"), folder(tmp_path / "full", "F32")
    # 6 layers, keys and values of two heads of 16 values, 1,024 places.
    assert memory(half).host_cache == 6 * 2 * 32 * 1024 * 2
    assert memory(full).host_cache == 6 * 2 * 32 * 1024 * 4
    # The reproducible setting changes nothing about it.
    assert memory(half, cache_type="F32").host_cache == memory(half).host_cache
    # 8 bits and 4 bits, with a scale and an offset of 16 bits each for 64 values.
    assert memory(half, cache_type="Q8_0").host_cache == 6 * 2 * 32 * 1024 * 17 // 16
    assert memory(half, cache_type="Q4_0").host_cache == 6 * 2 * 32 * 1024 * 9 // 16


def test_windows_end_where_they_end(tmp_path: Path) -> None:
    gemma = folder(tmp_path / "gemma", model_type="gemma3_text", sliding_window=512)
    assert [layer.window for layer in layout_of_folder(gemma).layers] == [*[512] * 5, None]
    place = 2 * 32 * 2
    assert memory(gemma, 4096).host_cache == place * (5 * 512 + 4096)
    listed = folder(tmp_path / "listed", sliding_window=256, layer_types=["full_attention", *["sliding_attention"] * 5])
    assert [layer.window for layer in layout_of_folder(listed).layers] == [None, *[256] * 5]
    # Only named, and not said of which layer: counted whole.
    named = folder(tmp_path / "named", model_type="mistral", sliding_window=256)
    assert {layer.window for layer in layout_of_folder(named).layers} == {None}


@pytest.mark.parametrize(
    ("config", "attending"),
    [
        ({"full_attn_idxs": [2, 5]}, [2, 5]),
        ({"full_attention_interval": 3}, [2, 5]),
        ({"layer_types": ["linear_attention", "full_attention"] * 3}, [1, 3, 5]),
    ],
    ids=["listed", "interval", "kinds"],
)
def test_states_do_not_grow_with_the_text(tmp_path: Path, config: dict[str, Any], attending: list[int]) -> None:
    layers = layout_of_folder(folder(tmp_path, **config)).layers
    assert [number for number, layer in enumerate(layers) if layer.key_width] == attending


def test_latent_attention_keeps_one_row(tmp_path: Path) -> None:
    (layer, *_) = layout_of_folder(folder(tmp_path, kv_lora_rank=512, qk_rope_head_dim=64)).layers
    assert (layer.key_width, layer.value_width) == (512, 64)


def test_a_plan_for_folders(tmp_path: Path) -> None:
    target, draft = folder(tmp_path / "target"), folder(tmp_path / "draft")
    roomy = plan_of_files(target, draft, MemorySettings(), Machine(8 * GB, 6 * GB))
    assert roomy.fit is Fit.FITS
    assert {(part.kind, part.of) for part in roomy.parts} >= {
        (PartKind.WEIGHTS, "target"),
        (PartKind.CACHE, "target"),
        (PartKind.WEIGHTS, "draft"),
        (PartKind.PROGRAM, ""),
    }
    assert roomy.context_length == 4096
    small = plan_of_files(target, None, MemorySettings(), Machine(1 * GB, 120_000_000))
    assert small.fit is Fit.TOO_LARGE


def test_a_gpu_is_used_only_where_it_is_apples(tmp_path: Path) -> None:
    target = folder(tmp_path)
    gpu = Gpu("M5", 6 * GB, 8 * GB)

    def weights(machine: Machine) -> Part:
        plan = plan_of_files(target, None, MemorySettings(gpu_layers=-1), machine)
        (found,) = [part for part in plan.parts if part.kind is PartKind.WEIGHTS]
        return found

    apple, other = Machine(16 * GB, 12 * GB, (gpu,), unified=True), Machine(16 * GB, 12 * GB, (gpu,))
    assert weights(apple).device == "M5"
    assert weights(other).device == "main memory"
    assert weights(apple).size_bytes == weights(other).size_bytes


@pytest.mark.parametrize("spoiled", [{"config_at_json": b"nonsense"}, {"model_at_safetensors": b"nonsense"}])
def test_a_folder_that_is_no_model(tmp_path: Path, spoiled: dict[str, bytes]) -> None:
    with pytest.raises(GgufError, match=r"damaged"):
        layout_of_file(write_mlx(tmp_path, CONFIG, **spoiled))
    with pytest.raises(GgufError):
        layout_of_file(tmp_path / "nothing")


def test_settings_may_claim_any_number_of_layers(tmp_path: Path) -> None:
    more = {f"model.layers.{'9' * 5000}.w": ("F16", (64,)), "model.layers.700.w": ("F16", (64,))}
    # What attends may be listed at any length, and hold anything.
    listed: list[Any] = [{}, None, 3, *[1 << 40] * 100_000]
    found = layout_of_file(folder(tmp_path, more=more, num_hidden_layers=1_000_000, full_attn_idxs=listed))
    assert len(found.layers) == MOST_LAYERS
    assert [number for number, layer in enumerate(found.layers) if layer.key_width] == [3]
    assert found.output_bytes == 2 * 64_000 + 2 * 128
