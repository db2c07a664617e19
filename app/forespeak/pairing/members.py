"""A file or a folder as one of a pair: what it is, why it cannot take part, and its vocabulary, read when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forespeak.models.fingerprint import vocabulary_fingerprint
from forespeak.models.formats import ModelFormat, model_stem
from forespeak.models.gguf import GgufError, GgufHeader, GgufKind, LazyArray, Problem
from forespeak.models.mlx_folder import json_object
from forespeak.models.mlx_vocabulary import CONFIG, cached_mlx_fingerprint, cached_mlx_vocabulary
from forespeak.models.shards import MOST_PARTS, missing_words, shard_name
from forespeak.models.vocabulary import (
    Vocabulary,
    cached_fingerprint,
    cached_header,
    cached_vocabulary,
    read_vocabulary,
)
from forespeak.pairing.heads import is_head
from forespeak.pairing.verdict import Obstacle

# llama.cpp, src/llama-arch.cpp, `llm_arch_is_recurrent` and `llm_arch_is_hybrid`: a state that many tokens have been
# added up in, from which none can be taken back. Its engine here takes no draft for these.
NO_ROLLBACK = frozenset(
    {
        *("mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"),
        *("jamba", "falcon-h1", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe"),
        *("qwen3next", "kimi-linear", "bailingmoe3", "kimi-k3", "glm5-next", "qwen35", "qwen35moe", "qwen4exp"),
        *("deepseek4", "minimax-01"),
    }
)
# The same of mlx-lm's networks, by the name in config.json: those whose `make_cache` always makes an ArraysCache.
MLX_NO_ROLLBACK = frozenset(
    {
        *("mamba", "mamba2", "falcon_mamba", "rwkv7", "recurrent_gemma"),
        *("jamba", "falcon_h1", "plamo2", "lfm2", "lfm2_moe", "nemotron_h"),
        *("qwen3_next", "qwen3_5", "qwen3_5_moe", "kimi_linear"),
    }
)
# `llm_arch_is_diffusion`.
DIFFUSION = frozenset({"dream", "llada", "llada-moe", "rnd1"})
_ENCODER_DECODERS = frozenset({"t5"})
# llama.cpp, src/llama-vocab.cpp: kinds of tokenizer that it cannot use without their merges, and one way to cut text
# before them that has none.
_NEEDS_MERGES, _WITHOUT_MERGES = frozenset({"gpt2", "gemma4"}), "kimi-k2"

_OBSTACLES = {
    GgufKind.PROJECTOR: (Obstacle.PROJECTOR, "is a projector for images or sound, not a language model"),
    GgufKind.ADAPTER: (Obstacle.ADAPTER, "is an adapter for another model, not a whole one"),
    GgufKind.IMATRIX: (Obstacle.IMATRIX, "holds figures for quantising a model, not a model"),
    GgufKind.ENCODER: (Obstacle.ENCODER, "does not write text: it is an encoder, as embedding models are"),
    GgufKind.OTHER: (Obstacle.NO_MODEL, "does not say what model it is"),
}


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a file cannot take part in any pair, in a sentence."""

    obstacle: Obstacle
    reason: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """`name` is what people call it. `fingerprint` is equal where the vocabulary is, None where it was not looked at.

    `header` is a GGUF file's, of a split model the first part's; `network` is an MLX model's kind, by its settings.
    `read` gives the vocabulary, or raises GgufError.
    """

    name: str
    format: ModelFormat
    read: Callable[[], Vocabulary]
    fingerprint: str | None = None
    header: GgufHeader | None = None
    hindrance: Hindrance | None = None
    network: str | None = None

    @property
    def architecture(self) -> str | None:
        return self.network if self.header is None else self.header.architecture

    @property
    def is_head(self) -> bool:
        return self.header is not None and is_head(self.header)

    @property
    def is_vocabulary_only(self) -> bool:
        return self.header is not None and self.header.is_vocabulary_only

    @property
    def can_roll_back(self) -> bool:
        return self.architecture not in (NO_ROLLBACK if self.format is ModelFormat.GGUF else MLX_NO_ROLLBACK)


def member_at(path: Path) -> Member:
    """What lies at a path on disk: a GGUF file, of a split model its first part, or an MLX folder. Never raises."""
    try:
        if (path / CONFIG).is_file():
            read, fingerprint = partial(cached_mlx_vocabulary, path), cached_mlx_fingerprint(path)
            return Member(model_stem(path), ModelFormat.MLX, read, fingerprint, network=_network(path))
        header = cached_header(path)
        hindrance = hindrance_of(header) or _missing_parts(header)
        fingerprint = None if hindrance else cached_fingerprint(path)
    except GgufError as error:
        return _unreadable(path.name, error)
    return Member(path.name, ModelFormat.GGUF, partial(cached_vocabulary, path), fingerprint, header, hindrance)


def _network(folder: Path) -> str | None:
    """Which network a folder's settings name; what is wrong with them, reading the vocabulary says."""
    try:
        named = (json_object(folder / CONFIG) or {}).get("model_type")
    except OSError:
        return None
    return named if isinstance(named, str) else None


def member_of(header: GgufHeader) -> Member:
    """What a header tells, wherever its file lies. That the parts of a split model are all there is taken as given."""
    name = header.path.name
    try:
        hindrance = hindrance_of(header)
        fingerprint = None if hindrance else vocabulary_fingerprint(header)
    except GgufError as error:
        return _unreadable(name, error)
    return Member(name, ModelFormat.GGUF, partial(read_vocabulary, header), fingerprint, header, hindrance)


def hindrance_of(header: GgufHeader) -> Hindrance | None:
    """Why a file with this header can be neither target nor draft; None if nothing in the header says so."""
    name = header.path.name
    number, parts = header.shard
    if header.kind is GgufKind.LATER_SHARD:
        words = f"“{name}” is part {number} of {parts} of a model; the first part stands for all."
        return Hindrance(Obstacle.LATER_SHARD, words)
    if header.kind in _OBSTACLES:
        obstacle, words = _OBSTACLES[header.kind]
        return Hindrance(obstacle, f"“{name}” {words}.")
    if header.architecture in _ENCODER_DECODERS:
        return Hindrance(Obstacle.ENCODER, f"“{name}” reads with one network and writes with another; no draft can.")
    if header.architecture in DIFFUSION:
        words = f"“{name}” does not write from left to right: it is a diffusion model, and speculation needs an order."
        return Hindrance(Obstacle.NOT_LEFT_TO_RIGHT, words)
    merges = header.metadata.get("tokenizer.ggml.merges")
    if (
        header.text("tokenizer.ggml.model") in _NEEDS_MERGES
        and header.text("tokenizer.ggml.pre") != _WITHOUT_MERGES
        and not (isinstance(merges, LazyArray) and merges.holds_text)
    ):
        words = f"“{name}” is damaged. It lacks the merges that its tokenizer works with."
        return Hindrance(Obstacle.UNREADABLE, words, Problem.DAMAGED)
    return None


def _missing_parts(header: GgufHeader) -> Hindrance | None:
    """Raises GgufError for a part of a split model that is damaged."""
    path = header.path
    parts = header.shard[1]
    if parts == 1:
        return None
    named = shard_name(path.name)
    if named is None or named.count != parts:
        words = f"“{path.name}” is one of {parts} parts, and its name does not say what the others are called."
        return Hindrance(Obstacle.SHARD_MISSING, words)
    if parts > MOST_PARTS:
        words = f"“{path.name}” is incomplete. It claims to be one of {parts:,} parts, which no model has."
        return Hindrance(Obstacle.SHARD_MISSING, words)
    others = {number: path.with_name(named.part(number)) for number in range(2, parts + 1)}
    missing = [number for number, other in others.items() if not other.is_file()]
    if missing:
        return Hindrance(Obstacle.SHARD_MISSING, f"“{path.name}” is incomplete. {missing_words(missing, parts)}")
    for other in others.values():
        cached_header(other)
    return None


def _unreadable(name: str, error: GgufError) -> Member:
    def read() -> Vocabulary:
        raise error

    obstacle = Obstacle.NO_VOCABULARY if error.problem is Problem.NO_VOCABULARY else Obstacle.UNREADABLE
    hindrance = Hindrance(obstacle, f"{error.what} {error.why}".strip(), error.problem)
    return Member(name, ModelFormat.GGUF, read, hindrance=hindrance)
