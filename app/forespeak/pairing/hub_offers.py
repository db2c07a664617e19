"""Candidates from the Hub: known good drafts and kin of the target, with the headers that verdicts need.

Waits for the network. What cannot be reached is left out and told; the rest is still offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufError, GgufHeader
from forespeak.models.good_pairs import GoodPair, group_of
from forespeak.models.hub import Hub
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.hub_results import HubModel, SearchQuery
from forespeak.models.remote_header import read_remote_header
from forespeak.pairing.offers import Offer, Place, best_group, from_hub, known_drafts, worth_looking_at

MOST_REPOS = 6
"""A header with its vocabulary has 2 to 16 MB."""


@dataclass(slots=True)
class HubOffers:
    """What was found, the headers that could be read, and in words what could not be."""

    offers: list[Offer] = field(default_factory=list)
    headers: dict[HubFileGroup, GgufHeader] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def header(self, group: HubFileGroup) -> GgufHeader | None:
        return self.headers.get(group)


def hub_offers(
    hub: Hub,
    target: Offer,
    pairs: Iterable[GoodPair],
    cache: Path,
    cancelled: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda _: None,
) -> HubOffers:
    """Drafts that could be downloaded for a target. Headers are kept in `cache`; `tell` hears what is looked at."""
    found = HubOffers()
    goods = {offer.good.repo: offer.good for offer in known_drafts(target, pairs) if offer.good is not None}
    repos: dict[str, HubModel | None] = dict.fromkeys(goods)
    if target.model_name.family:
        tell("Searching the Hub")
        try:
            page = hub.search(SearchQuery(target.model_name.words), cancelled=cancelled)
        except UserFacingError as error:
            # Whatever is asked next would fail in the same way, and take as long.
            found.problems.append(str(error))
            return found
        for listed in worth_looking_at(target, page.models if page is not None else ()):
            repos.setdefault(listed.repo, listed)
    for name in list(repos)[:MOST_REPOS]:
        if cancelled():
            break
        tell(f"Looking into {name}")
        try:
            repo = hub.repo(name, cancelled=cancelled)
            group = None
            if repo is not None:
                good = goods.get(name)
                groups = [each for each in repo.groups if each.format is ModelFormat.GGUF]
                group = best_group(groups) if good is None else group_of(good, name, groups)
            if repo is None or group is None:
                continue
            model = repos[name]
            place = Place.HUB if model is not None else Place.KNOWN
            offer = from_hub(group, model.parameters if model is not None else None, place)
            try:
                header = read_remote_header(hub.client, repo.repo, repo.revision, group.files[0], cache, cancelled)
            except GgufError as error:
                offer, header = replace(offer, problem=str(error)), None
            if header is not None:
                found.headers[group] = header
            elif offer.problem is None:
                break  # cancelled
            found.offers.append(offer)
        except UserFacingError as error:
            found.problems.append(str(error))
    return found
