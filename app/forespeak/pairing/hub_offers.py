"""Candidates from the Hub: known good drafts and kin of the target, with what verdicts need to know of them.

Waits for the network. What cannot be reached is left out and told; the rest is still offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.formats import NO_MLX, ModelFormat, mlx_is_installed
from forespeak.models.gguf import GgufError
from forespeak.models.good_pairs import GoodPair, group_of
from forespeak.models.hub import Hub
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.hub_results import HubModel, SearchQuery
from forespeak.pairing.members import Member
from forespeak.pairing.offers import Offer, Place, best_group, from_hub, known_drafts, worth_looking_at
from forespeak.pairing.remote_models import remote_member

MOST_REPOS = 6
"""A header with its vocabulary has 2 to 16 MB, a tokenizer of an MLX repo as much."""


@dataclass(slots=True)
class HubOffers:
    """What was found, what could be read of it, and in words what could not be."""

    offers: list[Offer] = field(default_factory=list)
    members: dict[HubFileGroup, Member] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def member(self, group: HubFileGroup) -> Member | None:
        return self.members.get(group)


def hub_offers(
    hub: Hub,
    target: Offer,
    pairs: Iterable[GoodPair],
    cache: Path,
    cancelled: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda _: None,
) -> HubOffers:
    """Drafts in the target's format that could be downloaded for it.

    What is read of them is kept in `cache`; `tell` hears what is looked at.
    """
    found = HubOffers()
    if target.format is ModelFormat.MLX and not mlx_is_installed():
        # Nothing that could be found would run.
        found.problems.append(NO_MLX)
        return found
    goods = {offer.good.repo: offer.good for offer in known_drafts(target, pairs) if offer.good is not None}
    repos: dict[str, HubModel | None] = dict.fromkeys(goods)
    if target.model_name.family:
        tell("Searching the Hub")
        try:
            page = hub.search(SearchQuery(target.model_name.words, target.format), cancelled=cancelled)
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
                groups = [each for each in repo.groups if each.format is target.format]
                group = best_group(groups) if good is None else group_of(good, name, groups)
            if repo is None or group is None:
                continue
            model = repos[name]
            place = Place.HUB if model is not None else Place.KNOWN
            offer = from_hub(group, model.parameters if model is not None else None, place)
            try:
                member = remote_member(hub.client, group, cache, cancelled)
            except GgufError as error:
                offer, member = replace(offer, problem=str(error)), None
            if member is not None:
                found.members[group] = member
            elif offer.problem is None:
                break  # cancelled
            found.offers.append(offer)
        except UserFacingError as error:
            found.problems.append(str(error))
    return found
