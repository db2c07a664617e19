"""What a header says about layers, worked out by hand for each kind of model."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models.gguf import GgufError, read_header
from forespeak.models.model_layout import MOST_LAYERS, ModelLayout, layout_of_file
from models import architectures
from models.architectures import Architecture
from models.gguf_writer import ModelFile


def layout(architecture: Architecture, folder: Path) -> ModelLayout:
    return layout_of_file(architecture.write(folder / "model.gguf"))


def test_grouped_queries_keep_what_their_kv_heads_have(tmp_path: Path) -> None:
    found = layout(architectures.llama(), tmp_path)
    assert len(found.layers) == 8
    assert {(layer.key_width, layer.value_width, layer.window) for layer in found.layers} == {(1024, 1024, None)}
    assert (found.embedding, found.feed_forward, found.heads, found.query_width) == (3072, 8192, 24, 3072)
    assert found.vocabulary == 128256
    assert not found.tied
    # Queries and output 3072 x 3072, keys and values 3072 x 1024, three times 3072 x 8192, in F16; two norms in F32.
    assert found.layers[0].weight_bytes == 2 * (2 * 3072 * 3072 + 2 * 3072 * 1024 + 3 * 3072 * 8192) + 2 * 4 * 3072
    assert found.input_bytes == 2 * 3072 * 128256
    assert found.output_bytes == 2 * 3072 * 128256 + 4 * 3072


def test_heads_may_be_wider_than_the_model(tmp_path: Path) -> None:
    found = layout(architectures.qwen3(), tmp_path)
    assert (found.query_width, found.layers[0].key_width) == (4096, 1024)
    assert layout(architectures.qwen2(), tmp_path).layers[0].key_width == 256


def test_sliding_windows_follow_the_models_own_pattern(tmp_path: Path) -> None:
    gemma2 = layout(architectures.gemma2(), tmp_path)
    assert [layer.window for layer in gemma2.layers[:4]] == [4096, None, 4096, None]
    gemma3 = layout(architectures.gemma3(), tmp_path)
    assert [layer.window for layer in gemma3.layers] == [*[1024] * 5, None, *[1024] * 5, None]
    assert gemma3.tied


def test_a_list_of_windows_counts_before_a_pattern(tmp_path: Path) -> None:
    entries = {
        "gemma3.block_count": 3,
        "gemma3.attention.sliding_window": 512,
        "gemma3.attention.sliding_window_pattern": [True, False, True],
    }
    path = ModelFile(["a"], architecture="gemma3", entries=entries).write(tmp_path / "m.gguf")
    assert [layer.window for layer in layout_of_file(path).layers] == [512, None, 512]


def test_latent_attention_keeps_one_row_and_no_values(tmp_path: Path) -> None:
    found = layout(architectures.deepseek2(), tmp_path)
    assert {(layer.key_width, layer.value_width) for layer in found.layers} == {(576, 0)}


def test_older_files_of_the_same_models_keep_whole_heads(tmp_path: Path) -> None:
    latent = architectures.deepseek2()
    entries = {key: item for key, item in latent.entries.items() if not key.endswith("_mla")}
    entries |= {
        "attention.head_count_kv": 16,
        "attention.key_length": 192,
        "attention.value_length": 128,
    }
    found = layout(Architecture("deepseek2", entries, latent.tensors), tmp_path)
    assert (found.layers[0].key_width, found.layers[0].value_width) == (16 * 192, 16 * 128)


def test_experts_compute_as_wide_as_those_that_a_token_uses(tmp_path: Path) -> None:
    mixtral = layout(architectures.mixtral(), tmp_path)
    assert (mixtral.experts_used, mixtral.feed_forward) == (2, 2 * 14336)
    qwen3moe = layout(architectures.qwen3moe(), tmp_path)
    assert (qwen3moe.experts_used, qwen3moe.feed_forward) == (8, 8 * 768)


def test_a_recurrent_state_does_not_grow_with_the_text(tmp_path: Path) -> None:
    found = layout(architectures.mamba(), tmp_path)
    assert {layer.key_width for layer in found.layers} == {0}
    # A convolution over three earlier inputs, and sixteen values for each.
    assert {layer.state_values for layer in found.layers} == {3 * 3072 + 16 * 3072}
    assert not found.attends


def test_hybrids_attend_in_some_layers(tmp_path: Path) -> None:
    jamba = layout(architectures.jamba(), tmp_path)
    assert [layer.key_width for layer in jamba.layers] == [0, 0, 0, 256, 0, 0, 0, 256]
    assert [bool(layer.state_values) for layer in jamba.layers] == [True, True, True, False, True, True, True, False]
    lfm2 = layout(architectures.lfm2(), tmp_path)
    assert [layer.state_values for layer in lfm2.layers] == [4096, 4096, 0, 4096, 4096, 0]
    qwen35 = layout(architectures.qwen35(), tmp_path)
    assert [layer.key_width for layer in qwen35.layers] == [0, 0, 0, 1024, 0, 0, 0, 1024]
    # Keys and queries of 16 groups and 32 values of 128, three inputs back; a state of 128 for each of 4,096.
    assert qwen35.layers[0].state_values == 3 * (4096 + 2 * 16 * 128) + 128 * 4096


@pytest.mark.parametrize(
    ("entries", "state"),
    [
        ({"rwkv7.wkv.head_size": 64}, 2 * 2048 + 2048 * 64),
        ({"rwkv7.wkv.head_size": 64, "rwkv7.token_shift_count": 1}, 2048 + 2048 * 64),
    ],
)
def test_rwkv(tmp_path: Path, entries: dict[str, int], state: int) -> None:
    entries = {"rwkv7.block_count": 2, "rwkv7.embedding_length": 2048, **entries}
    path = ModelFile(["a"], architecture="rwkv7", entries=entries).write(tmp_path / "m.gguf")
    assert [layer.state_values for layer in layout_of_file(path).layers] == [state, state]


def test_layers_for_guessing_ahead_keep_nothing(tmp_path: Path) -> None:
    base = architectures.qwen2()
    entries = {**base.entries, "nextn_predict_layers": 1}
    found = layout(Architecture("glm4moe", entries, base.tensors), tmp_path)
    assert [bool(layer.key_width) for layer in found.layers] == [True] * 7 + [False]


def test_gemma_shares_caches_between_its_last_layers(tmp_path: Path) -> None:
    entries = {
        "gemma4.block_count": 4,
        "gemma4.embedding_length": 64,
        "gemma4.attention.head_count": 2,
        "gemma4.attention.key_length": 512,
        "gemma4.attention.value_length": 512,
        "gemma4.attention.key_length_swa": 256,
        "gemma4.attention.value_length_swa": 256,
        "gemma4.attention.sliding_window": 512,
        "gemma4.attention.sliding_window_pattern": [True, False, True, False],
        "gemma4.attention.shared_kv_layers": 2,
    }
    path = ModelFile(["a"], architecture="gemma4", entries=entries).write(tmp_path / "m.gguf")
    assert [layer.key_width for layer in layout_of_file(path).layers] == [512, 1024, 0, 0]


def test_shards_are_added_up(tmp_path: Path) -> None:
    base = architectures.qwen2()
    halves = [
        {name: shape for name, shape in base.tensors.items() if (name < "blk.4") is first} for first in (True, False)
    ]
    for number, tensors in enumerate(halves, 1):
        Architecture("qwen2", base.entries, tensors).write(tmp_path / f"m-{number:05}-of-00002.gguf")
    whole = layout(base, tmp_path)
    parts = layout_of_file(tmp_path / "m-00001-of-00002.gguf")
    assert parts.weight_bytes == whole.weight_bytes
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(GgufError):
        layout_of_file(tmp_path / "m-00001-of-00002.gguf")


def test_a_header_without_sense_gives_a_layout_all_the_same(tmp_path: Path) -> None:
    entries = {
        "qwen2.block_count": 0,
        "qwen2.attention.head_count": "many",
        "qwen2.embedding_length": -5,
        "qwen2.attention.sliding_window_pattern": [1, 2],
    }
    path = ModelFile(["a", "b"], entries=entries).write(tmp_path / "m.gguf")
    found = layout_of_file(path)
    assert len(found.layers) == 1
    assert found.vocabulary == 2
    assert found.weight_bytes == sum(tensor.size_bytes for tensor in read_header(path).tensors)


def test_a_header_may_claim_any_number_of_layers(tmp_path: Path) -> None:
    """The library's page weighs whatever is in a folder."""
    tensors = (
        ("blk.0.x", (8, 4)),
        (f"blk.{'9' * 5000}.x", (8, 4)),
        ("blk.700.x", (8, 4)),
        ("token_embd.weight", (8, 4)),
    )
    path = ModelFile(["a"], entries={"qwen2.block_count": 1_000_000}, tensors=tensors).write(tmp_path / "m.gguf")
    found = layout_of_file(path)
    assert len(found.layers) == MOST_LAYERS
    assert found.layers[0].weight_bytes == 128
    assert (found.input_bytes, found.output_bytes) == (128, 256)
