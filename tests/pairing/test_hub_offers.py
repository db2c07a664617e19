"""Drafts from the Hub, against servers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.formats import NO_MLX, ModelFormat
from forespeak.models.good_pairs import GoodModel, GoodPair
from forespeak.models.hub import Hub
from forespeak.pairing.compatibility import Judge
from forespeak.pairing.hub_offers import HubOffers, hub_offers
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.model_shape import estimated_shape
from forespeak.pairing.offers import Offer, Place
from loopback_api import hub_at
from loopback_hub import LoopbackHub, Repo
from models.gguf_writer import ModelFile
from models.mlx_writer import mlx_folder

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
    target = SOME.write(tmp_path / "target.gguf")
    verdicts = {}
    for repo, offer in by_repo.items():
        assert offer.group is not None
        assert offer.path is None
        member = offers.member(offer.group)
        assert member is not None
        verdicts[repo] = Judge(tmp_path / "verdicts").verdict_on(target, member).reason
    assert verdicts["other/Sprout-1B-GGUF"] == "Both have the same 3 tokens."
    assert verdicts["maker/Sprout-0.3B-GGUF"].startswith("Token 2 is “c” in the target and “x” in the draft.")


def test_what_is_gone_or_no_model_leaves_the_rest(loopback: LoopbackHub, hub: Hub, tmp_path: Path) -> None:
    loopback.add(Repo("other/Sprout-1B-GGUF", {"Sprout-1B-Q4_K_M.gguf": b"hello" * 100}))
    offers = found(hub, tmp_path, GOOD)
    (offer,) = offers.offers
    assert offer.group is not None
    assert offers.member(offer.group) is None
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


MLX_TARGET = replace(TARGET, name="Sprout-7B-Instruct-4bit", label="4-bit", format=ModelFormat.MLX)
MLX_GOOD = replace(
    GOOD,
    format=ModelFormat.MLX,
    target=GoodModel("Sprout 7B", "mlx/Sprout-7B-4bit", None, "4-bit", 7.0, 4_000_000_000),
    draft=GoodModel("Sprout 0.3B", "mlx/Sprout-0.3B-4bit", None, "4-bit", 0.3, 170_000_000),
)


def mlx_repo(folder: Path, name: str, *words: str, downloads: int = 12) -> Repo:
    written = mlx_folder(folder / "written" / name, {word: number for number, word in enumerate(words)})
    files = {path.name: path.read_bytes() for path in written.iterdir()} | {"model.safetensors": bytes(1000)}
    return Repo(name, files, tags=("mlx",), downloads=downloads)


def test_a_target_in_the_mlx_format_is_offered_such_drafts(
    loopback: LoopbackHub, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("hub_offers", "compatibility"):
        monkeypatch.setattr(f"forespeak.pairing.{place}.mlx_is_installed", lambda: True)
    loopback.add(Repo("other/Sprout-1B-GGUF", {"Sprout-1B-Q4_K_M.gguf": file(tmp_path)}))
    loopback.add(mlx_repo(tmp_path, "other/Sprout-1B-8bit", "a", "b", downloads=900))
    loopback.add(mlx_repo(tmp_path, "other/Sprout-1B-4bit", "a", "b"))
    loopback.add(mlx_repo(tmp_path, "mlx/Sprout-0.3B-4bit", "a", "x"))
    offers = hub_offers(hub, MLX_TARGET, (GOOD, MLX_GOOD), tmp_path / "headers")
    assert not offers.problems
    by_repo = {offer.group.repo: offer for offer in offers.offers if offer.group is not None}
    assert {repo: offer.place for repo, offer in by_repo.items()} == {
        "mlx/Sprout-0.3B-4bit": Place.KNOWN,
        "other/Sprout-1B-4bit": Place.HUB,
    }
    target = mlx_folder(tmp_path / "target", {"a": 0, "b": 1})
    usable = {}
    for repo, offer in by_repo.items():
        assert offer.format is ModelFormat.MLX
        assert offer.group is not None
        member = offers.member(offer.group)
        assert member is not None
        usable[repo] = Judge(tmp_path / "verdicts").verdict_on(target, member).usable
    assert usable == {"mlx/Sprout-0.3B-4bit": False, "other/Sprout-1B-4bit": True}
    assert not any("safetensors" in request.path for request in loopback.requests)


def test_a_target_in_the_gguf_format_is_offered_no_other(loopback: LoopbackHub, hub: Hub, tmp_path: Path) -> None:
    loopback.add(mlx_repo(tmp_path, "other/Sprout-1B-4bit", "a", "b"))
    offers = found(hub, tmp_path, MLX_GOOD)
    assert (offers.offers, offers.problems) == ([], [])


def test_without_mlx_lm_the_hub_is_not_asked_for_what_needs_it(
    loopback: LoopbackHub, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forespeak.pairing.hub_offers.mlx_is_installed", lambda: False)
    offers = hub_offers(hub, MLX_TARGET, (MLX_GOOD,), tmp_path)
    assert (offers.offers, offers.problems) == ([], [NO_MLX])
    assert not loopback.requests
