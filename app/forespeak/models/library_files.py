"""Finds model files in a folder and below, and leaves out what is still being written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from forespeak.models.mlx_folder import WEIGHTS, may_be_mlx
from forespeak.models.roots import Root, RootKind
from forespeak.models.shards import MOST_PARTS, ShardName, shard_name

MOST_DEPTH = 8
MOST_ENTRIES = 200_000
"""A root may be a whole disk by mistake; the search must end."""

UNFINISHED = (".part", ".incomplete", ".downloadinprogress", ".crdownload", ".download", ".aria2", ".tmp", ".partial")
"""What programs add to the name of a file that they are still writing, or put beside it meanwhile."""

Identity = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file's name and state. `identity` (device, number) is the same where two names are one file.

    `linked`: it is a link, or has other names too, and removing this one frees nothing.
    """

    path: Path
    size: int
    modified_ns: int
    identity: tuple[int, int]
    linked: bool = False


@dataclass(frozen=True, slots=True)
class FoundModel:
    """The files of one model, the first part first.

    `shard` is the first file's name taken apart where it is one of several. `folder` is set for MLX, with the names of
    all files in it as `names`.
    """

    files: tuple[FoundFile, ...]
    shard: ShardName | None = None
    folder: Path | None = None
    names: frozenset[str] = frozenset()

    @property
    def path(self) -> Path:
        """What is loaded."""
        return self.folder or self.files[0].path

    @property
    def identity(self) -> Identity:
        return tuple(file.identity for file in self.files)


def find_models(root: Root, cancelled: Callable[[], bool] = lambda: False) -> list[FoundModel]:
    """The models in a root and below, without those that are still being written. Never raises OSError."""
    found: list[FoundModel] = []
    for folder, names in folders_of(root, cancelled):
        lower = {name.lower() for name in names}
        unfinished = {name[: -len(end)] for name in lower for end in UNFINISHED if name.endswith(end)}
        if may_be_mlx(names) and not any(name.endswith((WEIGHTS, ".json")) for name in unfinished):
            found += _mlx(folder, names)
        found += _ggufs(folder, [name for name in names if name.lower().endswith(".gguf")], unfinished)
    return _in_order_of_use(root, found)


def find_beside(path: Path) -> FoundModel | None:
    """The model that a file on disk belongs to: with the other parts of its set. None if it is still being written."""
    name = path.name
    part = shard_name(name)
    with_it = [name] if part is None else [part.part(number) for number in range(1, min(part.count, MOST_PARTS) + 1)]
    names = [each for each in with_it if (path.parent / each).is_file()]
    unfinished = {each.lower() for each in with_it if any((path.parent / (each + end)).exists() for end in UNFINISHED)}
    return next(iter(_ggufs(str(path.parent), names, unfinished)), None)


def find_mlx(folder: Path) -> FoundModel | None:
    """The MLX model that a folder may hold itself, not below."""
    try:
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return None
    return next(iter(_mlx(str(folder), names)), None) if may_be_mlx(names) else None


def _ggufs(folder: str, names: list[str], unfinished: set[str]) -> list[FoundModel]:
    found = []
    sets: dict[tuple[str, int], dict[int, str]] = {}
    coming = {(part.stem, part.count) for name in unfinished if (part := shard_name(name)) is not None}
    for name in names:
        part = shard_name(name)
        if part is not None and part.count > 1:
            if (part.stem.lower(), part.count) not in coming:
                sets.setdefault((part.stem, part.count), {})[part.number] = name
        elif name.lower() not in unfinished and (file := _look(folder, name)) is not None:
            found.append(FoundModel((file,)))
    for parts in sets.values():
        files = [file for number in sorted(parts) if (file := _look(folder, parts[number])) is not None]
        if files:
            found.append(FoundModel(tuple(files), shard_name(files[0].path.name)))
    return found


def _mlx(folder: str, names: list[str]) -> list[FoundModel]:
    weights = [name for name in names if name.lower().endswith(WEIGHTS)]
    files = tuple(file for name in weights if (file := _look(folder, name)) is not None)
    return [FoundModel(files, folder=Path(folder), names=frozenset(names))] if files else []


def _look(folder: str, name: str) -> FoundFile | None:
    path = Path(folder, name)
    try:
        about = path.stat()
        linked = about.st_nlink > 1 or path.is_symlink()
    except (OSError, ValueError):
        return None  # a link whose file is gone
    # Some file systems number nothing: then every name is a file of its own.
    identity = (about.st_dev, about.st_ino) if about.st_ino else (-1, hash(path))
    return FoundFile(path, about.st_size, about.st_mtime_ns, identity, linked)


def _in_order_of_use(root: Root, found: list[FoundModel]) -> list[FoundModel]:
    """In the Hugging Face cache, the snapshot that the main branch points to comes first: others may be old."""
    if root.kind is not RootKind.HUGGING_FACE:
        return found
    return sorted(found, key=lambda model: not _is_current(root.path, model.path))


def _is_current(cache: Path, path: Path) -> bool:
    repo, snapshot = snapshot_of(cache, path)
    if repo is None:
        return False
    try:
        return (cache / repo / "refs" / "main").read_text("ascii", "replace").strip() == snapshot
    except OSError:
        return False


def snapshot_of(cache: Path, path: Path) -> tuple[str | None, str]:
    """(the repo's folder, the commit) of a file in the Hugging Face cache: models--owner--name/snapshots/commit/…"""
    parts = path.relative_to(cache).parts
    if len(parts) > 2 and parts[0].startswith("models--") and parts[1] == "snapshots":
        return parts[0], parts[2]
    return None, ""


def repo_of(root: Root, path: Path) -> str | None:
    """`owner/name` of the repo that a model came from, where the folders tell."""
    if root.kind is RootKind.HUGGING_FACE:
        folder, _ = snapshot_of(root.path, path)
        return folder.removeprefix("models--").replace("--", "/", 1) if folder is not None else None
    if root.kind not in {RootKind.OWN, RootKind.LM_STUDIO}:
        return None
    parts = path.relative_to(root.path).parts
    wanted = 2 if path.is_dir() else 3
    return "/".join(parts[:2]) if len(parts) >= wanted else None


def folders_of(root: Root, cancelled: Callable[[], bool] = lambda: False) -> Iterator[tuple[str, list[str]]]:
    """Every folder of a root that may hold models, with the names of its files."""
    if root.kind is not RootKind.HUGGING_FACE:
        yield from folders_below(root.path, cancelled)
        return
    # The cache may hold data sets with a million files beside them.
    try:
        repos = sorted(path.name for path in root.path.iterdir() if path.name.startswith("models--"))
    except OSError:
        return
    for repo in repos:
        yield from folders_below(root.path / repo / "snapshots", cancelled)


def folders_below(top: Path, cancelled: Callable[[], bool] = lambda: False) -> Iterator[tuple[str, list[str]]]:
    """Every folder with the names of its files. Hidden ones are left out; links to folders are followed once."""
    seen: set[tuple[int, int]] = set()
    waiting = [(str(top), 0)]
    entries_left = MOST_ENTRIES
    while waiting and entries_left > 0 and not cancelled():
        folder, depth = waiting.pop()
        names, below = [], []
        try:
            about = os.stat(folder)  # noqa: PTH116 - thousands of them
            if about.st_ino and (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            with os.scandir(folder) as listing:
                for entry in listing:
                    entries_left -= 1
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        below.append(entry.path)
                    else:
                        names.append(entry.name)
        except (OSError, ValueError):
            continue  # forbidden, or gone
        if depth < MOST_DEPTH:
            waiting += [(path, depth + 1) for path in sorted(below, reverse=True)]
        yield folder, sorted(names)
