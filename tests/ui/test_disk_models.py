"""Names and verdicts from the files themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.formats import NO_MLX
from forespeak.models.starter import starter_draft_path
from forespeak.pairing.compatibility import Verdict, VerdictKind, refusal
from forespeak.ui.disk_models import DiskModels, short_words
from models.gguf_writer import ModelFile
from models.mlx_writer import mlx_folder

needs_starter = pytest.mark.skipif(starter_draft_path() is None, reason="the starter extra is not installed")


@needs_starter
def test_the_starter_is_offered_with_its_size(tmp_path: Path) -> None:
    starter = DiskModels(tmp_path / "models").starter()
    assert starter is not None
    assert starter.conversion is not None
    assert starter.conversion.source == starter.draft
    assert starter.conversion.destination == starter.target
    assert starter.size.endswith("MB")
    assert starter.target_name == "SmolLM2 135M Instruct · F32"
    assert starter.draft_name == "SmolLM2 135M Instruct · Q4_1"


@needs_starter
def test_the_starter_goes_with_the_models_folder(tmp_path: Path) -> None:
    models = DiskModels(tmp_path / "models")
    models.set_folder(tmp_path / "elsewhere")
    starter = models.starter()
    assert starter is not None
    assert tmp_path / "elsewhere" in starter.target.parents


@needs_starter
def test_a_model_fits_itself_and_has_a_name(tmp_path: Path) -> None:
    draft = starter_draft_path()
    assert draft is not None
    models = DiskModels(tmp_path)
    assert models.name(draft).endswith(" · Q4_1")
    fit = models.fit(draft, draft)
    assert fit.fits
    assert fit.short == "same vocabulary"
    assert refusal(draft, draft) is None


def test_without_the_package_there_is_no_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forespeak.ui.disk_models.starter_draft_path", lambda: None)
    assert DiskModels(tmp_path).starter() is None


def test_what_is_no_model_is_refused_with_words(tmp_path: Path) -> None:
    text = tmp_path / "notes.gguf"
    text.write_text("these are notes")
    with pytest.raises(UserFacingError, match=r"notes\.gguf"):
        DiskModels(tmp_path).name(text)
    with pytest.raises(UserFacingError, match=r"gone\.gguf"):
        DiskModels(tmp_path).name(tmp_path / "gone.gguf")


def test_a_target_that_no_draft_can_serve_is_still_a_model(tmp_path: Path) -> None:
    model = ModelFile(["a", "b"], architecture="mamba").write(tmp_path / "state.gguf")
    models = DiskModels(tmp_path)
    assert models.name(model) == "state · F32"
    assert not models.fit(model, model).fits


def test_the_refusal_says_the_same_as_the_engines_check(tmp_path: Path) -> None:
    def judge(target: Path, draft: Path) -> Verdict:
        return Verdict(VerdictKind.DIFFERS, False, "Token 5 is “a” in the target and “b” in the draft.")

    fit = DiskModels(tmp_path, judge).fit(Path("a"), Path("b"))
    assert (fit.fits, fit.short) == (False, "vocabulary differs")
    assert "Token 5" in fit.full


@pytest.mark.parametrize("kind", list(VerdictKind))
@pytest.mark.parametrize("usable", [True, False])
def test_every_verdict_has_its_few_words(kind: VerdictKind, usable: bool) -> None:
    assert 0 < len(short_words(Verdict(kind, usable, "reason"))) <= 28


def test_a_folder_is_called_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mlx_folder(tmp_path / "Small-0.5B-4bit", {"a": 0, "b": 1})
    models = DiskModels(tmp_path)
    monkeypatch.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: True)
    assert models.name(folder) == "Small-0.5B-4bit"
    assert models.fit(folder, folder).fits
    with pytest.raises(UserFacingError, match="is a folder, not a model file"):
        models.name(tmp_path)
    monkeypatch.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: False)
    with pytest.raises(UserFacingError) as told:
        models.name(folder)
    assert (told.value.why, "GGUF" in told.value.remedy) == (NO_MLX, True)
