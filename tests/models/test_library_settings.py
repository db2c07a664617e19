"""The library's folders survive a restart, and a damaged file does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.models.library_settings import (
    LibrarySettings,
    LibrarySettingsFile,
    users_folders,
    with_chosen_models,
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    settings = LibrarySettings(tmp_path / "模型", (tmp_path / "a", tmp_path / "b"))
    LibrarySettingsFile(tmp_path / "config").write(settings)
    assert LibrarySettingsFile(tmp_path / "config").read() == settings


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", '{"own": 5, "added": 7}', '{"own": "", "added": [3, null]}', '{"own": "models"}'],
)
def test_a_damaged_file_means_the_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "library.json").write_text(text)
    assert LibrarySettingsFile(tmp_path).read() == LibrarySettings()


def test_one_folder_is_listed_once(tmp_path: Path) -> None:
    file = LibrarySettingsFile(tmp_path)
    file.write(LibrarySettings(None, (tmp_path, tmp_path)))
    assert file.read().added == (tmp_path,)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file")
    with pytest.raises(UserFacingError):
        LibrarySettingsFile(tmp_path / "config").write(LibrarySettings())


def test_the_chosen_models_folder_stands_in_for_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))
    places = folders()
    assert with_chosen_models(places) == places
    LibrarySettingsFile(places.config).write(LibrarySettings(tmp_path / "disk"))
    chosen = with_chosen_models(places)
    assert chosen.models == tmp_path / "disk"
    assert chosen.config == places.config
    assert users_folders() == chosen
