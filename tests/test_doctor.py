"""What doctor finds here, and that it outlives an engine that does not."""

from __future__ import annotations

import json
import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from forespeak import __version__, cli, doctor
from forespeak.errors import UserFacingError
from forespeak.ui import app


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "not made yet"))


def test_findings_are_true_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["forespeak"] == __version__
    assert found["versions"]["llama-cpp-python"] == "0.3.36"
    assert found["engine"]["devices"][0]["total_bytes"] > 0
    assert found["machine"]["threads"] == os.cpu_count()
    assert found["folders"]["models"]["path"] == str(tmp_path / "not made yet" / "models")
    assert found["folders"]["models"]["exists"] is False
    assert found["folders"]["models"]["free_bytes"] > 0
    assert found["starter"]["state"] == "must be unpacked"


def test_looking_makes_nothing(tmp_path: Path) -> None:
    doctor.findings()
    assert list(tmp_path.iterdir()) == []


def test_the_report_names_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor"]) == 0
    printed = capsys.readouterr().out
    for words in ("Versions", "Devices", "CPU", "Machine", "Folders", "Starter model", "must be unpacked", "Window"):
        assert words in printed


def _die(answer: Connection) -> None:
    os.abort()


def test_doctor_outlives_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_describe_llama_cpp", _die)
    found = doctor.findings()
    assert found["engine"]["problem"].startswith("llama.cpp ended its process")
    assert found["engine"]["problem"] in doctor.report(found)


def test_a_window_that_cannot_open_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "ui_problem", lambda: UserFacingError("No window.", "No display.", "Get one."))
    found = doctor.findings()
    assert found["window"]["problem"] == "No window. No display. Get one."
    assert "No window." in doctor.report(found)


def test_a_missing_starter_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(folder: Path) -> None:
        raise UserFacingError("The starter pair is not installed.")

    monkeypatch.setattr(doctor, "check_starter", missing)
    found = doctor.findings()
    assert "The starter pair is not installed." in doctor.report(found)
