"""Models that might draft, wherever they are: in the library, in a well-known pair, on the Hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from forespeak.engines.engine import NumberFormat
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError, GgufKind
from forespeak.models.good_pairs import GoodModel, GoodPair
from forespeak.models.hub_files import HubFileGroup, mlx_label
from forespeak.models.hub_results import HubModel
from forespeak.models.library import LibraryItem
from forespeak.models.library_files import find_mlx
from forespeak.models.library_item import look_at
from forespeak.models.on_disk import size_and_time
from forespeak.models.roots import added_root
from forespeak.models.vocabulary import cached_header
from forespeak.pairing.model_names import Kinship, ModelName, kinship, parse_name
from forespeak.pairing.model_shape import ModelShape, WeightFormat, estimated_shape, file_shape, weight_format


class Place(Enum):
    """Where a model is."""

    HERE = "on this computer"
    KNOWN = "a pair known to be good"
    HUB = "on the Hub"
    MADE = "to be made from the target"


@dataclass(frozen=True, slots=True)
class Making:
    """A draft that could be made of a model's own weights. `source` is its first part, if it has several."""

    source: Path
    destination: Path
    number_format: NumberFormat


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that might serve as a target or a draft.

    `path` if it is here; `group` (or `good`, of a well-known pair, whose group the Hub has to be asked for) if it is to
    be downloaded; `making` if it is to be made, of about `size_bytes` then. `name` is for people; `problem` says why it
    cannot be used at all. `shape` None: its size is not known.
    """

    name: str
    place: Place
    model_name: ModelName
    size_bytes: int
    label: str | None = None
    shape: ModelShape | None = None
    path: Path | None = None
    group: HubFileGroup | None = None
    good: GoodModel | None = None
    making: Making | None = None
    kind: GgufKind = GgufKind.MODEL
    mtp_layers: int = 0
    problem: str | None = None
    format: ModelFormat = ModelFormat.GGUF

    @property
    def download_bytes(self) -> int:
        return 0 if self.path is not None or self.making is not None else self.size_bytes


def from_library(item: LibraryItem, shape: ModelShape | None = None) -> Offer:
    """A model on this computer. `shape`: from its headers, if they were read; else from its size and name."""
    return Offer(
        item.name,
        Place.HERE,
        _named(item.title or item.name, item.name),
        item.size_bytes,
        item.quantisation,
        shape or estimated_shape(item.size_bytes, item.quantisation, item.parameters, item.active_parameters),
        path=item.path,
        kind=item.kind,
        mtp_layers=item.mtp_layers,
        problem=item.unusable_because,
        format=item.format,
    )


def from_hub(group: HubFileGroup, parameters: int | None = None, place: Place = Place.HUB) -> Offer:
    """A model on the Hub. `parameters` as a search gives them."""
    named = parse_name(group.name)
    if named.parameters is None:
        of_repo = parse_name(group.repo)
        named = replace(named, parameters=of_repo.parameters, active=of_repo.active)
    weights = parameters or named.parameters
    return Offer(
        f"{group.name} ({group.repo})",
        place,
        named,
        group.size_bytes,
        group.label,
        estimated_shape(group.size_bytes, group.label, weights, named.active),
        group=group,
        kind=_kind_of(group),
        problem=group.problem,
        format=group.format,
    )


def best_group(groups: Iterable[HubFileGroup]) -> HubFileGroup | None:
    """The file of a repo to draft with: four bits a weight or the next more; None if there is no whole model in it."""
    whole = [group for group in groups if group.downloadable and group.kind is GgufKind.MODEL and group.files]

    return min(whole, key=lambda group: (_too_coarse_or_fine(group.label), group.size_bytes), default=None)


def _too_coarse_or_fine(label: str | None) -> tuple[bool, float]:
    """How far a number format is from what one drafts with, least for the best: four bits a weight."""
    format_ = weight_format(label)
    bits = 100 if format_ is None else format_.bits
    return bits < WeightFormat.BITS_4.bits, abs(bits - WeightFormat.BITS_4.bits)


_MOST_SHARE = 0.5
"""Of the target's weights: a larger draft hardly ever pays."""


def local_offer(item: LibraryItem) -> Offer:
    """A model on this computer, its size from its headers where they can be read."""
    try:
        shape = file_shape(item.path) if item.usable else None
    except GgufError:
        shape = None
    return from_library(item, shape)


def offer_at(path: Path) -> Offer:
    """A model by its path, whatever lies there: what is wrong with it, its verdict says."""
    if path.is_dir():
        return _folder_at(path)
    try:
        header = cached_header(path)
    except GgufError:
        return Offer(path.name, Place.HERE, parse_name(path.stem), _size(path), path=path)
    try:
        shape = file_shape(path)
    except GgufError:
        shape = None  # a part is missing, as the verdict will say
    return Offer(
        path.name,
        Place.HERE,
        _named(header.name, path.stem),
        header.size_bytes,
        header.quantisation,
        shape,
        path=path,
        kind=header.kind,
        mtp_layers=header.mtp_layers,
    )


def _folder_at(path: Path) -> Offer:
    try:
        model = find_mlx(path)
        item = None if model is None else look_at(added_root(path.parent), model)
    except OSError:
        item = None
    if item is None:
        return Offer(path.name, Place.HERE, parse_name(path.name), _size(path), path=path, format=ModelFormat.MLX)
    return local_offer(item)


def from_good(model: GoodModel) -> Offer:
    """A model of a well-known pair."""
    named = parse_name(model.name)
    weights = model.parameters * 1e9
    return Offer(
        f"{model.name} ({model.repo})",
        Place.KNOWN,
        replace(named, parameters=named.parameters or weights),
        model.size_bytes,
        model.quant,
        estimated_shape(model.size_bytes, model.quant, weights, named.active),
        good=model,
        format=ModelFormat.GGUF if model.file is not None else ModelFormat.MLX,
    )


def known_drafts(target: Offer, pairs: Iterable[GoodPair]) -> tuple[Offer, ...]:
    """The drafts of well-known pairs whose target is of the target's family, or which are of that family themselves.

    Of the target's format: one engine has to run both.
    """
    found = {}
    for pair in pairs:
        if pair.format is target.format and any(
            kinship(target.model_name, parse_name(model.name)) in {Kinship.SAME_WEIGHTS, Kinship.SAME_FAMILY}
            for model in (pair.target, pair.draft)
        ):
            found[pair.draft.repo, pair.draft.file] = from_good(pair.draft)
    return tuple(found.values())


def worth_looking_at(target: Offer, models: Iterable[HubModel], most: int = 8) -> tuple[HubModel, ...]:
    """Of what a search on the Hub listed, the repos whose files are worth asking for: kin of the target, and smaller.

    Those most often downloaded first, the nearest kin before the others; one repo for each size and variant. In the MLX
    format a repo holds one number format: of each size, the one that is best to draft with.
    """
    weights = target.shape.parameters if target.shape is not None else target.model_name.parameters
    kins = (Kinship.SAME_FAMILY, Kinship.RELATED)
    found: dict[tuple[object, ...], tuple[tuple[bool, float], tuple[int, int], HubModel]] = {}
    for model in models:
        named = parse_name(model.repo)
        size = model.parameters or named.parameters
        kin = kinship(target.model_name, named)
        if kin not in kins or size is None or (weights is not None and size > _MOST_SHARE * weights):
            continue
        thing = (named.family, named.variants, round(size, -8))
        wanted = _too_coarse_or_fine(mlx_label(model.repo) if target.format is ModelFormat.MLX else None)
        ranked = wanted, (kins.index(kin), -(model.downloads or 0)), model
        if thing not in found or ranked[:2] < found[thing][:2]:
            found[thing] = ranked
    return tuple(model for _, _, model in sorted(found.values(), key=lambda each: each[1])[:most])


def same_thing(offer: Offer) -> tuple[object, ...]:
    """What makes two offers the same model, as far as names and sizes tell."""
    name = offer.model_name
    size = offer.size_bytes if name.parameters is None else name.parameters
    return name.family, name.variants, size, offer.label, offer.kind, offer.format


def _named(title: str, file_name: str) -> ModelName:
    """By the header's title, which has the size and the variant more often than a file's name; else by that."""
    named = parse_name(title)
    return named if named.family and named.parameters is not None else parse_name(file_name)


def _kind_of(group: HubFileGroup) -> GgufKind:
    lowered = f"{group.repo} {group.name}".lower()
    return GgufKind.DRAFT_HEAD if "eagle3" in lowered or "eagle-3" in lowered else group.kind


def _size(path: Path) -> int:
    try:
        return size_and_time(path)[0]
    except OSError:
        return 0
