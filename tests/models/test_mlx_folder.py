from __future__ import annotations

import json
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.models.file_facts import FileFacts
from forespeak.models.gguf import GgufError
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import MemorySettings, plan_of_files
from forespeak.models.mlx_folder import may_be_mlx, read_mlx_facts
from forespeak.models.mlx_vocabulary import read_mlx_vocabulary
from forespeak.models.model_layout import layout_of_file
from models.library_folders import MLX_CONFIG, MLX_PARAMETERS, MLX_TENSORS, library, only, safetensors, write_mlx


def facts(folder: Path) -> FileFacts | None:
    return read_mlx_facts(folder, {path.name for path in folder.iterdir()})


def known(folder: Path) -> FileFacts:
    found = facts(folder)
    assert found is not None
    return found


def test_what_a_folder_says(tmp_path: Path) -> None:
    found = known(write_mlx(tmp_path))
    assert (found.architecture, found.parameters, found.label) == ("qwen2", MLX_PARAMETERS, "4-bit")
    assert (found.context_length, found.vocabulary_size, found.has_template) == (32768, 3, True)
    assert found.problem is None
    assert found.vocabulary_fingerprint is not None


def test_folders_that_are_no_models() -> None:
    assert may_be_mlx(["config.json", "model.safetensors"])
    assert not may_be_mlx(["config.json", "model.bin"])
    assert not may_be_mlx(["model.safetensors"])


def test_another_librarys_weights_are_no_mlx(tmp_path: Path) -> None:
    plain = {key: value for key, value in MLX_CONFIG.items() if key != "quantization"}
    foreign = safetensors({"a.weight": ("BF16", (4, 4))}, {"format": "pt"})
    assert facts(write_mlx(tmp_path / "torch", plain, model_at_safetensors=foreign)) is None
    ours = safetensors({"a.weight": ("BF16", (4, 4))}, {"format": "mlx"})
    assert known(write_mlx(tmp_path / "mlx", plain, model_at_safetensors=ours)).label == "BF16"
    assert facts(write_mlx(tmp_path / "nothing", {"vocab_size": 5})) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"nonsense", b"[" * 99999])
def test_settings_that_make_no_sense(tmp_path: Path, content: bytes) -> None:
    assert facts(write_mlx(tmp_path, config_at_json=content)) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "incomplete or damaged"),
        (b"\xff" * 8, "incomplete or damaged"),
        (b"\4\0\0\0\0\0\0\0abcd", "damaged"),
        (b"\2\0\0\0\0\0\0\0[]", "damaged"),
        (safetensors(MLX_TENSORS)[:-5], "stopped early"),
        (b"\x14\0\0\0\0\0\0\0" + b'{"a": {"shape": [5]}}'[:20], "damaged"),
        (b"\x0d\0\0\0\0\0\0\0" + b'{"a": {"b":5}}'[:13], "damaged"),
    ],
)
def test_weights_that_are_damaged(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in (known(write_mlx(tmp_path, model_at_safetensors=content)).problem or "")


def test_missing_files_are_named(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00003.safetensors", "b": "model-00003-of-00003.safetensors"}}
    part = safetensors(MLX_TENSORS)
    folder = write_mlx(tmp_path / "index")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00003.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert known(folder).problem == "Part 3 of 3 is missing."
    (folder / "model.safetensors.index.json").unlink()
    assert known(folder).problem == "Parts 2 and 3 of 3 are missing."
    index["weight_map"]["b"] = "other.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert known(folder).problem == "“other.safetensors” is missing."
    folder = write_mlx(tmp_path / "tokenizer", model_at_safetensors=part)
    (folder / "tokenizer.json").unlink()
    assert known(folder).problem == "“tokenizer.json” is missing."
    assert known(folder).vocabulary_fingerprint is None


@pytest.mark.parametrize(
    ("config", "label"),
    [
        ({"quantization": {"bits": 8, "group_size": 64}}, "8-bit"),
        ({"quantization_config": {"bits": 6}}, "6-bit"),
        ({"quantization": {"bits": 4, "mode": "mxfp4"}}, "MXFP4"),
        ({"quantization": {"bits": "x"}}, None),
        ({"quantization": 5}, None),
    ],
)
def test_number_formats(tmp_path: Path, config: dict[str, Any], label: str | None) -> None:
    found = known(write_mlx(tmp_path, {"model_type": "llama", **config}))
    assert found.label == label


def test_experts_and_texts_apart(tmp_path: Path) -> None:
    config = {
        "model_type": "qwen3_moe",
        "text_config": {"max_position_embeddings": 4096, "num_experts": 8, "num_experts_per_tok": 2},
        "num_nextn_predict_layers": 1,
    }
    weights = safetensors(
        {"model.layers.0.mlp.switch_mlp.up_proj.weight": ("BF16", (8, 4, 4)), "x": ("BF16", (4,))}, {"format": "mlx"}
    )
    found = known(write_mlx(tmp_path, config, model_at_safetensors=weights))
    assert (found.experts, found.experts_used, found.expert_parameters, found.mtp_layers) == (8, 2, 128, 1)
    assert found.context_length == 4096


def test_the_fingerprint_is_that_of_the_tokenizer(tmp_path: Path) -> None:
    one, same, other = (write_mlx(tmp_path / name) for name in ("one", "same", "other"))
    (other / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}')
    assert known(one).vocabulary_fingerprint == known(same).vocabulary_fingerprint
    assert known(one).vocabulary_fingerprint != known(other).vocabulary_fingerprint


def weights(header: Any) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(64)


SOUND = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}


@pytest.mark.parametrize(
    "odd",
    [
        {"shape": None},
        {"shape": 5},
        {"shape": [True]},
        {"shape": [-4, -4]},
        {"shape": [4.0, 4.0]},
        {"shape": [4, "4"]},
        {"shape": [1 << 70]},
        {"shape": [9] * 500_000},
        {"dtype": None},
        {"dtype": ["F32"]},
        {"data_offsets": None},
        {"data_offsets": ["0", 64]},
        {"data_offsets": [None, 64]},
        {"data_offsets": [-64, 0]},
        {"data_offsets": [64, 0]},
        {"data_offsets": [0, 32, 64]},
    ],
    ids=lambda odd: str(odd)[:30],
)
def test_what_a_header_cannot_say_of_a_tensor(tmp_path: Path, odd: dict[str, Any]) -> None:
    folder = write_mlx(tmp_path / "models" / "m", model_at_safetensors=weights({"x.weight": SOUND | odd}))
    assert only(library(tmp_path).scan()).problem == "“model.safetensors” is damaged."
    with pytest.raises(GgufError, match="damaged"):
        layout_of_file(folder)


def test_a_header_whose_entry_is_no_tensor(tmp_path: Path) -> None:
    write_mlx(tmp_path / "models" / "m", model_at_safetensors=weights({"x.weight": SOUND, "y": 5}))
    assert only(library(tmp_path).scan()).problem == "“model.safetensors” is damaged."


@pytest.mark.parametrize("metadata", [None, 5, ["pt"], {"format": ["pt"]}, {"format": {}}, {"format": None}])
def test_metadata_that_name_no_format(tmp_path: Path, metadata: Any) -> None:
    content = weights({"x.weight": SOUND, "__metadata__": metadata})
    write_mlx(tmp_path / "models" / "m", {"model_type": "llama"}, model_at_safetensors=content)
    item = only(library(tmp_path).scan())
    assert (item.problem, item.parameters) == (None, 16)


def test_an_empty_tensor_is_no_damage(tmp_path: Path) -> None:
    empty = {"dtype": "F32", "shape": [*[9] * 500_000, 0], "data_offsets": [0, 0]}
    found = known(write_mlx(tmp_path, {"model_type": "llama"}, model_at_safetensors=weights({"x": SOUND, "y": empty})))
    assert (found.problem, found.parameters) == (None, 16)


TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)
COUNTS = st.lists(st.integers(0, 64), max_size=3)
TENSORS = JSON | st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U32", "F16"]) | JSON,
        "shape": COUNTS | JSON,
        "data_offsets": st.just([0, 64]) | COUNTS | JSON,
    }
)
NAMES = st.sampled_from(["model.layers.0.mlp.experts.weight", "model.embed_tokens.weight", "layers.9.x.scales", "x"])
SETTINGS = st.sampled_from(
    [
        *("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
        *("num_experts", "num_experts_per_tok", "intermediate_size", "max_position_embeddings", "sliding_window"),
        *("layer_types", "full_attn_idxs", "full_attention_interval", "sliding_window_pattern", "kv_lora_rank"),
        *("quantization", "quantization_config", "text_config"),
    ]
)
QUANTISED = st.fixed_dictionaries({"bits": st.sampled_from([4, True, "4"]) | JSON, "mode": st.just("fp4") | JSON})


@given(
    header=st.dictionaries(NAMES, TENSORS, max_size=3) | JSON,
    metadata=st.fixed_dictionaries({"format": st.just("pt") | JSON}) | JSON,
    config=st.dictionaries(SETTINGS, st.integers(0, 100) | QUANTISED | JSON),
    kind=st.sampled_from(["llama", "gemma3"]) | JSON,
    index=st.none() | st.fixed_dictionaries({"weight_map": st.dictionaries(TEXTS, JSON, max_size=2) | JSON}) | JSON,
    tokenizer=JSON,
)
def test_whatever_a_folder_holds_it_is_listed_or_left_out(
    header: Any, metadata: Any, config: dict[str, Any], kind: Any, index: Any, tokenizer: Any
) -> None:
    if isinstance(header, dict):
        header = header | {"__metadata__": metadata}
    files = {"model_at_safetensors": weights(header), "tokenizer_at_json": json.dumps(tokenizer).encode()}
    if index is not None:
        files["model_at_safetensors_at_index_at_json"] = json.dumps(index).encode()
    with tempfile.TemporaryDirectory() as home:
        folder = write_mlx(Path(home, "models", "m"), config | {"model_type": kind}, **files)
        for item in library(Path(home)).scan():
            for words in (item.architecture, item.quantisation, item.problem):
                (words or "").encode()
        with suppress(GgufError):
            plan_of_files(folder, None, MemorySettings(gpu_layers=-1), Machine(1 << 34, 1 << 33))
        with suppress(GgufError):
            read_mlx_vocabulary(folder)
