"""Models of real sizes without weights: header and tensors as llama.cpp wants them, the data a hole in the file."""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from models.gguf_writer import Raw, text, value

F32, F16 = 0, 1
Tensors = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Architecture:
    """A model to be: entries without the architecture's name before them, and its tensors' shapes."""

    name: str
    entries: Mapping[str, Any]
    tensors: Tensors
    outside: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        entries = {
            "general.architecture": self.name,
            "general.name": self.name,
            "general.file_type": 1,
            "tokenizer.ggml.model": "no_vocab",
            **{f"{self.name}.{key}": item for key, item in self.entries.items()},
            **self.outside,
        }
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(entries))
        head += b"".join(text(key) + value(item) for key, item in entries.items())
        offset = 0
        for name, shape in self.tensors.items():
            # Vectors stay in F32, and so do the small tables of state space models.
            small = len(shape) == 1 or "conv" in name or re.search(r"ssm_[ad]$", name)
            kind = F32 if small else F16
            head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
            head += struct.pack("<IQ", kind, offset)
            offset += -(-math.prod(shape) * (4 if kind == F32 else 2) // 32) * 32
        start = -(-len(head) // 32) * 32
        with path.open("wb") as file:
            file.write(head)
            os.truncate(path, start + offset)
        return path


def _common(
    *, layers: int, width: int, feed_forward: int, heads: int, kv_heads: int | list[int], vocabulary: int, **more: Any
) -> dict[str, Any]:
    return {
        "block_count": layers,
        "context_length": 32768,
        "embedding_length": width,
        "feed_forward_length": feed_forward,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "vocab_size": vocabulary,
        **{key.replace("__", "."): item for key, item in more.items()},
    }


def _ends(width: int, vocabulary: int, *, tied: bool = False, norm: str = "output_norm") -> Tensors:
    found: Tensors = {"token_embd.weight": (width, vocabulary), f"{norm}.weight": (width,)}
    return found if tied else found | {"output.weight": (width, vocabulary)}


def _block(number: int, tensors: Tensors) -> Tensors:
    return {f"blk.{number}.{name}": shape for name, shape in tensors.items()}


def _attention(width: int, query: int, kv: int, head: int = 0) -> Tensors:
    """`head` not 0: queries and keys are normalised head by head."""
    found: Tensors = {
        "attn_norm.weight": (width,),
        "attn_q.weight": (width, query),
        "attn_k.weight": (width, kv),
        "attn_v.weight": (width, kv),
        "attn_output.weight": (query, width),
    }
    return found | ({"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)} if head else {})


def _feed_forward(width: int, inner: int) -> Tensors:
    return {
        "ffn_norm.weight": (width,),
        "ffn_gate.weight": (width, inner),
        "ffn_up.weight": (width, inner),
        "ffn_down.weight": (inner, width),
    }


def _experts(width: int, inner: int, count: int) -> Tensors:
    return {
        "ffn_norm.weight": (width,),
        "ffn_gate_inp.weight": (width, count),
        "ffn_gate_exps.weight": (width, inner, count),
        "ffn_up_exps.weight": (width, inner, count),
        "ffn_down_exps.weight": (inner, width, count),
    }


def _dense(
    name: str, layers: int, width: int, inner: int, heads: int, kv: int, size: int, words: int, **more: Any
) -> Architecture:
    entries = _common(
        layers=layers,
        width=width,
        feed_forward=inner,
        heads=heads,
        kv_heads=kv,
        vocabulary=words,
        attention__key_length=size,
        attention__value_length=size,
        rope__dimension_count=size,
        **more,
    )
    normalised = size if name in {"qwen3", "gemma3"} else 0
    tensors = _ends(width, words, tied=name.startswith("gemma"))
    for number in range(layers):
        block = _attention(width, heads * size, kv * size, normalised) | _feed_forward(width, inner)
        if name.startswith("gemma"):
            block |= {"post_attention_norm.weight": (width,), "post_ffw_norm.weight": (width,)}
        tensors |= _block(number, block)
    return Architecture(name, entries, tensors)


def llama() -> Architecture:
    """The shape of Llama 3.2 3B, with fewer layers."""
    return _dense("llama", 8, 3072, 8192, 24, 8, 128, 128256)


def qwen2() -> Architecture:
    """The shape of Qwen2.5 1.5B, with fewer layers."""
    return _dense("qwen2", 8, 1536, 8960, 12, 2, 128, 151936)


def qwen3() -> Architecture:
    """The shape of Qwen3 4B, with fewer layers: heads wider than the model."""
    return _dense("qwen3", 8, 2560, 9728, 32, 8, 128, 151936)


def gemma2() -> Architecture:
    return _dense("gemma2", 8, 2304, 9216, 8, 4, 256, 256000, attention__sliding_window=4096)


def gemma3() -> Architecture:
    return _dense("gemma3", 12, 2560, 10240, 8, 4, 256, 262144, attention__sliding_window=1024)


def mixtral() -> Architecture:
    """Mixtral 8x7B's shape is llama's with experts."""
    width, inner, words, layers = 4096, 14336, 32000, 2
    entries = _common(
        layers=layers, width=width, feed_forward=inner, heads=32, kv_heads=8, vocabulary=words,
        expert_count=8, expert_used_count=2, rope__dimension_count=128,
    )  # fmt: skip
    tensors = _ends(width, words)
    for number in range(layers):
        tensors |= _block(number, _attention(width, 4096, 1024) | _experts(width, inner, 8))
    return Architecture("llama", entries, tensors)


def qwen3moe() -> Architecture:
    """The shape of Qwen3 30B-A3B, with fewer layers."""
    width, layers, words = 2048, 4, 151936
    entries = _common(
        layers=layers, width=width, feed_forward=6144, heads=32, kv_heads=4, vocabulary=words,
        attention__key_length=128, attention__value_length=128, rope__dimension_count=128,
        expert_count=128, expert_used_count=8, expert_feed_forward_length=768,
    )  # fmt: skip
    tensors = _ends(width, words)
    for number in range(layers):
        tensors |= _block(number, _attention(width, 4096, 512, 128) | _experts(width, 768, 128))
    return Architecture("qwen3moe", entries, tensors)


def deepseek2() -> Architecture:
    """Latent attention with experts, in the shape of DeepSeek V2's smaller relatives, with fewer layers."""
    width, heads, rank, rope, nope, head, words, layers = 2048, 16, 512, 64, 128, 128, 102400, 4
    entries = _common(
        layers=layers, width=width, feed_forward=10944, heads=heads, kv_heads=1, vocabulary=words,
        attention__key_length=rank + rope, attention__value_length=rank, attention__kv_lora_rank=rank,
        attention__q_lora_rank=1536,
        attention__key_length_mla=nope + rope, attention__value_length_mla=head, rope__dimension_count=rope,
        leading_dense_block_count=1, expert_count=64, expert_used_count=6, expert_shared_count=2,
        expert_feed_forward_length=1408, expert_weights_scale=1.0,
    )  # fmt: skip
    tensors = _ends(width, words)
    for number in range(layers):
        block: Tensors = {
            "attn_norm.weight": (width,),
            "attn_q_a.weight": (width, 1536),
            "attn_q_a_norm.weight": (1536,),
            "attn_q_b.weight": (1536, heads * (nope + rope)),
            "attn_kv_a_norm.weight": (rank,),
            "attn_kv_a_mqa.weight": (width, rank + rope),
            "attn_k_b.weight": (nope, rank, heads),
            "attn_v_b.weight": (rank, head, heads),
            "attn_output.weight": (heads * head, width),
        }
        if number == 0:
            block |= _feed_forward(width, 10944)
        else:
            block |= _experts(width, 1408, 64)
            block |= {
                "ffn_gate_shexp.weight": (width, 2816),
                "ffn_up_shexp.weight": (width, 2816),
                "ffn_down_shexp.weight": (2816, width),
            }
        tensors |= _block(number, block)
    return Architecture("deepseek2", entries, tensors)


def _mamba_block(width: int, inner: int, state: int, rank: int, kernel: int = 4) -> Tensors:
    return {
        "attn_norm.weight": (width,),
        "ssm_in.weight": (width, 2 * inner),
        "ssm_conv1d.weight": (kernel, inner),
        "ssm_conv1d.bias": (inner,),
        "ssm_x.weight": (inner, rank + 2 * state),
        "ssm_dt.weight": (rank, inner),
        "ssm_dt.bias": (inner,),
        "ssm_a": (state, inner),
        "ssm_d": (inner,),
        "ssm_out.weight": (inner, width),
    }


def mamba() -> Architecture:
    """The shape of Mamba 790M, with fewer layers."""
    width, layers, words = 1536, 8, 50280
    entries = _common(
        layers=layers, width=width, feed_forward=0, heads=0, kv_heads=0, vocabulary=words,
        ssm__conv_kernel=4, ssm__inner_size=3072, ssm__state_size=16, ssm__time_step_rank=96,
    )  # fmt: skip
    tensors = _ends(width, words, tied=True)
    for number in range(layers):
        tensors |= _block(number, _mamba_block(width, 3072, 16, 96))
    return Architecture("mamba", entries, tensors)


def jamba() -> Architecture:
    """Mamba with attention in every fourth layer, in the shape of Jamba's small relatives."""
    width, layers, words = 2560, 8, 65536
    kv_heads = [2 if number % 4 == 3 else 0 for number in range(layers)]
    entries = _common(
        layers=layers, width=width, feed_forward=8192, heads=20, kv_heads=kv_heads, vocabulary=words,
        ssm__conv_kernel=4, ssm__inner_size=5120, ssm__state_size=16, ssm__time_step_rank=160,
    )  # fmt: skip
    tensors = _ends(width, words, tied=True)
    for number, kv in enumerate(kv_heads):
        if kv:
            block = _attention(width, width, kv * 128)
        else:
            block = _mamba_block(width, 5120, 16, 160)
            block |= {"ssm_dt_norm.weight": (160,), "ssm_b_norm.weight": (16,), "ssm_c_norm.weight": (16,)}
        tensors |= _block(number, block | _feed_forward(width, 8192))
    return Architecture("jamba", entries, tensors)


def lfm2() -> Architecture:
    """The shape of LFM2 1.2B, with fewer layers: short convolutions beside attention."""
    width, layers, words = 2048, 6, 65536
    kv_heads = [8 if number in {2, 5} else 0 for number in range(layers)]
    entries = _common(
        layers=layers, width=width, feed_forward=8192, heads=32, kv_heads=kv_heads, vocabulary=words,
        shortconv__l_cache=3,
    )  # fmt: skip
    tensors = _ends(width, words, tied=True, norm="token_embd_norm")
    for number, kv in enumerate(kv_heads):
        if kv:
            block = _attention(width, width, kv * 64, 64)
        else:
            block = {
                "attn_norm.weight": (width,),
                "shortconv.conv.weight": (3, width),
                "shortconv.in_proj.weight": (width, 3 * width),
                "shortconv.out_proj.weight": (width, width),
            }
        tensors |= _block(number, block | _feed_forward(width, 8192))
    return Architecture("lfm2", entries, tensors)


def qwen35() -> Architecture:
    """A gated delta net with attention in every fourth layer, in the shape of Qwen3.5's small models."""
    width, layers, words, state, groups, rank = 2560, 8, 151936, 128, 16, 32
    value_width, conv = state * rank, 2 * state * groups + state * rank
    entries = _common(
        layers=layers, width=width, feed_forward=9728, heads=16, kv_heads=4, vocabulary=words,
        attention__key_length=256, attention__value_length=256, rope__dimension_count=64,
        rope__dimension_sections=Raw(9, struct.pack("<IQ4i", 5, 4, 11, 11, 10, 0)),
        full_attention_interval=4,
        ssm__conv_kernel=4, ssm__inner_size=value_width, ssm__state_size=state, ssm__time_step_rank=rank,
        ssm__group_count=groups,
    )  # fmt: skip
    tensors = _ends(width, words)
    for number in range(layers):
        if number % 4 == 3:
            block = _attention(width, 4096, 1024, 256) | {"attn_q.weight": (width, 8192)}
        else:
            block = {
                "attn_norm.weight": (width,),
                "attn_qkv.weight": (width, conv),
                "attn_gate.weight": (width, value_width),
                "ssm_conv1d.weight": (4, conv),
                "ssm_dt.bias": (rank,),
                "ssm_a": (rank,),
                "ssm_beta.weight": (width, rank),
                "ssm_alpha.weight": (width, rank),
                "ssm_norm.weight": (state,),
                "ssm_out.weight": (value_width, width),
            }
        block |= {name: shape for name, shape in _feed_forward(width, 9728).items() if name != "ffn_norm.weight"}
        tensors |= _block(number, block | {"post_attention_norm.weight": (width,)})
    return Architecture("qwen35", entries, tensors)


ALL: tuple[Callable[[], Architecture], ...] = (
    *(llama, qwen2, qwen3, gemma2, gemma3, mixtral, qwen3moe, deepseek2, mamba, jamba, lfm2, qwen35),
)
