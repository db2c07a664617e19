from __future__ import annotations

import os
from pathlib import Path

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.folders import folders


def test_one_home_for_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "portable"))
    places = folders()
    assert places.chats == tmp_path / "portable" / "data" / "chats.db"
    everything = {places.data, places.models, places.config, places.cache, places.logs}
    assert len(everything) == 5
    assert {place.parent for place in everything} == {tmp_path / "portable"}
    assert not places.data.exists()
    places.create()
    places.create()
    assert all(place.is_dir() for place in everything)


def test_the_home_may_be_relative_or_in_the_user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORESPEAK_HOME", "here")
    assert folders().models == tmp_path / "here" / "models"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("FORESPEAK_HOME", "~/there")
    assert folders().models == tmp_path / "there" / "models"


def test_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", " ")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    places = folders()
    assert places.models == tmp_path / "Forespeak" / "models"
    for place in (places.data, places.config, places.cache, places.logs):
        assert place.is_absolute()
        assert "Forespeak" in place.parts


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "taken"))
    with pytest.raises(UserFacingError) as caught:
        folders().create()
    assert "chats" in caught.value.what
    assert str(tmp_path / "taken") in caught.value.why
    assert os.environ["FORESPEAK_HOME"]
    assert "FORESPEAK_HOME" in caught.value.remedy
