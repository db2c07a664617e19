"""One model of the library: what lies on disk and what its header says, put together from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.models.file_facts import FileFacts, parameters_of, quantisation_of, read_facts
from forespeak.models.formats import NO_MLX, ModelFormat, mlx_is_installed, model_stem
from forespeak.models.gguf import GgufKind
from forespeak.models.library_files import FoundModel, Identity, repo_of
from forespeak.models.mlx_folder import read_mlx_facts
from forespeak.models.roots import Root
from forespeak.models.shards import MOST_PARTS, missing_words, shard_name


@dataclass(frozen=True, slots=True)
class LibraryItem:
    """One model, or a file that belongs to one: what lies on disk and what its header says.

    `path` is what an engine loads: the file, the first part of a split model, or the MLX folder; `files` are all of it.
    `name` is the file's or folder's, without suffix and part number, `title` what the header calls itself. `repo` is
    `owner/name` where the folders tell. `parameters` counts all parts; `active_parameters` is set where a token uses
    only some of them (mixture of experts). `mtp_layers` counts the layers that predict more than the next token.
    Two items with the same `vocabulary_fingerprint` have the same vocabulary, to the last token and setting; where the
    fingerprints differ the vocabularies may still fit, for example if one is only padded: ask pairing.compatibility.
    `modified` is in seconds since 1970. `linked`: all of it has other names too, and removing it here frees nothing.
    `problem` says in words why the files cannot be used as they are.
    """

    path: Path
    files: tuple[Path, ...]
    root: Root
    format: ModelFormat
    kind: GgufKind
    name: str
    size_bytes: int
    modified: float
    title: str | None = None
    repo: str | None = None
    architecture: str | None = None
    parameters: int | None = None
    active_parameters: int | None = None
    quantisation: str | None = None
    context_length: int | None = None
    vocabulary_size: int | None = None
    vocabulary_fingerprint: str | None = None
    has_template: bool = False
    mtp_layers: int = 0
    problem: str | None = None
    linked: bool = False
    identity: Identity = field(default=(), repr=False)

    @property
    def usable(self) -> bool:
        """Whether it can be a target or a draft model."""
        return self.unusable_because is None

    @property
    def unusable_because(self) -> str | None:
        """Why it can be neither a target nor a draft model, in a sentence; None if it can."""
        if self.problem is not None:
            return self.problem
        if self.format is ModelFormat.MLX and not mlx_is_installed():
            return NO_MLX
        return _UNUSABLE.get(self.kind)


_UNUSABLE = {
    GgufKind.VOCABULARY_ONLY: "It holds a vocabulary but no weights.",
    GgufKind.PROJECTOR: "It is a projector for images or sound, not a language model.",
    GgufKind.ADAPTER: "It is an adapter for another model, not a whole one.",
    GgufKind.IMATRIX: "It holds figures for quantising a model, not a model.",
    GgufKind.ENCODER: "It does not write text: it is an encoder.",
    GgufKind.DRAFT_HEAD: "It is a draft head made for one target, and no model of its own.",
    GgufKind.LATER_SHARD: "It is a later part of a split model whose first part is not here under the right name.",
    GgufKind.OTHER: "It does not say what model it is.",
}


def look_at(root: Root, model: FoundModel) -> LibraryItem | None:
    """The item that a model on disk is, read anew; None if it is none. Raises GgufError, OSError."""
    if model.folder is not None:
        facts = read_mlx_facts(model.folder, model.names)
        return None if facts is None else item_of(root, model, [facts])
    return item_of(root, model, [read_facts(file.path) for file in model.files])


def item_of(root: Root, model: FoundModel, parts: Sequence[FileFacts]) -> LibraryItem | None:
    """None for a folder that holds a model of another kind."""
    first, shard = parts[0], model.shard
    if first.problem == "":
        return None
    parameters, active = parameters_of(parts)
    item = LibraryItem(
        path=model.path,
        files=tuple(file.path for file in model.files),
        root=root,
        format=ModelFormat.GGUF if model.folder is None else ModelFormat.MLX,
        kind=first.kind,
        name=_name_of(model),
        size_bytes=sum(file.size for file in model.files),
        modified=max(file.modified_ns for file in model.files) / 1e9,
        title=first.title,
        repo=repo_of(root, model.path),
        architecture=first.architecture,
        parameters=parameters or None,
        active_parameters=active,
        quantisation=quantisation_of(parts),
        context_length=first.context_length,
        vocabulary_size=first.vocabulary_size,
        vocabulary_fingerprint=first.vocabulary_fingerprint,
        has_template=first.has_template,
        mtp_layers=first.mtp_layers,
        problem=_problem_of(model, parts),
        linked=all(file.linked for file in model.files),
        identity=model.identity,
    )
    # The parts say so together, also where the first one is missing.
    return item if shard is None or item.kind is not GgufKind.LATER_SHARD else replace(item, kind=GgufKind.MODEL)


def _name_of(model: FoundModel) -> str:
    if model.folder is not None:
        return model_stem(model.folder)
    return model.path.stem if model.shard is None else model.shard.stem


def _problem_of(model: FoundModel, parts: Sequence[FileFacts]) -> str | None:
    said = next((part.problem for part in parts if part.problem is not None), None)
    if model.folder is not None or said is not None:
        return said
    shard, (number, count) = model.shard, parts[0].shard
    if shard is None:
        if count == 1:
            return None
        return (
            f"It is part {number} of {count} of a split model, and its name does not say so: the other parts cannot be "
            f"found. It should end in -{number:05d}-of-{count:05d}.gguf."
        )
    numbers = _numbers(model)
    if len(numbers) < shard.count:
        # Not the whole range: a name may claim any number of parts.
        lacking = [each for each in range(1, min(shard.count, MOST_PARTS) + 1) if each not in numbers]
        return missing_words(lacking, shard.count)
    for file, part, wanted in zip(model.files, parts, sorted(numbers), strict=True):
        if part.shard != (wanted, shard.count):
            place = f"part {part.shard[0]} of {part.shard[1]}" if part.shard[1] > 1 else "a whole model"
            return f"“{file.path.name}” holds {place}, and not what its name says."
    return None


def _numbers(model: FoundModel) -> set[int]:
    names = (shard_name(file.path.name) for file in model.files)
    return {part.number for part in names if part is not None}
