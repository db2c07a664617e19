from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.library import Library
from forespeak.models.library_names import named_item
from forespeak.models.roots import added_root
from models.library_folders import write_mlx, write_model


def test_a_model_by_its_path_its_name_and_its_repo(tmp_path: Path) -> None:
    own = tmp_path / "own"
    one = write_model(own / "owner" / "repo" / "One-F32.gguf")
    folder = write_mlx(own / "o" / "Some-4bit")
    items = Library(own, (), tmp_path / "cache").scan()
    for name in (str(one), "One-F32", "one-f32.GGUF", "owner/repo"):
        assert named_item(items, name).path == one
    for name in (str(folder), str(next(folder.glob("*.safetensors"))), "some-4bit"):
        assert named_item(items, name).path == folder
    with pytest.raises(UserFacingError, match="no model called"):
        named_item(items, "Two")


def test_ours_come_before_another_programs(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    mine = write_model(own / "One.gguf")
    write_model(other / "One.gguf", entries={"general.name": "another"})
    library = Library(own, (added_root(other),), tmp_path / "cache")
    assert named_item(library.scan(), "One").path == mine
    write_model(own / "below" / "One.gguf")
    with pytest.raises(UserFacingError, match="2 models called"):
        named_item(library.scan(), "One")
