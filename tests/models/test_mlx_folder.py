from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forespeak.models.file_facts import FileFacts
from forespeak.models.mlx_folder import may_be_mlx, read_mlx_facts
from models.library_folders import MLX_CONFIG, MLX_PARAMETERS, MLX_TENSORS, safetensors, write_mlx


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
