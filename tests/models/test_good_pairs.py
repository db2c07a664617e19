"""The file of good pairs by its form, their order on a machine, and finding their files on the Hub."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.good_pairs import MEMORY_CLASSES, GoodModel, GoodPair, best_first, good_pairs, group_of
from forespeak.models.hub_files import HubFile, group_files, quant_label
from forespeak.models.memory import Fit
from forespeak.models.quantisation import FILE_TYPES

PAIRS = good_pairs()
MODELS = [(pair, model) for pair in PAIRS for model in (pair.target, pair.draft)]
BITS = {"Q4_K_M": (4.6, 5.6), "IQ4_XS": (4.2, 4.7), "Q8_0": (8.3, 11.1), "4-bit": (4.2, 4.9)}
"""Of a file, by parameter. Small models have large embeddings: Qwen2.5 0.5B has them twice in its Q8_0."""


def by_name(entry: object) -> str:
    return entry.id if isinstance(entry, GoodPair) else entry.name if isinstance(entry, GoodModel) else str(entry)


def test_every_class_and_format_has_pairs() -> None:
    gguf = [pair for pair in PAIRS if pair.format is ModelFormat.GGUF]
    mlx = [pair for pair in PAIRS if pair.format is ModelFormat.MLX]
    assert {pair.memory for pair in gguf} == set(MEMORY_CLASSES)
    assert len({pair.memory for pair in mlx}) > 1
    assert len(PAIRS) >= 15


def test_names_are_unique() -> None:
    assert len({pair.id for pair in PAIRS}) == len(PAIRS)
    assert len({pair.title for pair in PAIRS}) == len(PAIRS)


def test_one_file_is_described_in_one_way() -> None:
    described: dict[tuple[str, str | None], GoodModel] = {}
    for _, model in MODELS:
        assert described.setdefault((model.repo, model.file), model) == model


@pytest.mark.parametrize("pair", PAIRS, ids=by_name)
def test_a_pair_makes_sense(pair: GoodPair) -> None:
    assert re.fullmatch(r"[a-z0-9.-]+", pair.id)
    assert pair.good_for
    assert pair.memory in MEMORY_CLASSES
    assert pair.target.parameters > 2 * pair.draft.parameters
    assert pair.target.size_bytes > pair.draft.size_bytes
    # With a cache and buffers it must fit its class, and none of the smaller ones.
    needed = 1.12 * pair.size_bytes + 600_000_000
    assert next(memory for memory in MEMORY_CLASSES if needed <= memory * 1e9) == pair.memory


@pytest.mark.parametrize(("pair", "model"), MODELS, ids=by_name)
def test_a_model_is_told_as_its_publisher_has_it(pair: GoodPair, model: GoodModel) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", model.repo)
    assert model.name
    low, high = BITS[model.quant]
    # Gemma 3's and Qwen's vocabularies weigh more in a small model than these limits are made for.
    allowed = high if model.parameters > 2 else 1.35 * high
    assert low <= model.size_bytes * 8 / (model.parameters * 1e9) <= allowed
    if pair.format is ModelFormat.MLX:
        assert model.file is None
        assert model.repo.startswith(("mlx-community/", "lmstudio-community/"))
        assert model.repo.endswith(model.quant.replace("-", ""))
    else:
        assert model.file is not None
        assert model.file.endswith(".gguf")
        assert model.quant in set(FILE_TYPES.values())
        assert quant_label(model.file) == model.quant
        assert model.repo.endswith("-GGUF")
        stem = model.repo.partition("/")[2].removesuffix("-GGUF")
        assert model.file.casefold() == f"{stem}-{model.quant}.gguf".casefold()


def test_what_fits_stands_first_and_the_largest_of_it_at_the_top() -> None:
    ranked = best_first(PAIRS, lambda size: Fit.FITS if size < 10_400_000_000 else Fit.TOO_LARGE, mlx=False)
    fits = [fit for _, fit in ranked]
    assert fits == sorted(fits, key=list(Fit).index)
    assert ranked[0][0].memory == 16
    large = [pair.memory for pair, fit in ranked if fit is Fit.TOO_LARGE]
    assert large == sorted(large)
    assert all(pair.format is ModelFormat.GGUF for pair, _ in ranked)


def test_apple_silicon_sees_mlx_too() -> None:
    ranked = best_first(PAIRS, lambda size: Fit.TIGHT, mlx=True)
    assert len(ranked) == len(PAIRS)
    assert {fit for _, fit in ranked} == {Fit.TIGHT}


@pytest.fixture
def model() -> GoodModel:
    return GoodModel("Small", "maker/Small-GGUF", "Small-Q4_K_M.gguf", "Q4_K_M", 1.0, 600_000_000)


def test_a_file_is_found_by_its_name(model: GoodModel) -> None:
    names = ("Small-Q8_0.gguf", "Small-Q4_K_M.gguf", "README.md")
    groups = group_files(model.repo, "0" * 40, [HubFile(name, 600_000_000) for name in names])
    assert group_of(model, model.repo, groups).files[0].path == "Small-Q4_K_M.gguf"


def test_a_file_that_is_gone_is_told_with_a_way_out(model: GoodModel) -> None:
    groups = group_files(model.repo, "0" * 40, [HubFile("Small-Q8_0.gguf", 600_000_000)])
    with pytest.raises(UserFacingError) as caught:
        group_of(model, model.repo, groups)
    assert "Small-Q4_K_M.gguf" in caught.value.what
    assert "Discover" in caught.value.remedy


def test_an_mlx_model_is_its_whole_repo(model: GoodModel) -> None:
    whole = replace(model, repo="maker/Small-4bit", file=None, quant="4-bit")
    files = [HubFile("config.json", 900), HubFile("model.safetensors", 500_000_000)]
    group = group_of(whole, whole.repo, group_files(whole.repo, "0" * 40, files, mlx=True))
    assert {file.path for file in group.files} == {"config.json", "model.safetensors"}
    with pytest.raises(UserFacingError):
        group_of(whole, whole.repo, ())


def test_a_file_of_another_form_is_our_mistake(tmp_path: Path) -> None:
    path = tmp_path / "pairs.toml"
    path.write_text('[[pair]]\nid = "a"\ntitle = "A"\nmemory = 8\n')
    with pytest.raises(KeyError):
        good_pairs(path)
