"""What the model files of a comparison are, to the last bit: names, sizes, and hashes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from forespeak.compare.lanes import Plan
from forespeak.compare.plan_record import model_names
from forespeak.compare.report import file_record
from forespeak.models.shards import MOST_PARTS, shard_paths

Hash = Callable[[Path], str | None]
"""A file's SHA-256, computed once and kept (`forespeak.models.file_hashes`); None if it was stopped. Raises OSError."""


def model_paths(plan: Plan) -> tuple[Path, ...]:
    """The target and the drafts, each once."""
    return tuple(model_names(plan))


def model_records(plan: Plan, hash_of: Hash | None) -> list[dict[str, Any]]:
    """One for each model, called as in the plan; `hash_of` None: without hashes.

    A file that is gone has no size and no hash.
    """
    return [
        file_record(path)
        | {"file": name, "parts": [{"file": part.name, "sha256": _hash(part, hash_of)} for part in _parts(path)]}
        for path, name in model_names(plan).items()
    ]


def _parts(path: Path) -> list[Path]:
    """The files of a model: its own, all of a split one, or those of a folder."""
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.suffix in {".safetensors", ".json", ".jinja"})
    # A name may claim any number of parts.
    return list(islice(shard_paths(path), MOST_PARTS))


def _hash(path: Path, hash_of: Hash | None) -> str | None:
    try:
        return None if hash_of is None else hash_of(path)
    except OSError:
        return None
