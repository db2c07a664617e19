"""Recognises a model in the MLX format: a folder with config.json, tokenizer.json and safetensors files."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TypeGuard

from forespeak.models.file_facts import FileFacts
from forespeak.models.gguf import GgufKind
from forespeak.models.mlx_vocabulary import CONFIG, SETTINGS, TOKENIZER, cached_mlx_fingerprint
from forespeak.models.shards import MOST_PARTS, missing_words, shard_name

INDEX, WEIGHTS = "model.safetensors.index.json", ".safetensors"

_METADATA = "__metadata__"
_MOST_JSON_BYTES = 16 << 20
_MOST_NUMBER = 1 << 32
"""Settings may hold anything; nothing in them is as large as this."""
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
    if isinstance(format_, str) and format_ in _FOREIGN_FORMATS and bits is None:
        return None
    weights: Counter[str] = Counter()
    parameters = in_experts = 0
    for name, tensor in tensors_of(headers.values()):
        count = _count(name, tensor, bits)
        parameters += count
        in_experts += count if _EXPERTS.search(name) else 0
        if len(tensor["shape"]) > 1:
            weights[tensor["dtype"]] += count
    return FileFacts(
        kind=GgufKind.MODEL,
        problem=_missing(folder, names, files) or problem,
        architecture=_shown(config["model_type"]),
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
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_NUMBER:
                return value
    return None


def _shown(text: str) -> str:
    """A text that can be written anywhere: JSON may hold halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _quantisation(config: Json) -> Json:
    found = config.get("quantization") or config.get("quantization_config")
    return found if isinstance(found, dict) else {}


def _quantised_bits(config: Json) -> int | None:
    bits = _quantisation(config).get("bits")
    return bits if type(bits) is int and bits in {1, 2, 3, 4, 5, 6, 8} else None


def _label(config: Json, bits: int | None, weights: Counter[str]) -> str | None:
    if bits is not None:
        mode = _quantisation(config).get("mode")
        return (
            _shown(mode).upper() if isinstance(mode, str) and mode.lower().endswith(("fp4", "fp8")) else f"{bits}-bit"
        )
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
    ends = [_end_of(tensor) for name, tensor in header.items() if name != _METADATA]
    whole = [end for end in ends if end is not None]
    if len(whole) < len(ends):
        return f"“{path.name}” is damaged."
    if 8 + length + max(whole, default=0) > size:
        return f"“{path.name}” is incomplete: the download or the copy probably stopped early."
    return header


def _end_of(tensor: object) -> int | None:
    """Where a tensor's values end; None unless all that is said of it can be: its type, its shape and its place."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("dtype"), str):
        return None
    shape, place = tensor.get("shape"), tensor.get("data_offsets")
    if not _are_counts(shape) or not _are_counts(place) or len(place) != 2 or place[0] > place[1]:
        return None
    # No value takes less than a bit, so what a shape may multiply to has an end.
    most, values = 8 * (place[1] - place[0]), 0 if 0 in shape else 1
    for length in shape:
        values *= length
        if values > most:
            return None
    return place[1]


def _are_counts(found: object) -> TypeGuard[list[int]]:
    # A bool is an int too, and JSON tells them apart.
    return isinstance(found, list) and all(type(each) is int and each >= 0 for each in found)


def _metadata(header: Json) -> Json:
    found = header.get(_METADATA)
    return found if isinstance(found, dict) else {}


def tensors_of(headers: Iterable[Json]) -> Iterable[tuple[str, Json]]:
    """Of headers that `weights_header` found to be in order."""
    for header in headers:
        for name, tensor in header.items():
            if name != _METADATA:
                yield name, tensor


def _count(name: str, tensor: Json, bits: int | None) -> int:
    """How many weights a tensor stands for. The scales and biases of packed ones are none themselves."""
    shape = tensor["shape"]
    # Or large numbers before a zero are multiplied for minutes.
    count = 0 if 0 in shape else math.prod(shape)
    if bits is None:
        return count
    if tensor["dtype"] == _PACKED:
        return count * 32 // bits
    return 0 if name.endswith((".scales", ".biases")) else count


def _missing(folder: Path, names: Collection[str], files: list[str]) -> str | None:
    """Which files the folder lacks, in a sentence."""
    if INDEX in names:
        listed = (json_object(folder / INDEX) or {}).get("weight_map")
        listed = listed.values() if isinstance(listed, dict) else ()
        wanted = {name for name in listed if isinstance(name, str)}
        lacking = sorted(wanted - set(names))
        if lacking:
            part = shard_name(lacking[0])
            if part is not None:
                numbers = [other.number for name in lacking if (other := shard_name(name)) is not None]
                return missing_words(numbers, part.count)
            return f"“{_shown(lacking[0])}” is missing."
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
