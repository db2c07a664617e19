"""Recognises a model in the MLX format: a folder with config.json, tokenizer.json and safetensors files."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from forespeak.models.file_facts import FileFacts
from forespeak.models.gguf import GgufKind
from forespeak.models.mlx_vocabulary import CONFIG, SETTINGS, TOKENIZER, cached_mlx_fingerprint
from forespeak.models.shards import MOST_PARTS, missing_words, shard_name

INDEX, WEIGHTS = "model.safetensors.index.json", ".safetensors"

_MOST_JSON_BYTES = 16 << 20
# Written by other libraries: weights that MLX would have to convert first.
_FOREIGN_FORMATS = frozenset({"pt", "tf", "flax", "np"})
_TYPES = {"F32": "F32", "F16": "F16", "BF16": "BF16", "F64": "F64"}
# One of these stands for 32 / bits weights.
_PACKED = "U32"
_EXPERTS = re.compile(r"\.(?:experts|switch_mlp|switch_glu)\.")
_EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts")
_EXPERTS_USED = ("num_experts_per_tok", "num_experts_per_token", "moe_topk")

Json = dict[str, Any]


def may_be_mlx(names: Collection[str]) -> bool:
    """Whether a folder with files of these names may hold such a model."""
    return CONFIG in names and any(name.lower().endswith(WEIGHTS) for name in names)


def read_mlx_facts(folder: Path, names: Collection[str]) -> FileFacts | None:
    """The facts of a folder; None if it holds a model of another kind. Raises OSError if it cannot be read."""
    config = json_object(folder / CONFIG)
    if config is None or not isinstance(config.get("model_type"), str):
        return None
    bits = _quantised_bits(config)
    files = sorted(name for name in names if name.lower().endswith(WEIGHTS))
    headers: dict[str, Json] = {}
    problem = None
    for name in files:
        header = weights_header(folder / name)
        if isinstance(header, str):
            problem = problem or header
        else:
            headers[name] = header
    format_ = next((_metadata(header).get("format") for header in headers.values()), None)
    if format_ in _FOREIGN_FORMATS and bits is None:
        return None
    weights: Counter[str] = Counter()
    parameters = in_experts = 0
    for name, tensor in tensors_of(headers.values()):
        count = _count(name, tensor, bits)
        parameters += count
        in_experts += count if _EXPERTS.search(name) else 0
        if len(tensor.get("shape", ())) > 1:
            weights[str(tensor.get("dtype"))] += count
    return FileFacts(
        kind=GgufKind.MODEL,
        problem=_missing(folder, names, files) or problem,
        architecture=config["model_type"],
        parameters=parameters,
        expert_parameters=in_experts,
        experts=settings_number(config, *_EXPERT_COUNTS) or 0,
        experts_used=settings_number(config, *_EXPERTS_USED) or 0,
        context_length=settings_number(config, "max_position_embeddings", "max_seq_len", "n_positions"),
        has_template=_has_template(folder, names),
        mtp_layers=settings_number(config, "num_nextn_predict_layers", "mtp_num_hidden_layers") or 0,
        vocabulary_size=settings_number(config, "vocab_size"),
        vocabulary_fingerprint=cached_mlx_fingerprint(folder),
        label=_label(config, bits, weights),
    )


def json_object(path: Path) -> Json | None:
    """A file's JSON object; None if it holds something else. Raises OSError."""
    if path.stat().st_size > _MOST_JSON_BYTES:
        return None
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def settings_number(config: Json, *names: str) -> int | None:
    """A whole number of the settings; models that also see or hear keep those of their text part apart."""
    for place in (config, config.get("text_config")):
        for name in names:
            value = place.get(name) if isinstance(place, dict) else None
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def _quantisation(config: Json) -> Json:
    found = config.get("quantization") or config.get("quantization_config")
    return found if isinstance(found, dict) else {}


def _quantised_bits(config: Json) -> int | None:
    bits = _quantisation(config).get("bits")
    return bits if isinstance(bits, int) and bits in {1, 2, 3, 4, 5, 6, 8} else None


def _label(config: Json, bits: int | None, weights: Counter[str]) -> str | None:
    if bits is not None:
        mode = _quantisation(config).get("mode")
        return mode.upper() if isinstance(mode, str) and mode.lower().endswith(("fp4", "fp8")) else f"{bits}-bit"
    return _TYPES.get(weights.most_common(1)[0][0]) if weights else None


def weights_header(path: Path) -> Json | str:
    """The header of a safetensors file: a length in 8 bytes and a JSON text. In words, what is wrong with it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))[0]
        if length > min(size - 8, _MOST_JSON_BYTES):
            return f"“{path.name}” is incomplete or damaged."
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            return f"“{path.name}” is damaged."
    if not isinstance(header, dict):
        return f"“{path.name}” is damaged."
    ends = [tensor.get("data_offsets") for _, tensor in tensors_of([header])]
    if not all(isinstance(end, list) and len(end) == 2 and isinstance(end[1], int) for end in ends):
        return f"“{path.name}” is damaged."
    if 8 + length + max((end[1] for end in ends if end), default=0) > size:
        return f"“{path.name}” is incomplete: the download or the copy probably stopped early."
    return header


def _metadata(header: Json) -> Json:
    found = header.get("__metadata__")
    return found if isinstance(found, dict) else {}


def tensors_of(headers: Iterable[Json]) -> Iterable[tuple[str, Json]]:
    for header in headers:
        for name, tensor in header.items():
            if name != "__metadata__" and isinstance(tensor, dict):
                yield name, tensor


def _count(name: str, tensor: Mapping[str, Any], bits: int | None) -> int:
    """How many weights a tensor stands for. The scales and biases of packed ones are none themselves."""
    shape = tensor.get("shape")
    if not isinstance(shape, list) or not all(isinstance(length, int) and length >= 0 for length in shape):
        return 0
    count = math.prod(shape)
    if bits is None:
        return count
    if tensor.get("dtype") == _PACKED:
        return count * 32 // bits
    return 0 if name.endswith((".scales", ".biases")) else count


def _missing(folder: Path, names: Collection[str], files: list[str]) -> str | None:
    """Which files the folder lacks, in a sentence."""
    if INDEX in names:
        listed = (json_object(folder / INDEX) or {}).get("weight_map")
        wanted = {str(name) for name in listed.values()} if isinstance(listed, dict) else set()
        lacking = sorted(wanted - set(names))
        if lacking:
            part = shard_name(lacking[0])
            if part is not None:
                numbers = [other.number for name in lacking if (other := shard_name(name)) is not None]
                return missing_words(numbers, part.count)
            return f"“{lacking[0]}” is missing."
    parts = [part for name in files if (part := shard_name(name)) is not None]
    if parts:
        count = max(part.count for part in parts)
        gaps = set(range(1, min(count, MOST_PARTS) + 1)) - {part.number for part in parts if part.count == count}
        if gaps:
            return missing_words(gaps, count)
    return None if TOKENIZER in names else f"“{TOKENIZER}” is missing."


def _has_template(folder: Path, names: Collection[str]) -> bool:
    if "chat_template.jinja" in names or "chat_template.json" in names:
        return True
    settings = json_object(folder / SETTINGS) if SETTINGS in names else None
    return bool((settings or {}).get("chat_template"))
