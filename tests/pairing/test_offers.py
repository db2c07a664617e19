from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.formats import ModelFormat
from forespeak.models.gguf import GgufKind
from forespeak.models.good_pairs import good_pairs
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.hub_results import HubModel
from forespeak.models.library import LibraryItem
from forespeak.models.roots import Root
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.model_shape import ModelShape, WeightFormat, estimated_shape
from forespeak.pairing.offers import (
    Offer,
    Place,
    best_group,
    from_hub,
    from_library,
    known_drafts,
    local_offer,
    offer_at,
    same_thing,
    worth_looking_at,
)
from models.gguf_writer import ModelFile
from models.library_folders import safetensors, write_mlx


def item(name: str, **more: object) -> LibraryItem:
    values: dict[str, object] = {"quantisation": "Q8_0", "parameters": 490_000_000, **more}
    path = Path(f"/m/{name}.gguf")
    root = Root(Path("/m"), "Mine", read_only=False)
    return LibraryItem(path, (path,), root, ModelFormat.GGUF, GgufKind.MODEL, name, 520_000_000, 0.0, **values)  # type: ignore[arg-type]


def test_an_item_of_the_library_becomes_an_offer() -> None:
    found = from_library(item("model", title="Qwen2.5 0.5B Instruct"))
    assert found.model_name == parse_name("Qwen2.5-0.5B-Instruct")
    assert found.path == Path("/m/model.gguf")
    assert found.download_bytes == 0
    assert found.shape is not None
    assert found.shape.parameters == 490_000_000
    assert from_library(item("Qwen2.5-0.5B", title="Untitled")).model_name == parse_name("Qwen2.5-0.5B")
    assert from_library(item("a", problem="It is incomplete.")).problem == "It is incomplete."


def test_a_mixture_of_experts_is_known_by_its_active_parameters() -> None:
    found = from_library(item("Qwen3-30B-A3B", parameters=30_000_000_000, active_parameters=3_000_000_000))
    assert found.shape is not None
    assert found.shape.active_weights == pytest.approx(3e9)


def group(path: str, size: int, label: str | None, **more: object) -> HubFileGroup:
    files = (HubFile(path, size),)
    return HubFileGroup("someone/Qwen2.5-0.5B-Instruct-GGUF", "c0ffee", label, ModelFormat.GGUF, files, **more)  # type: ignore[arg-type]


def test_a_group_on_the_hub_becomes_an_offer() -> None:
    found = from_hub(group("qwen-q8_0.gguf", 530_000_000, "Q8_0"))
    assert found.model_name.parameters == 0.5e9
    assert found.shape is not None
    assert found.shape.is_estimate
    assert found.path is None
    assert found.download_bytes == 530_000_000
    assert found.group is not None
    assert from_hub(group("qwen-q8_0.gguf", 530_000_000, "Q8_0"), 494_000_000).shape == estimated_shape(
        530_000_000, "Q8_0", 494e6
    )
    assert from_hub(group("Qwen3-8B-EAGLE3.gguf", 530_000_000, "Q8_0")).kind is GgufKind.DRAFT_HEAD
    assert from_hub(group("a.gguf", 1, "Q8_0", shards=3, missing=(2,))).problem is not None


def test_the_file_to_draft_with_has_four_bits_or_the_next_more() -> None:
    groups = [group(f"a-{label}.gguf", size, label) for label, size in (("Q2_K", 2), ("Q8_0", 8), ("F16", 16))]
    projector = group("mmproj.gguf", 1, "Q4_K_M", kind=GgufKind.PROJECTOR)
    best = best_group([*groups, projector])
    assert best is not None
    assert best.label == "Q8_0"
    four = group("a-Q4_K_M.gguf", 5, "Q4_K_M")
    assert best_group([*groups, four, group("a-Q4_K_L.gguf", 6, "Q4_K_L")]) == four
    assert best_group([groups[0]]) == groups[0]
    assert best_group([projector]) is None


def test_the_size_of_a_local_model_is_its_header_s(tmp_path: Path) -> None:
    path = ModelFile(["a", "b"]).write(tmp_path / "a.gguf")
    here = replace(item("a"), path=path)
    assert local_offer(here).shape == ModelShape(WeightFormat.F32, 40, 160)
    path.write_bytes(b"broken since")
    broken = local_offer(here)
    assert broken.shape is not None
    assert broken.shape.is_estimate


def target(name: str, weights: float) -> Offer:
    return Offer(name, Place.HERE, parse_name(name), 1, shape=estimated_shape(round(weights / 2), "Q4_K_M", weights))


def test_well_known_drafts_are_those_of_the_family() -> None:
    pairs = good_pairs()
    names = [offer.model_name.words for offer in known_drafts(target("Qwen2.5-Coder-32B-Instruct", 32e9), pairs)]
    assert names
    assert set(names) == {"qwen2.5 coder"}
    llama = known_drafts(target("Meta-Llama-3.3-70B-Instruct", 70e9), pairs)
    assert {offer.model_name.words for offer in llama} == {"llama 3.2"}
    assert all(offer.place is Place.KNOWN and offer.good is not None and offer.shape is not None for offer in llama)
    assert len({offer.name for offer in llama}) == len(llama)
    assert known_drafts(target("Unheard-Of-7B", 7e9), pairs) == ()


def test_every_well_known_pair_finds_its_own_draft() -> None:
    for pair in good_pairs():
        (mine, other) = (ModelFormat.GGUF, ModelFormat.MLX) if pair.target.file else (ModelFormat.MLX, ModelFormat.GGUF)
        of = target(pair.target.name, pair.target.parameters * 1e9)
        (found,) = known_drafts(replace(of, format=mine), [pair])
        assert (found.good, found.format) == (pair.draft, mine)
        assert not known_drafts(replace(of, format=other), [pair])


def test_of_a_search_only_smaller_kin_are_worth_looking_at() -> None:
    models = [
        HubModel("a/Qwen2.5-32B-Instruct-GGUF", 900),
        HubModel("a/Qwen2.5-0.5B-Instruct-GGUF", 100, parameters=494_000_000),
        HubModel("b/Qwen2.5-0.5B-Instruct-GGUF", 500, parameters=494_000_000),
        HubModel("a/Qwen2.5-1.5B-Instruct-GGUF", 200),
        HubModel("a/Qwen2.5-Coder-0.5B-Instruct-GGUF", 9000),
        HubModel("a/Mistral-7B-GGUF", 9000),
        HubModel("a/Qwen2.5-Instruct-GGUF", 9000),
    ]
    of = target("Qwen2.5-32B-Instruct", 32e9)
    assert [model.repo for model in worth_looking_at(of, models)] == [
        "b/Qwen2.5-0.5B-Instruct-GGUF",
        "a/Qwen2.5-1.5B-Instruct-GGUF",
        "a/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    ]
    assert len(worth_looking_at(of, models, 1)) == 1
    assert worth_looking_at(of, []) == ()


def test_of_mlx_repos_the_one_with_four_bits_is_looked_at() -> None:
    models = [
        HubModel("a/Qwen3-0.6B-8bit", 9000),
        HubModel("a/Qwen3-0.6B-4bit", 100),
        HubModel("b/Qwen3-0.6B-4bit", 200),
        HubModel("a/Qwen3-0.6B-bf16", 9000),
        HubModel("a/Qwen3-1.7B-3bit", 9000),
        HubModel("a/Qwen3-1.7B-6bit", 10),
    ]
    of = replace(target("Qwen3-14B-4bit", 14e9), format=ModelFormat.MLX)
    assert [model.repo for model in worth_looking_at(of, models)] == ["b/Qwen3-0.6B-4bit", "a/Qwen3-1.7B-6bit"]


def test_a_folder_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.models.library_item.mlx_is_installed", lambda: True)
    weights = safetensors({"model.layers.0.mlp.up_proj.weight": ("F16", (64, 64))}, {"format": "mlx"})
    config = {"model_type": "llama", "num_hidden_layers": 1, "vocab_size": 3}
    found = offer_at(write_mlx(tmp_path / "Qwen2.5-0.5B-fp16", config, model_at_safetensors=weights))
    assert (found.name, found.format, found.label) == ("Qwen2.5-0.5B-fp16", ModelFormat.MLX, "F16")
    assert found.model_name == parse_name("Qwen2.5-0.5B")
    assert found.shape == ModelShape(WeightFormat.F16, 4096, 8192)
    assert found.problem is None
    (tmp_path / "empty").mkdir()
    assert offer_at(tmp_path / "empty").shape is None


def test_the_same_model_in_the_other_format_is_another_thing() -> None:
    here = from_library(item("Qwen3-0.6B-BF16", quantisation="BF16"))
    folder = HubFileGroup("a/Qwen3-0.6B-bf16", "c", "BF16", ModelFormat.MLX, (HubFile("model.safetensors", 1),))
    assert same_thing(here) != same_thing(from_hub(folder))
