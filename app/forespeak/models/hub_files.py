"""The files of a Hub repo as the models they make up: by quant and parts, projectors apart.

Everything here goes by names and sizes alone. What a file really is, its header tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from forespeak.models.formats import ModelFormat
from forespeak.models.gguf_kind import GgufKind
from forespeak.models.shards import MOST_PARTS, ShardName, missing_words, shard_name


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repo. `path` is relative to the repo, with `/`, and comes from the network: it may be hostile.

    `sha256` is known of large files; None means that only the size can be checked.
    """

    path: str
    size_bytes: int
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class HubFileGroup:
    """The files of one commit that are loaded together: a model, a projector, or an importance matrix.

    `revision` is the commit's hash. `label` is the quant as people call it (`Q4_K_M`, `4-bit`), None where the names
    do not tell. `files` are in loading order, the first part first. `shards` is how many parts the set should have,
    `missing` the numbers of those that the repo lacks, counted from 1.
    """

    repo: str
    revision: str
    label: str | None
    format: ModelFormat
    files: tuple[HubFile, ...]
    shards: int = 1
    kind: GgufKind = GgufKind.MODEL
    missing: tuple[int, ...] = ()

    @property
    def size_bytes(self) -> int:
        """What is to be downloaded, all files together."""
        return sum(file.size_bytes for file in self.files)

    @property
    def name(self) -> str:
        """What tells it from others of the same label: the file's name without part number and ending."""
        if self.format is ModelFormat.MLX or not self.files:
            return self.repo.rpartition("/")[2]
        name = self.files[0].name
        part = _part(name)
        return part.stem if part else name[: -len(".gguf")]

    @property
    def problem(self) -> str | None:
        """Why it cannot be downloaded, in a sentence; None if it can."""
        return missing_words(self.missing, self.shards) if self.missing else None

    @property
    def downloadable(self) -> bool:
        return self.problem is None


_QUANT = re.compile(
    r"(?<![A-Z0-9])(?P<label>(?:UD-)?(?:"
    r"I?Q\d_(?:K|NL|\d_\d_\d|\d)(?:_(?:XXS|XS|S|M|L|XL|XXL))?"
    r"|IQ\d_(?:XXS|XS|S|M|XL)"
    r"|TQ\d_\d"
    r"|(?:MX|NV)FP4(?:_MOE)?"
    r"|BF16|FP?16|FP?32"
    r"))(?![A-Z0-9])"
)
"""An optional `UD-`, a quant's name, an optional suffix, in an upper-cased file name; its last match counts."""

_SAME = {"FP16": "F16", "FP32": "F32"}
_MLX_BITS = re.compile(r"(?<![a-z0-9])(?:(?P<bits>\d)-?bit|(?P<name>bf16|fp16|mxfp4|mxfp8|nvfp4))(?![a-z0-9])")
# What mlx-lm loads, without Python code, which is never wanted from a repo.
_MLX_FILES = ("*.json", "*.safetensors", "*.model", "*.tiktoken", "*.txt", "*.jsonl", "*.jinja")


def quant_label(path: str) -> str | None:
    """The quant that a file's name tells, such as `Q4_K_M` or `UD-Q4_K_XL`; else its folders', the nearest first."""
    for name in reversed(PurePosixPath(path).parts):
        found = [match["label"] for match in _QUANT.finditer(name.upper())]
        if found:
            return _SAME.get(found[-1], found[-1])
    return None


def group_files(repo: str, revision: str, files: Iterable[HubFile], mlx: bool = False) -> tuple[HubFileGroup, ...]:
    """The groups of a repo's files: models by size, incomplete ones last; then projectors, importance matrices.

    `mlx` says whether the repo is one for MLX: then its files are one group. Other files (cards, pictures) are in none.
    """
    listed = sorted(files, key=lambda file: file.path)
    groups = _gguf_groups(repo, revision, [file for file in listed if file.path.lower().endswith(".gguf")])
    if mlx and (model := _mlx_group(repo, revision, listed)) is not None:
        groups.append(model)
    kinds = (GgufKind.MODEL, GgufKind.PROJECTOR, GgufKind.IMATRIX)
    return tuple(
        sorted(
            groups,
            key=lambda each: (kinds.index(each.kind), not each.downloadable, each.size_bytes, each.files[0].path),
        )
    )


def _gguf_groups(repo: str, revision: str, files: Sequence[HubFile]) -> list[HubFileGroup]:
    groups: list[HubFileGroup] = []
    sets: dict[tuple[str, int], dict[int, HubFile]] = {}
    for file in files:
        part = _part(file.name)
        if part is not None:
            folder = file.path[: -len(file.name)]
            sets.setdefault((folder + part.stem, part.count), {})[part.number] = file
        else:
            label = quant_label(file.path)
            groups.append(
                HubFileGroup(repo, revision, label, ModelFormat.GGUF, (file,), kind=_kind_by_name(file.name, label))
            )
    for (stem, count), parts in sets.items():
        label = quant_label(stem)
        groups.append(
            HubFileGroup(
                repo,
                revision,
                label,
                ModelFormat.GGUF,
                tuple(parts[number] for number in sorted(parts)),
                shards=count,
                kind=_kind_by_name(stem.rpartition("/")[2], label),
                missing=_missing(parts, count),
            )
        )
    return groups


def _part(name: str) -> ShardName | None:
    part = shard_name(name)
    return part if part is not None and part.count <= MOST_PARTS else None


def _missing(parts: Iterable[int], count: int) -> tuple[int, ...]:
    return tuple(sorted(set(range(1, count + 1)) - set(parts)))


def _kind_by_name(name: str, label: str | None) -> GgufKind:
    lowered = name.lower()
    if "mmproj" in lowered:
        return GgufKind.PROJECTOR
    # A quant beside the word says that the model was made with such a matrix.
    if "imatrix" in lowered and label is None:
        return GgufKind.IMATRIX
    return GgufKind.MODEL


def _mlx_group(repo: str, revision: str, files: Sequence[HubFile]) -> HubFileGroup | None:
    # Folders hold other things: the original weights, pictures, adapters.
    wanted = [
        file
        for file in files
        if "/" not in file.path and any(fnmatchcase(file.path.lower(), pattern) for pattern in _MLX_FILES)
    ]
    weights = [file for file in wanted if file.path.lower().endswith(".safetensors")]
    if not weights:
        return None
    parts = [part for file in weights if (part := _part(file.path))]
    shards = max((part.count for part in parts), default=1)
    missing = _missing((part.number for part in parts if part.count == shards), shards) if parts else ()
    return HubFileGroup(repo, revision, mlx_label(repo), ModelFormat.MLX, tuple(wanted), shards, missing=missing)


def mlx_label(repo: str) -> str | None:
    """The number format that the name of an MLX repo tells, such as `4-bit`; None if it tells none."""
    found = list(_MLX_BITS.finditer(repo.rpartition("/")[2].lower()))
    if not found:
        return None
    bits, name = found[-1]["bits"], found[-1]["name"]
    return f"{bits}-bit" if bits else _SAME.get(name.upper(), name.upper())
