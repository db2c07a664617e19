from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.gguf import GgufError, GgufHeader, Tensor, read_header
from forespeak.pairing.model_shape import ModelShape, WeightFormat, estimated_shape, file_shape, shape_of, weight_format
from models.gguf_writer import gguf
from models.library_folders import safetensors, write_mlx

EMBEDDINGS = ("token_embd.weight", (8, 100))
LAYER = ("blk.0.attn_q.weight", (8, 8))
OUTPUT = ("output.weight", (8, 100))
EXPERTS = ("blk.0.ffn_up_exps.weight", (8, 16, 10))


def written(path: Path, *tensors: tuple[str, tuple[int, ...]], **entries: object) -> Path:
    path.write_bytes(gguf({"general.architecture": "llama", **entries}, tensors))
    return path


def test_a_plain_model_reads_all_its_weights(tmp_path: Path) -> None:
    shape = file_shape(written(tmp_path / "a.gguf", EMBEDDINGS, LAYER))
    assert shape == ModelShape(WeightFormat.F32, 864, 864 * 4)
    assert shape is not None
    assert shape.active_weights == shape.weights_read(1) == shape.weights_read(9) == 864


def test_of_embeddings_beside_an_output_table_one_row_is_read(tmp_path: Path) -> None:
    shape = file_shape(written(tmp_path / "a.gguf", EMBEDDINGS, LAYER, OUTPUT))
    assert shape == ModelShape(WeightFormat.F32, 864, 864 * 4)


def test_of_experts_a_token_uses_its_share_and_a_check_more(tmp_path: Path) -> None:
    counts = {"llama.expert_count": 10, "llama.expert_used_count": 2}
    shape = file_shape(written(tmp_path / "a.gguf", LAYER, EXPERTS, **counts))
    assert shape is not None
    assert (shape.shared_weights, shape.expert_weights, shape.expert_share) == (64, 1280, 0.2)
    assert shape.active_weights == 64 + 256
    assert shape.weights_read(1) == pytest.approx(320)
    assert shape.weights_read(2) == pytest.approx(64 + 1280 * 0.36)
    assert shape.weights_read(100) == pytest.approx(64 + 1280)
    assert shape.bytes_read(2) == pytest.approx(4 * shape.weights_read(2))
    assert shape.parameters == 1344


def test_a_split_model_is_all_its_parts(tmp_path: Path) -> None:
    first = written(tmp_path / "m-00001-of-00002.gguf", EMBEDDINGS)
    with pytest.raises(GgufError):
        file_shape(first)
    written(tmp_path / "m-00002-of-00002.gguf", LAYER, OUTPUT)
    shape = file_shape(first)
    assert shape is not None
    assert shape.parameters == 864


def test_without_weights_there_is_no_shape(tmp_path: Path) -> None:
    assert shape_of([read_header(written(tmp_path / "a.gguf"))]) is None


@pytest.mark.parametrize(
    ("label", "format_"),
    [
        ("Q4_K_M", WeightFormat.BITS_4),
        ("UD-Q4_K_XL", WeightFormat.BITS_4),
        ("IQ3_XXS", WeightFormat.BITS_3),
        ("MXFP4_MOE", WeightFormat.BITS_4),
        ("TQ1_0", WeightFormat.BITS_2),
        ("Q8_0", WeightFormat.BITS_8),
        ("BF16", WeightFormat.F16),
        ("F32", WeightFormat.F32),
        ("4-bit", WeightFormat.BITS_4),
        (None, None),
        ("strange", None),
    ],
)
def test_classes_of_formats(label: str | None, format_: WeightFormat | None) -> None:
    assert weight_format(label) is format_


def test_a_mean_size_tells_where_the_label_does_not() -> None:
    assert weight_format(None, 4.6) is WeightFormat.BITS_4
    assert weight_format("new", 8.5) is WeightFormat.BITS_8
    assert weight_format(None, 16.0) is WeightFormat.F16


def test_estimates_from_size_and_name() -> None:
    shape = estimated_shape(4_900_000_000, "Q4_K_M", 8e9)
    assert shape == ModelShape(WeightFormat.BITS_4, 8e9, 4.9e9, is_estimate=True)
    unnamed = estimated_shape(1_080_000_000, "Q8_0")
    assert unnamed is not None
    assert unnamed.parameters == pytest.approx(1e9)
    assert estimated_shape(1_000, None) is None
    assert estimated_shape(0, "Q8_0", 1e9) is None


def test_an_estimate_of_a_mixture_of_experts_keeps_what_is_active() -> None:
    shape = estimated_shape(18_000_000_000, "Q4_K_M", 30e9, 3e9)
    assert shape is not None
    assert shape.parameters == pytest.approx(30e9)
    assert shape.active_weights == pytest.approx(3e9)
    assert shape.bytes_read(1) == pytest.approx(1.8e9)
    assert shape.bytes_read(5) > 2 * shape.bytes_read(1)


def test_the_coarsest_tenth_decides_how_true_a_copy_is() -> None:
    def header(*tensors: Tensor) -> GgufHeader:
        return GgufHeader(Path("a.gguf"), 3, {"general.file_type": 10}, tensors, 0, 0)

    most, some, few = (
        Tensor("blk.0.a.weight", (256, 80), "Q4_0", 0, 256 * 45),
        Tensor("blk.0.b.weight", (256, 20), "Q3_K", 0, 256 * 9),
        Tensor("blk.0.c.weight", (256, 2), "Q2_K", 0, 256 * 1),
    )
    shape = shape_of([header(most, some, few)])
    assert shape is not None
    assert (shape.format, shape.fidelity) == (WeightFormat.BITS_2, WeightFormat.BITS_3)
    alike = shape_of([header(replace(most, type="Q2_K"))])
    assert alike is not None
    assert (alike.coarsest, alike.fidelity) == (None, WeightFormat.BITS_2)


def folder(path: Path, *, tied: bool, experts: int = 0) -> Path:
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {
        "model.embed_tokens.weight": ("F16", (1000, 64)),
        "model.layers.0.mlp.up_proj.weight": ("F16", (256, 64)),
        "model.norm.weight": ("F16", (64,)),
    }
    if not tied:
        tensors["lm_head.weight"] = ("F16", (1000, 64))
    if experts:
        tensors["model.layers.0.switch_mlp.up_proj.weight"] = ("F16", (experts, 256, 64))
    config = {"model_type": "llama", "num_hidden_layers": 1, "num_experts": experts, "num_experts_per_tok": 2}
    return write_mlx(path, config, model_at_safetensors=safetensors(tensors, {"format": "mlx"}))


def test_an_mlx_folder_reads_what_the_same_file_would(tmp_path: Path) -> None:
    layers = 256 * 64 + 64
    for tied in (True, False):
        shape = file_shape(folder(tmp_path / str(tied), tied=tied))
        assert shape == ModelShape(WeightFormat.F16, layers + 64_000, 2 * (layers + 64_000))
    shape = file_shape(folder(tmp_path / "moe", tied=True, experts=8))
    assert shape is not None
    assert (shape.expert_weights, shape.expert_share, shape.is_estimate) == (8 * 256 * 64, 0.25, False)


def test_packed_weights_count_what_they_stand_for(tmp_path: Path) -> None:
    tensors = {
        "model.layers.0.mlp.up_proj.weight": ("U32", (256, 8)),
        "model.layers.0.mlp.up_proj.scales": ("F16", (256, 1)),
        "model.layers.0.mlp.up_proj.biases": ("F16", (256, 1)),
    }
    config = {"model_type": "llama", "num_hidden_layers": 1, "quantization": {"bits": 4, "group_size": 64}}
    shape = file_shape(write_mlx(tmp_path / "packed", config, model_at_safetensors=safetensors(tensors)))
    assert shape == ModelShape(WeightFormat.BITS_4, 256 * 64, 256 * 32 + 2 * 512)


def test_a_folder_that_is_no_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(GgufError):
        file_shape(tmp_path)
