"""Drafts from the Hub, against servers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.formats import ModelFormat
from forespeak.models.good_pairs import GoodModel, GoodPair
from forespeak.models.hub import Hub
from forespeak.models.vocabulary import cached_header
from forespeak.pairing.compatibility import on_headers
from forespeak.pairing.hub_offers import HubOffers, hub_offers
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.model_shape import estimated_shape
from forespeak.pairing.offers import Offer, Place
from loopback_api import hub_at
from loopback_hub import LoopbackHub, Repo
from models.gguf_writer import ModelFile

SOME = ModelFile(["a", "b", "c"])
TARGET = Offer(
    "Sprout-7B",
    Place.HERE,
    parse_name("Sprout-7B-Instruct-Q4_K_M"),
    4_000_000_000,
    "Q4_K_M",
    estimated_shape(4_000_000_000, "Q4_K_M", 7e9),
)
GOOD = GoodPair(
    "sprout",
    "Sprout",
    8,
    ModelFormat.GGUF,
    "chat",
    GoodModel("Sprout 7B", "maker/Sprout-7B-GGUF", "Sprout-7B-Q4_K_M.gguf", "Q4_K_M", 7.0, 4_000_000_000),
    GoodModel("Sprout 0.3B", "maker/Sprout-0.3B-GGUF", "Sprout-0.3B-Q8_0.gguf", "Q8_0", 0.3, 320_000_000),
)


def file(folder: Path, model: ModelFile = SOME) -> bytes:
    return model.write(folder / "x.gguf").read_bytes()


@pytest.fixture
def loopback() -> Iterator[LoopbackHub]:
    with LoopbackHub() as server:
        yield server


@pytest.fixture
def hub(loopback: LoopbackHub) -> Iterator[Hub]:
    hub = hub_at(loopback.endpoint)
    yield hub
    hub.client.close()


def found(hub: Hub, folder: Path, *pairs: GoodPair) -> HubOffers:
    return hub_offers(hub, TARGET, pairs, folder / "headers")


def test_kin_and_known_drafts_with_their_headers(loopback: LoopbackHub, hub: Hub, tmp_path: Path) -> None:
    loopback.add(Repo("other/Sprout-1B-GGUF", {"Sprout-1B-Q4_K_M.gguf": file(tmp_path), "Sprout-1B-F16.gguf": b"x"}))
    loopback.add(Repo("other/Pebble-1B-GGUF", {"Pebble-1B-Q4_K_M.gguf": file(tmp_path)}))
    changed = replace(SOME, tokens=["a", "b", "x"])
    loopback.add(Repo("maker/Sprout-0.3B-GGUF", {"Sprout-0.3B-Q8_0.gguf": file(tmp_path, changed)}))
    offers = found(hub, tmp_path, GOOD)
    assert not offers.problems
    by_repo = {offer.group.repo: offer for offer in offers.offers if offer.group is not None}
    assert {repo: offer.place for repo, offer in by_repo.items()} == {
        "maker/Sprout-0.3B-GGUF": Place.KNOWN,
        "other/Sprout-1B-GGUF": Place.HUB,
    }
    target = cached_header(SOME.write(tmp_path / "target.gguf"))
    verdicts = {}
    for repo, offer in by_repo.items():
        assert offer.group is not None
        assert offer.path is None
        header = offers.header(offer.group)
        assert header is not None
        verdicts[repo] = on_headers(target, header).reason
    assert verdicts["other/Sprout-1B-GGUF"] == "Both have the same 3 tokens."
    assert verdicts["maker/Sprout-0.3B-GGUF"].startswith("Token 2 is “c” in the target and “x” in the draft.")


def test_what_is_gone_or_no_model_leaves_the_rest(loopback: LoopbackHub, hub: Hub, tmp_path: Path) -> None:
    loopback.add(Repo("other/Sprout-1B-GGUF", {"Sprout-1B-Q4_K_M.gguf": b"hello" * 100}))
    offers = found(hub, tmp_path, GOOD)
    (offer,) = offers.offers
    assert offer.group is not None
    assert offers.header(offer.group) is None
    assert offer.problem is not None
    assert "is not a GGUF model" in offer.problem
    (problem,) = offers.problems
    assert "maker/Sprout-0.3B-GGUF" in problem


def test_without_a_network_it_is_told_once(tmp_path: Path) -> None:
    with LoopbackHub() as server:
        hub = hub_at(server.endpoint)
    offers = found(hub, tmp_path, GOOD)
    hub.client.close()
    assert not offers.offers
    assert len(offers.problems) == 1


def test_a_cancel_asks_nothing_more(loopback: LoopbackHub, hub: Hub, tmp_path: Path) -> None:
    loopback.add(Repo("other/Sprout-1B-GGUF", {"Sprout-1B-Q4_K_M.gguf": file(tmp_path)}))
    told: list[str] = []
    offers = hub_offers(hub, TARGET, (GOOD,), tmp_path, lambda: bool(told), told.append)
    assert told == ["Searching the Hub"]
    assert not offers.offers
