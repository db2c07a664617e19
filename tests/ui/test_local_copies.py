"""What is here already: by its repo, or as files of the same size that are worth a comparison."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.ui.local_copies import local_copy, local_item, place_words
from ui.hub_doubles import COMMIT, group, item_of


def test_the_same_repo_is_here() -> None:
    wanted = group()
    copy = local_copy(wanted, [item_of(wanted)])
    assert copy is not None
    assert copy.same_repo
    assert copy.path == Path("/models/someone/Small-7B-GGUF/small-7b-q4_k_m.gguf")
    assert copy.place == "Models folder, someone/Small-7B-GGUF"


def test_another_quant_of_it_is_not() -> None:
    assert local_copy(group("Q6_K", 6_000), [item_of(group("Q4_K_M", 4_000))]) is None


def test_the_same_size_elsewhere_is_worth_a_look() -> None:
    wanted = group()
    for other in (item_of(wanted, own=False, repo=None), item_of(replace(wanted, repo="copies/Of-It"), own=False)):
        copy = local_copy(wanted, [other])
        assert copy is not None
        assert not copy.same_repo
    renamed = replace(item_of(wanted, repo=None), files=(Path("/models/renamed.gguf"),))
    assert local_item(wanted, [renamed]) is renamed


def test_the_repos_own_comes_before_others() -> None:
    wanted = group()
    other, own = item_of(wanted, own=False, repo=None), item_of(wanted)
    assert local_item(wanted, [other, own]) is own


def test_what_cannot_be_compared_is_not_offered() -> None:
    wanted = replace(group(), files=(HubFile("other-name.gguf", 4_680_000_000, None),))
    assert local_item(wanted, [item_of(group(), repo=None)]) is None


def test_what_is_damaged_is_not_here() -> None:
    wanted = group()
    assert local_copy(wanted, [item_of(wanted, problem="It is cut off.")]) is None


def test_an_mlx_folder_is_known_by_its_repo() -> None:
    files = (HubFile("config.json", 100), HubFile("model.safetensors", 1000, "a" * 64))
    wanted = HubFileGroup("mlx/Small-4bit", COMMIT, "4-bit", ModelFormat.MLX, files)
    there = replace(item_of(wanted), path=Path("/models/mlx/Small-4bit"), size_bytes=1000)
    copy = local_copy(wanted, [there])
    assert copy is not None
    assert copy.same_repo
    assert local_copy(wanted, [replace(there, repo="mlx/Other-4bit")]) is None


def test_a_file_at_the_top_of_a_folder() -> None:
    item = replace(item_of(group()), path=Path("/models/x.gguf"))
    assert place_words(item) == "Models folder"
    assert place_words(replace(item, path=Path("/elsewhere/x.gguf"))) == "Models folder"
