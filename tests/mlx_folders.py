"""Folders in the MLX format for tests: converted from GGUF files, in float32, or of random weights of any architecture.

llama.cpp's converter turns the rows of q and k round for its kind of rotary positions
(convert_hf_to_gguf.py, `LlamaModel.permute`); here they are turned back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_LAYER_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}


def convert(gguf: Path, folder: Path, *, layers: int | None = None, noise: float = 0.0) -> Path:
    """Write a GGUF file of the llama architecture as an MLX folder in float32; only its first `layers`, if given.

    `noise` is added to the scores' matrix: a model that mostly agrees with the original.
    """
    arrays, metadata = mx.load(str(gguf), return_metadata=True)
    count = int(metadata["llama.block_count"].item())
    kept = count if layers is None else layers
    heads, key_heads = (int(metadata[f"llama.attention.{name}"].item()) for name in ("head_count", "head_count_kv"))
    weights = {}
    for name in [name for name in arrays if name.endswith(".weight")]:
        place = _place(name.removesuffix(".weight"))
        if place is None or (place.startswith("model.layers.") and int(place.split(".")[2]) >= kept):
            continue
        array = _unpacked(arrays, name)
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            array = _turned_back(array, heads if "attn_q" in name else key_heads)
        weights[f"{place}.weight"] = array
    if noise:
        head = "lm_head.weight" if "lm_head.weight" in weights else "model.embed_tokens.weight"
        moved = weights[head] + noise * mx.random.normal(weights[head].shape, key=mx.random.key(7))
        weights["lm_head.weight"] = moved
    vocabulary = [str(token) for token in metadata["tokenizer.ggml.tokens"]]
    eos = int(metadata["tokenizer.ggml.eos_token_id"].item())
    config: dict[str, Any] = {
        "model_type": "llama",
        "hidden_size": int(metadata["llama.embedding_length"].item()),
        "num_hidden_layers": kept,
        "intermediate_size": int(metadata["llama.feed_forward_length"].item()),
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "rms_norm_eps": float(metadata["llama.attention.layer_norm_rms_epsilon"].item()),
        "rope_theta": float(metadata["llama.rope.freq_base"].item()) if "llama.rope.freq_base" in metadata else 10000.0,
        "vocab_size": len(vocabulary),
        "max_position_embeddings": int(metadata["llama.context_length"].item()),
        "tie_word_embeddings": "lm_head.weight" not in weights,
        "eos_token_id": eos,
    }
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(
        folder,
        vocabulary,
        [str(merge) for merge in metadata["tokenizer.ggml.merges"]],
        [token for token, kind in enumerate(metadata["tokenizer.ggml.token_type"].tolist()) if kind == CONTROL],
        bos=int(metadata["tokenizer.ggml.bos_token_id"].item()),
        eos=eos,
        template=metadata.get("tokenizer.chat_template"),
        digits="smol" in str(metadata.get("tokenizer.ggml.pre", "")),
    )
    return folder


def write_tokenizer(
    folder: Path,
    vocabulary: list[str],
    merges: list[str],
    control: list[int],
    *,
    bos: int,
    eos: int,
    template: str | None = None,
    digits: bool = False,
) -> None:
    """A byte-level tokenizer as Hugging Face's library writes it. `digits`: each is cut off before anything else."""
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE({text: token for token, text in enumerate(vocabulary)}, pairs))
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), cut]) if digits else cut
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(vocabulary[token], special=True, normalized=False) for token in control])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": vocabulary[bos],
        "eos_token": vocabulary[eos],
        "clean_up_tokenization_spaces": False,
    }
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def save_network(network: nn.Module, config: dict[str, Any], tokenizer_of: Path, folder: Path) -> Path:
    """A network as a folder, with another folder's tokenizer."""
    folder.mkdir(parents=True)
    mx.save_safetensors(
        str(folder / "model.safetensors"), dict(tree_flatten(network.parameters())), metadata={"format": "mlx"}
    )
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tokenizer_of / name).read_bytes())
    return folder


def _place(name: str) -> str | None:
    if name in _NAMES:
        return _NAMES[name]
    parts = name.split(".")
    if parts[0] == "blk" and parts[2] in _LAYER_NAMES:
        return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}"
    return None


def _unpacked(arrays: dict[str, mx.array], name: str) -> mx.array:
    """A tensor in float32. MLX reads Q4_0, Q4_1 and Q8_0 as its own packed kind, in groups of 32."""
    stem = name.removesuffix("weight")
    array = arrays[name]
    if f"{stem}scales" in arrays:
        scales, biases = arrays[f"{stem}scales"].astype(mx.float32), arrays[f"{stem}biases"].astype(mx.float32)
        bits = array.shape[-1] * 32 // (scales.shape[-1] * 32)
        return mx.dequantize(array, scales, biases, group_size=32, bits=bits)
    return array.astype(mx.float32)


def _turned_back(array: mx.array, heads: int) -> mx.array:
    rows, columns = array.shape
    return array.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
