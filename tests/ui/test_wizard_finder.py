"""What the wizard's finder makes of real files: verdicts, memory, and what is on the Hub but here already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.engine import LoadRequest, LoadSettings
from forespeak.errors import UserFacingError
from forespeak.models.folders import Folders
from forespeak.models.formats import ModelFormat
from forespeak.models.good_pairs import GoodModel, GoodPair
from forespeak.models.hub import Hub
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.library import Library
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import Fit, MemoryPlan
from forespeak.pairing.candidates import CandidateKind
from forespeak.pairing.hub_offers import HubOffers
from forespeak.pairing.offers import Place, from_hub
from forespeak.ui.wizard_finder import DiskFinder, targets_that_fit
from models.library_folders import safetensors
from models.mlx_writer import mlx_folder
from tiny_llama import vocabulary, write_llama

MACHINE = Machine(8_000_000_000, 4_000_000_000)


def no_hub() -> Hub:
    raise AssertionError("nobody asked for the Hub")


@pytest.fixture
def where(tmp_path: Path) -> Folders:
    found = Folders(*(tmp_path / name for name in ("data", "models", "config", "cache", "logs")))
    found.create()
    return found


@pytest.fixture
def finder(where: Folders) -> Callable[..., DiskFinder]:
    def make(*pairs: GoodPair) -> DiskFinder:
        return DiskFinder(
            where,
            no_hub,
            pairs,
            lambda: MACHINE,
            lambda target: LoadRequest(target, settings=LoadSettings(context_length=1024)),
        )

    return make


def test_real_files_with_their_verdicts_and_memory(where: Folders, finder: Callable[..., DiskFinder]) -> None:
    target = write_llama(vocabulary(), where.models / "target.gguf")
    draft = write_llama(vocabulary(), where.models / "draft.gguf", noise=0.05)
    tokens = list(vocabulary().tokens)
    tokens[139] = "xyz"
    other = write_llama(replace(vocabulary(), tokens=tokens), where.models / "other.gguf")
    (where.models / "broken.gguf").write_bytes(b"GGUF")
    items = Library(where.models, (), where.cache).scan()
    found = finder().find(target, items, None)
    by_path = {each.offer.path: each for each in found.candidates.listed if each.offer is not None}
    # None are those that could be made.
    assert set(by_path) == {draft, other, where.models / "broken.gguf", None}
    made = [each for each in found.candidates.listed if each.kind is CandidateKind.REQUANTISED]
    assert [each.offer.label for each in made if each.offer is not None] in (["Q4_0", "Q2_K"], ["Q2_K", "Q4_0"])
    assert all(isinstance(each.memory, MemoryPlan) for each in made)
    verdict = by_path[draft].verdict
    assert verdict is not None
    assert verdict.usable
    assert "xyz" in (by_path[other].excluded or "")
    assert by_path[where.models / "broken.gguf"].excluded
    lookup = next(each for each in found.candidates.listed if each.kind is CandidateKind.LOOKUP)
    assert isinstance(lookup.memory, MemoryPlan)
    assert lookup.memory.context_length == 1024
    assert found.plain_rate is not None
    assert not found.is_timed
    assert found.free_bytes == MACHINE.available_bytes


def test_a_target_that_the_library_does_not_know(where: Folders, finder: Callable[..., DiskFinder]) -> None:
    target = write_llama(vocabulary(), where.data / "elsewhere.gguf")
    assert finder().find(target, (), None).target.path == target
    target.unlink()
    with pytest.raises(UserFacingError, match="not there any more"):
        finder().find(target, (), None)


def test_what_is_here_is_not_offered_from_the_hub(where: Folders, finder: Callable[..., DiskFinder]) -> None:
    target = write_llama(vocabulary(), where.models / "target.gguf")
    here = where.models / "maker" / "Small-GGUF" / "small-Q4_0.gguf"
    here.parent.mkdir(parents=True)
    write_llama(vocabulary(), here, noise=0.05)
    items = Library(where.models, (), where.cache).scan()

    def group(name: str) -> HubFileGroup:
        files = (HubFile(f"{name}-Q4_0.gguf", 1000),)
        return HubFileGroup("maker/Small-GGUF", "c" * 40, "Q4_0", ModelFormat.GGUF, files)

    offers = HubOffers([from_hub(group("small")), from_hub(group("another"))])
    found = finder().find(target, items, offers)
    there = [each.offer.group for each in found.candidates.listed if each.offer and each.offer.place is Place.HUB]
    assert there == [group("another")]


def test_folders_are_offered_to_a_folder_and_files_are_not(
    where: Folders, finder: Callable[..., DiskFinder], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("models.library_item", "pairing.compatibility"):
        monkeypatch.setattr(f"forespeak.{place}.mlx_is_installed", lambda: True)

    def folder(name: str, layers: int) -> Path:
        made = mlx_folder(where.models / "maker" / name, {"a": 0, "b": 1}, config={"num_hidden_layers": layers})
        tensors = {f"model.layers.{number}.mlp.up_proj.weight": ("F16", (256, 256)) for number in range(layers)}
        (made / "model.safetensors").write_bytes(safetensors(tensors, {"format": "mlx"}))
        return made

    target, draft = folder("Sprout-8.5B-fp16", 10), folder("Sprout-0.5B-fp16", 1)
    file = write_llama(vocabulary(), where.models / "Sprout-0.5B-F16.gguf")
    good = GoodModel("Sprout 1B", "maker/Sprout-1B-4bit", None, "4-bit", 1.0, 500_000_000)
    other = replace(good, repo="maker/Sprout-1B-GGUF", file="Sprout-1B-Q4_K_M.gguf", quant="Q4_K_M")
    pair = GoodPair("sprout", "Sprout", 8, ModelFormat.MLX, "", replace(good, name="Sprout 8.5B"), good)
    items = Library(where.models, (), where.cache).scan()
    found = finder(pair, replace(pair, format=ModelFormat.GGUF, draft=other)).find(target, items, None)
    assert (found.target.name, found.target.format) == ("Sprout-8.5B-fp16", ModelFormat.MLX)
    by_path = {each.offer.path: each for each in found.candidates.listed if each.offer is not None}
    assert by_path[draft].excluded is None
    assert isinstance(by_path[draft].memory, MemoryPlan)
    assert "one engine has to run both" in (by_path[file].excluded or "")
    known = [each.offer.good for each in found.candidates.listed if each.offer and each.offer.place is Place.KNOWN]
    assert known == [good]


def test_targets_of_good_pairs_that_fit() -> None:
    def pair(name: str, memory: int, size: int, format_: ModelFormat = ModelFormat.GGUF) -> GoodPair:
        target = GoodModel(name, f"maker/{name}", f"{name}.gguf", "Q4_K_M", 8.0, size)
        draft = GoodModel("small", "maker/small", "small.gguf", "Q8_0", 0.5, 10)
        return GoodPair(f"{name}-{memory}", name, memory, format_, "", target, draft)

    pairs = [pair("a", 8, 100), pair("a", 16, 100), pair("b", 16, 500), pair("c", 48, 9000)]
    pairs.append(pair("m", 8, 100, ModelFormat.MLX))

    def fit(size: int) -> Fit:
        return Fit.FITS if size < 1000 else Fit.TOO_LARGE

    assert [each.name for each in targets_that_fit(pairs, fit, mlx=False)] == ["a", "b"]
    assert [each.name for each in targets_that_fit(pairs, fit, mlx=True)] == ["a", "b", "m"]
