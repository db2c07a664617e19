"""What the Hub says about models, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup


class Sort(Enum):
    """The orders that the Hub offers, always the highest or newest first. The value is the Hub's word."""

    TRENDING = "trendingScore"
    DOWNLOADS = "downloads"
    LIKES = "likes"
    UPDATED = "lastModified"


class Gate(Enum):
    """Whether a repo's files are for everybody."""

    OPEN = "open"
    AUTOMATIC = "accept the licence"
    MANUAL = "ask the owner"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to look for. `licence` is the Hub's short name (`apache-2.0`); None means any.

    `fits` judges a size in bytes on this machine: results whose smallest useful quant it refuses are left out, those
    of unknown size stay. `page_size` is what is asked for; a page may hold less.
    """

    text: str = ""
    format: ModelFormat = ModelFormat.GGUF
    licence: str | None = None
    author: str | None = None
    sort: Sort = Sort.TRENDING
    fits: Callable[[int], bool] | None = None
    page_size: int = 30


@dataclass(frozen=True, slots=True)
class HubModel:
    """One repo as a search lists it. `repo` is `owner/name`; what the Hub does not tell is None.

    `downloads` are those of the last 30 days. `parameters`, `architecture` and `context_length` come from a GGUF file
    of the repo.
    """

    repo: str
    downloads: int | None = None
    likes: int | None = None
    updated: datetime | None = None
    licence: str | None = None
    gate: Gate = Gate.OPEN
    private: bool = False
    formats: frozenset[ModelFormat] = frozenset()
    parameters: int | None = None
    architecture: str | None = None
    context_length: int | None = None

    @property
    def owner(self) -> str:
        return self.repo.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.repo.rpartition("/")[2]

    @property
    def least_bytes(self) -> int | None:
        """About how large the quant is that most people take (Q4_K_M); None if the parameters are not known."""
        return None if self.parameters is None else round(self.parameters * _USUAL_BITS / 8)


# Q4_K_M with its few tensors of a higher precision, as llama.cpp's own table of sizes has it for an 8B model.
_USUAL_BITS = 4.9


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of results. `cursor` asks for the next one, None on the last; `left_out` did not fit this machine."""

    models: tuple[HubModel, ...]
    cursor: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class HubRepo:
    """A repo at one commit: `revision` is the commit's hash. `page` is its web address, for accepting a licence.

    `files` are all of it, `groups` what can be loaded: models first, smallest first, incomplete ones last.
    """

    model: HubModel
    revision: str
    page: str
    files: tuple[HubFile, ...] = field(repr=False)
    groups: tuple[HubFileGroup, ...] = field(repr=False)

    @property
    def repo(self) -> str:
        return self.model.repo


@dataclass(frozen=True, slots=True)
class Card:
    """A repo's README as Markdown without its metadata. It comes from the network: show it without remote content.

    `shortened`: only its beginning is here.
    """

    text: str
    shortened: bool = False
