"""Brings models from elsewhere into our own folder: copied, moved, or under a second name."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.file_lock import FileLock
from forespeak.models.gguf import read_header
from forespeak.models.library_files import FoundModel, find_beside, find_mlx, find_models
from forespeak.models.library_item import look_at
from forespeak.models.roots import Root, added_root, own_root
from forespeak.models.transfer import (
    Progress,
    StoppedError,
    check_space,
    copy_file,
    explained,
    link_file,
    same_content,
)
from forespeak.whole_file import sync_folder

STAGING = ".forespeak-import-"
_SUFFIX, _LOCK = ".gguf", ".lock"


class ImportWay(Enum):
    """What becomes of the files where they are: `COPY` and `LINK` leave them, and a link takes no space."""

    COPY = "copy"
    MOVE = "move"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """`paths` are what to load of each model that is in our folder now. `refused` says of the others why not.

    `there`: those of `paths` that were in our folder before, to the last byte. Nothing was done for them.
    """

    paths: tuple[Path, ...] = ()
    refused: tuple[UserFacingError, ...] = ()
    cancelled: bool = False
    there: tuple[Path, ...] = ()


def import_models(
    roots: Sequence[Root], sources: Sequence[Path], way: ImportWay, progress: Progress, cancelled: Callable[[], bool]
) -> ImportResult:
    """As Library.import_models. The first of the roots is our own."""
    importer = _Importer(roots, way, progress, cancelled)
    try:
        importer.run(sources)
    except StoppedError:
        importer.cancelled = True
    return importer.result()


class _Importer:
    def __init__(
        self, roots: Sequence[Root], way: ImportWay, progress: Progress, cancelled: Callable[[], bool]
    ) -> None:
        self._own = roots[0].path
        self._others = roots[1:]
        self._way = way
        self._progress = progress
        self._stopped = cancelled
        self._done = self._total = 0
        self.paths: list[Path] = []
        self.refused: list[UserFacingError] = []
        self.there: list[Path] = []
        self.cancelled = False

    def result(self) -> ImportResult:
        return ImportResult(tuple(self.paths), tuple(self.refused), self.cancelled, tuple(self.there))

    def run(self, sources: Sequence[Path]) -> None:
        models: list[FoundModel] = []
        for source in sources:
            try:
                found = _models_at(source)
            except UserFacingError as error:
                self.refused.append(error)
            else:
                models += [model for model in found if model.identity not in {other.identity for other in models}]
        # Before: of a folder that is moved, nothing is left to be asked afterwards.
        sizes = [_size(model) for model in models]
        self._total = sum(sizes)
        self._progress(0, self._total)
        for model, size in zip(models, sizes, strict=True):
            before = self._done
            try:
                self.paths.append(self._import(model))
            except UserFacingError as error:
                self.refused.append(error)
            except OSError as error:
                self.refused.append(explained(f"“{_shown(model)}” could not be imported.", self._own, error))
            self._done = before
            self._copied(size)

    def _copied(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def _import(self, model: FoundModel) -> Path:
        """What is loaded of the imported model. Raises UserFacingError, OSError, StoppedError."""
        if self._stopped():
            raise StoppedError
        if _is_below(model.path, self._own):
            self.there.append(model.path)
            return model.path
        owner = next((root for root in self._others if _is_below(model.path, root.path)), None)
        if self._way is ImportWay.MOVE and owner is not None:
            raise UserFacingError(
                f"“{_shown(model)}” cannot be moved away.",
                f"It lies in a folder that Forespeak only reads ({owner.label}): another program may rely on it.",
                "Copy or link it.",
            )
        item = look_at(added_root(model.path.parent), model)
        problem = item.problem if item is not None else "It is not a model in the GGUF or MLX format."
        if problem is not None:
            raise UserFacingError(
                f"“{_shown(model)}” cannot be imported.", problem, "Choose another file, or get this one again."
            )
        twin = self._twin(model)
        if twin is not None:
            # Also when it was to be moved: nothing that somebody has twice is deleted unasked.
            self.there.append(twin.path)
            return twin.path
        if not self._shares_bytes(model):
            check_space(self._own, _size(model), f"to import “{_shown(model)}”")
        self._own.mkdir(parents=True, exist_ok=True)
        staging = self._own / f"{STAGING}{uuid.uuid4().hex[:8]}"
        # The lock tells another process, and the next start, whether somebody is still at it.
        with FileLock(staging.with_name(staging.name + _LOCK)) as lock:
            lock.acquire()
            staging.mkdir()
            try:
                path = self._through(staging, model)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        sync_folder(self._own)
        if self._way is ImportWay.MOVE:
            self._remove_sources(model)
        return path

    def _twin(self, model: FoundModel) -> FoundModel | None:
        """A model of our own folder that is the same to the last byte. Raises OSError, StoppedError."""
        before = self._done
        for other in find_models(own_root(self._own), self._stopped):
            if other.identity == model.identity or (_shape(other) == _shape(model) and self._same(other, model)):
                return other
            self._done = before
        return None

    def _same(self, one: FoundModel, other: FoundModel) -> bool:
        pairs = zip(_files(one), _files(other), strict=True)
        return all(same_content(a, b, self._copied, self._stopped) for (a, _), (b, _) in pairs)

    def _shares_bytes(self, model: FoundModel) -> bool:
        """Whether nothing has to be copied. (A move within one disk makes links, so that nothing can be lost.)"""
        if self._way is not ImportWay.MOVE:
            return self._way is ImportWay.LINK
        try:
            here = next(place for place in (self._own, *self._own.parents) if place.is_dir())
            return here.stat().st_dev == model.files[0].identity[0]
        except (OSError, StopIteration):
            return False

    def _through(self, staging: Path, model: FoundModel) -> Path:
        """Gather a model's files in the hidden folder, look at them again, and put them into place at once."""
        folder_name = model.path.name if model.folder is not None else model.shard.stem if model.shard else None
        gathered = staging / folder_name if folder_name is not None else staging
        gathered.mkdir(exist_ok=True)
        for source, name in _files(model):
            self._bring(source, gathered / name)
        first = gathered if model.folder is not None else gathered / _files(model)[0][1]
        copy = find_mlx(gathered) if model.folder is not None else find_beside(first)
        item = look_at(added_root(staging), copy) if copy is not None else None
        if item is None or item.problem is not None or copy is None or _size(copy) != _size(model):
            raise UserFacingError(
                f"“{_shown(model)}” has not arrived as it was.",
                "The copy differs from the file it was made from, which may have changed meanwhile.",
                "Try again, and check the disk if it happens again.",
            )
        sync_folder(gathered)
        target = _free_name(self._own, folder_name if folder_name is not None else first.name)
        (gathered if folder_name is not None else first).rename(target)
        return target if folder_name is None or model.folder is not None else target / first.name

    def _bring(self, source: Path, target: Path) -> None:
        if self._way is ImportWay.LINK:
            try:
                link_file(source, target)
            except OSError as error:
                raise UserFacingError(
                    f"“{source.name}” cannot be linked.",
                    "It lies on another disk, or its disk knows no links, and this system does not allow symbolic ones "
                    f"({error.strerror or error}).",
                    "Copy it. On Windows, symbolic links need the developer mode.",
                ) from error
        elif self._way is not ImportWay.MOVE or not _linked(source, target):
            copy_file(source, target, self._copied, self._stopped)
            return
        self._copied(target.stat().st_size)

    def _remove_sources(self, model: FoundModel) -> None:
        try:
            for source, _ in _files(model):
                source.unlink(missing_ok=True)
        except OSError as error:
            self.refused.append(
                UserFacingError(
                    f"“{_shown(model)}” was copied, but is still where it was too.",
                    f"It could not be removed there: {error.strerror or error}.",
                    f"Remove it yourself: {model.path}.",
                )
            )
        if model.folder is not None:
            with contextlib.suppress(OSError):
                model.folder.rmdir()


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source.resolve(strict=True), target)
    except OSError:
        return False
    return True


def _models_at(source: Path) -> list[FoundModel]:
    """The models that a path stands for. Raises UserFacingError if it is none."""
    source = source.absolute()
    if source.is_dir():
        itself = find_mlx(source)
        found = [itself] if itself is not None else find_models(added_root(source))
        if not found:
            raise UserFacingError(
                f"There is no model in “{source.name}”.",
                "Neither GGUF files nor MLX models were found in this folder or below.",
                "Choose another folder, or a .gguf file.",
            )
        return found
    if source.suffix.lower() == ".safetensors" and (folder := find_mlx(source.parent)) is not None:
        return [folder]
    read_header(source)
    model = find_beside(source)
    if model is None:
        raise UserFacingError(
            f"“{source.name}” is not finished.",
            "Another program is still downloading or copying it.",
            "Wait until that is done.",
        )
    return [model]


def _files(model: FoundModel) -> list[tuple[Path, str]]:
    """All files that belong to a model, with the names they get."""
    if model.folder is not None:
        return [(model.folder / name, name) for name in sorted(model.names) if not name.startswith(".")]
    return [
        (file.path, file.path.name if file.path.suffix.lower() == _SUFFIX else file.path.name + _SUFFIX)
        for file in model.files
    ]


def _size(model: FoundModel) -> int:
    if model.folder is None:
        return sum(file.size for file in model.files)
    total = 0
    for path, _ in _files(model):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def _shape(model: FoundModel) -> tuple[object, ...]:
    """What is alike in two models with the same contents: names count only within a folder."""
    names = model.names if model.folder is not None else None
    return names, tuple(file.size for file in model.files)


def _shown(model: FoundModel) -> str:
    return model.path.name


def _is_below(path: Path, folder: Path) -> bool:
    return folder.absolute() in path.absolute().parents


def _free_name(folder: Path, name: str) -> Path:
    """A place for a name that is not taken: `name`, `name (2)`, …"""
    stem, suffix = (name[: -len(_SUFFIX)], name[-len(_SUFFIX) :]) if name.lower().endswith(_SUFFIX) else (name, "")
    target, number = folder / name, 2
    while os.path.lexists(target):
        target, number = folder / f"{stem} ({number}){suffix}", number + 1
    return target
