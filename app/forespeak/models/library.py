"""The models on this computer: found in several folders, recognised by their headers, and looked after in our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forespeak.models.file_facts import FileFacts, parameters_of, quantisation_of, read_facts
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError, GgufKind
from forespeak.models.library_files import FoundFile, find_files
from forespeak.models.roots import Root, own_root
from forespeak.models.shards import ShardName, missing_words, shard_name

__all__ = ["Library", "LibraryItem", "ModelFormat", "Root"]

Progress = Callable[[int, int], None]
"""(done, of how many): files while the library is read, bytes while files are moved."""


@dataclass(frozen=True, slots=True)
class LibraryItem:
    """One model, or a file that belongs to one: what lies on disk and what its header says.

    `path` is what an engine loads: the file, the first part of a split model, or the MLX folder; `files` are all of it.
    `name` is the file's or folder's, without suffix and part number, `title` what the header calls itself. `repo` is
    `owner/name` where the folders tell. `parameters` counts all parts; `active_parameters` is set where a token uses
    only some of them (mixture of experts). `mtp_layers` counts the layers that predict more than the next token.
    `modified` is in seconds since 1970. `problem` says in words why the files cannot be used as they are.
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
    identity: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    @property
    def usable(self) -> bool:
        """Whether it can be a target or a draft model."""
        return self.unusable_because is None

    @property
    def unusable_because(self) -> str | None:
        """Why it can be neither a target nor a draft model, in a sentence; None if it can."""
        if self.problem is not None:
            return self.problem
        if self.format is ModelFormat.MLX:
            return "Models in the MLX format cannot be run yet."
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


class Library:
    """`own` is the folder that is ours to change, `roots` are read only. `cache` is the folder for what is known."""

    def __init__(self, own: Path, roots: Sequence[Root], cache: Path) -> None:
        self._own = own
        self._roots = tuple(roots)
        self._cache = cache

    @property
    def roots(self) -> tuple[Root, ...]:
        """Our own folder first."""
        return own_root(self._own), *self._roots

    def scan(
        self, progress: Progress | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[LibraryItem, ...]:
        """Everything there is, by name. What is seen through two roots or links is one item.

        Never raises for what a file holds. When cancelled, what was found until then is returned.
        """
        groups = [
            (root, group) for root in self.roots for group in _groups(find_files(root, cancelled)) if not cancelled()
        ]
        seen: set[tuple[tuple[int, int], ...]] = set()
        items = []
        for done, (root, group) in enumerate(groups):
            if progress is not None:
                progress(done, len(groups))
            if cancelled():
                break
            item = _item(root, group)
            if item is not None and item.identity not in seen:
                seen.add(item.identity)
                items.append(item)
        if progress is not None:
            progress(len(groups), len(groups))
        return tuple(sorted(items, key=lambda item: (item.name.casefold(), str(item.path))))


@dataclass(frozen=True, slots=True)
class _Group:
    """The files of one model by part number, and the name they share."""

    files: dict[int, FoundFile]
    shard: ShardName | None


def _groups(files: Sequence[FoundFile]) -> Iterator[_Group]:
    """Shard sets together, in the order in which their first file was found."""
    sets: dict[tuple[Path, str, int], _Group] = {}
    for file in files:
        shard = shard_name(file.path.name)
        if shard is None or shard.count == 1:
            yield _Group({1: file}, None)
        else:
            key = (file.path.parent, shard.stem, shard.count)
            sets.setdefault(key, _Group({}, shard)).files[shard.number] = file
    yield from sets.values()


def _item(root: Root, group: _Group) -> LibraryItem | None:
    """None if the file has gone or cannot be reached."""
    files = [file for _, file in sorted(group.files.items())]
    try:
        parts = [read_facts(file.path) for file in files]
    except GgufError:
        return None
    first = files[0]
    shard = group.shard
    missing = () if shard is None else tuple(set(range(1, shard.count + 1)) - set(group.files))
    parameters, active = parameters_of(parts)
    return LibraryItem(
        path=first.path,
        files=tuple(file.path for file in files),
        root=root,
        format=ModelFormat.GGUF,
        kind=parts[0].kind,
        name=first.path.stem if shard is None else shard.stem,
        size_bytes=sum(file.size for file in files),
        modified=max(file.modified_ns for file in files) / 1e9,
        title=parts[0].title,
        architecture=parts[0].architecture,
        parameters=parameters or None,
        active_parameters=active,
        quantisation=quantisation_of(parts),
        context_length=parts[0].context_length,
        vocabulary_size=parts[0].vocabulary_size,
        vocabulary_fingerprint=parts[0].vocabulary_fingerprint,
        has_template=parts[0].has_template,
        mtp_layers=parts[0].mtp_layers,
        problem=missing_words(missing, shard.count) if shard and missing else _problem_of(parts),
        identity=tuple(file.identity for file in files),
    )


def _problem_of(parts: Sequence[FileFacts]) -> str | None:
    return next((part.problem for part in parts if part.problem is not None), None)
