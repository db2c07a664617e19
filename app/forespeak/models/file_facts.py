"""What the library keeps of a GGUF file's header: little, plain, and enough to list it without reading it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forespeak.models.fingerprint import vocabulary_fingerprint
from forespeak.models.gguf import GgufError, GgufKind, KnownTexts, read_header
from forespeak.models.gguf_values import LazyArray
from forespeak.models.quantisation import quantisation_label


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One file's header. `weights` counts its weights by tensor type (matrices only), `parameters` all of them.

    `problem` says in words why the file cannot be used; then the other fields may be empty. `label` is the number
    format where the file names it in words. Of an MLX folder, all files are one.
    """

    kind: GgufKind
    problem: str | None = None
    title: str | None = None
    architecture: str | None = None
    parameters: int = 0
    expert_parameters: int = 0
    experts: int = 0
    experts_used: int = 0
    file_type: int | None = None
    weights: tuple[tuple[str, int], ...] = ()
    context_length: int | None = None
    shard: tuple[int, int] = (1, 1)
    has_template: bool = False
    mtp_layers: int = 0
    vocabulary_size: int | None = None
    vocabulary_fingerprint: str | None = None
    label: str | None = None


def read_facts(path: Path, known: KnownTexts | None = None) -> FileFacts:
    """The facts of a file on disk; one that is damaged has a `problem`. Raises GgufError if it cannot be read at all.

    (What is damaged stays so until the file changes; a disk that is away comes back.)
    """
    try:
        header = read_header(path, known)
        tokens = header.metadata.get("tokenizer.ggml.tokens")
        weights: Counter[str] = Counter()
        for tensor in header.tensors:
            if len(tensor.shape) > 1:
                weights[tensor.type] += tensor.parameters
        architecture = header.architecture
        return FileFacts(
            kind=header.kind,
            title=header.text("general.name"),
            architecture=architecture,
            parameters=header.parameters,
            expert_parameters=header.expert_parameters,
            experts=header.integer(f"{architecture}.expert_count") or 0,
            experts_used=header.integer(f"{architecture}.expert_used_count") or 0,
            file_type=header.integer("general.file_type"),
            weights=tuple(weights.items()),
            context_length=header.context_length,
            shard=header.shard,
            has_template=header.has_template,
            mtp_layers=header.mtp_layers,
            vocabulary_size=tokens.count if isinstance(tokens, LazyArray) else None,
            vocabulary_fingerprint=vocabulary_fingerprint(header),
        )
    except GgufError as error:
        if error.problem.passes:
            raise
        # It stands beside the file's name.
        what = error.what.replace(f"“{path.name}”", "It", 1)
        return FileFacts(GgufKind.OTHER, problem=" ".join(part for part in (what, error.why) if part))


def parameters_of(parts: Sequence[FileFacts]) -> tuple[int, int | None]:
    """(all weights, those that take part in each token or None if all do) of a model in one or several files."""
    total = sum(part.parameters for part in parts)
    experts, used = parts[0].experts, parts[0].experts_used
    in_experts = sum(part.expert_parameters for part in parts)
    if not 0 < used < experts or not in_experts:
        return total, None
    return total, total - in_experts + in_experts * used // experts


def quantisation_of(parts: Sequence[FileFacts]) -> str | None:
    """What people call the number format of a model in one or several files; None without weights."""
    if parts[0].label is not None or not any(part.parameters for part in parts):
        return parts[0].label
    return quantisation_label(parts[0].file_type, [weight for part in parts for weight in part.weights])
