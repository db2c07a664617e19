"""What the pairing wizard asks of disk and Hub: which models could draft for a target. Not for the UI thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from forespeak.engines.engine import LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.folders import Folders
from forespeak.models.good_pairs import GoodModel, GoodPair, best_first
from forespeak.models.hub import Hub
from forespeak.models.library import LibraryItem
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import Fit
from forespeak.pairing.candidates import Candidates, find_candidates
from forespeak.pairing.compatibility import Judge
from forespeak.pairing.hub_offers import HubOffers, hub_offers
from forespeak.pairing.knowledge import local_knowledge
from forespeak.pairing.load_plan import memory_settings
from forespeak.pairing.machine_speed import Basis, machine_speed
from forespeak.pairing.making import made_offers
from forespeak.pairing.offers import Offer, known_drafts, local_offer, offer_at
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.pairs import FOLDER, NamedPairs
from forespeak.ui.local_copies import is_same_repo

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """What could draft for a target.

    `plain_rate`: tokens per second of the target alone on this machine, None if its size is not known; `is_timed`: it
    was timed here, else supposed. `free_bytes`: the memory that a pair could have.
    """

    target: Offer
    candidates: Candidates
    plain_rate: float | None
    is_timed: bool
    free_bytes: int


class Finder(Protocol):
    """Both wait, for the disk or the network, and raise UserFacingError. `items` is what the library knows now."""

    def find(self, target: Path, items: Sequence[LibraryItem], hub: HubOffers | None) -> Found: ...

    def search(
        self, target: Path, items: Sequence[LibraryItem], cancelled: Cancelled, tell: Callable[[str], None]
    ) -> HubOffers:
        """Drafts on the Hub; what could not be asked is told among its problems."""
        ...


class DiskFinder:
    """`machine`: its memory once the chat's own pair has gone, which a kept pair would take the place of.

    `request`: how a target would be loaded now. `models_folder`: where drafts that are made would go; None: the one of
    `where`.
    """

    def __init__(
        self,
        where: Folders,
        hub: Callable[[], Hub],
        pairs: Sequence[GoodPair],
        machine: Callable[[], Machine],
        request: Callable[[Path], LoadRequest] = LoadRequest,
        models_folder: Callable[[], Path] | None = None,
    ) -> None:
        self._models_folder = models_folder or (lambda: where.models)
        self._where, self._hub, self._pairs = where, hub, pairs
        self._machine, self._request = machine, request

    def find(self, target: Path, items: Sequence[LibraryItem], hub: HubOffers | None) -> Found:
        offer = self._target(target, items)
        offers = [local_offer(item) for item in items]
        # What was looked at on the Hub comes before the same thing of which only the name is known.
        offers += [each for each in (hub.offers if hub is not None else []) if not _is_here(each, items)]
        offers += [each for each in known_drafts(offer, self._pairs) if not _is_here(each, items)]
        offers += made_offers(offer, self._models_folder())
        machine = self._machine()
        learned = PairFiles(self._where.pairs)
        speed = machine_speed(learned.everything(), self._where.data, format_=offer.format)
        knowledge = local_knowledge(
            target,
            Judge(self._where.cache / "verdicts"),
            NamedPairs(self._where.data / FOLDER),
            learned,
            memory_settings(self._request(target), machine),
            machine,
            (lambda _: None) if hub is None else hub.member,
        )
        costs = None if offer.shape is None else speed.costs(offer.shape, target)
        return Found(
            offer,
            find_candidates(offer, offers, speed, knowledge),
            None if costs is None else 1.0 / costs.seconds(1),
            costs is not None and costs.basis is Basis.THIS_FILE,
            _free(machine),
        )

    def search(
        self, target: Path, items: Sequence[LibraryItem], cancelled: Cancelled, tell: Callable[[str], None]
    ) -> HubOffers:
        offer = self._target(target, items)
        return hub_offers(self._hub(), offer, self._pairs, self._where.cache / "headers", cancelled, tell)

    def _target(self, path: Path, items: Sequence[LibraryItem]) -> Offer:
        if not path.exists():
            raise UserFacingError(
                f"“{path.name}” is not there any more.",
                f"It was in {path.parent}.",
                "Choose another target, or put the file back.",
            )
        item = next((each for each in items if each.path == path), None)
        return offer_at(path) if item is None else local_offer(item)


def targets_that_fit(pairs: Sequence[GoodPair], fit_of: Callable[[int], Fit], *, mlx: bool) -> tuple[GoodModel, ...]:
    """Those of well-known pairs that this machine holds, each once, best first; `mlx`: those in that format as well."""
    found: dict[tuple[str, str | None], GoodModel] = {}
    for pair, fit in best_first(pairs, fit_of, mlx=mlx):
        if fit is not Fit.TOO_LARGE:
            found.setdefault((pair.target.repo, pair.target.file), pair.target)
    return tuple(found.values())


def _is_here(offer: Offer, items: Sequence[LibraryItem]) -> bool:
    """Whether the library has the very files of an offer on the Hub."""
    group, good = offer.group, offer.good
    if group is not None:
        return any(is_same_repo(item, group) for item in items)
    return good is not None and any(good.is_item(item) for item in items)


def _free(machine: Machine) -> int:
    """Main memory, and that of GPUs where they have their own."""
    gpus = 0 if machine.unified else sum(gpu.free_bytes for gpu in machine.gpus)
    return machine.available_bytes + gpus
