"""Well-known pairs of target and draft, by the memory they need, from resources/pairs.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.library import LibraryItem
from forespeak.models.memory import Fit
from forespeak.resource_files import resource_path

MEMORY_CLASSES = (8, 16, 24, 48)
"""In GB."""


@dataclass(frozen=True, slots=True)
class GoodModel:
    """A model of a pair. `file` is its path in the repo, the first part of a split one; None: the repo is the model.

    `size_bytes` is about what it takes on disk, `parameters` are in billions.
    """

    name: str
    repo: str
    file: str | None
    quant: str
    parameters: float
    size_bytes: int

    def is_item(self, item: LibraryItem) -> bool:
        """Whether a model of the library is this one."""
        if not item.usable:
            return False
        if self.file is None:
            return item.format is ModelFormat.MLX and item.repo == self.repo
        # The name says publisher's quant and model; where people keep it is theirs to choose.
        return item.path.name == self.file.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class GoodPair:
    """`memory` is one of MEMORY_CLASSES. Nothing here was tried on this machine: the engine judges each pair itself."""

    id: str
    title: str
    memory: int
    format: ModelFormat
    good_for: str
    target: GoodModel
    draft: GoodModel

    @property
    def size_bytes(self) -> int:
        return self.target.size_bytes + self.draft.size_bytes


def good_pairs(path: Path | None = None) -> tuple[GoodPair, ...]:
    """In the file's order. Raises OSError, KeyError, TypeError, ValueError: a file that is wrong is our own mistake."""
    table = tomllib.loads((path or resource_path("pairs.toml")).read_text("utf-8"))
    return tuple(_pair(entry) for entry in table["pair"])


def _pair(entry: dict[str, Any]) -> GoodPair:
    plain = {"format": "GGUF", **entry}
    plain["format"] = ModelFormat(plain["format"])
    for place in ("target", "draft"):
        plain[place] = _model(plain[place])
    return GoodPair(**plain)


def _model(entry: dict[str, Any]) -> GoodModel:
    plain = {"file": None, **entry}
    plain["size_bytes"] = plain.pop("size")
    return GoodModel(**plain)


def best_first(
    pairs: Iterable[GoodPair], fit_of: Callable[[int], Fit], *, mlx: bool
) -> tuple[tuple[GoodPair, Fit], ...]:
    """What fits this machine first, the largest of it at the top; then what is tight, and what is too large, smallest
    first. `fit_of` judges bytes; `mlx`: whether MLX models have a place here at all.
    """
    order = list(Fit)
    judged = [(pair, fit_of(pair.size_bytes)) for pair in pairs if mlx or pair.format is not ModelFormat.MLX]

    def place(entry: tuple[GoodPair, Fit]) -> tuple[int, int]:
        pair, fit = entry
        return order.index(fit), pair.memory if fit is Fit.TOO_LARGE else -pair.memory

    return tuple(sorted(judged, key=place))


def group_of(model: GoodModel, repo: str, groups: Iterable[HubFileGroup]) -> HubFileGroup:
    """The files to fetch, of those that the repo has now. Raises UserFacingError if they are gone."""
    for group in groups:
        if model.file is None:
            found = group.format is ModelFormat.MLX
        else:
            found = bool(group.files) and group.files[0].path == model.file
        if found:
            return group
    what = f"“{model.file}” is no longer" if model.file is not None else "There is no MLX model"
    raise UserFacingError(
        f"{what} in {repo}.",
        "Its publisher has renamed or removed it since this list was made.",
        "Look for another file of the same model under Discover.",
    )
