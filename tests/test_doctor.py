"""What doctor finds here, and that it outlives an engine that does not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import dying_child
from forespeak import __version__, cli, doctor
from forespeak.engines import device_list
from forespeak.engines.device_list import EngineFacts
from forespeak.engines.devices import Device
from forespeak.engines.machine_gpus import MachineGpu, Maker, Surroundings
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.models.library_settings import LibrarySettings, LibrarySettingsFile
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


def test_the_models_folder_is_the_chosen_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LibrarySettingsFile(folders().config).write(LibrarySettings(tmp_path / "disk"))
    asked: list[Path] = []

    def missing(models: Path) -> None:
        asked.append(models)
        raise UserFacingError("The starter pair is not installed.")

    monkeypatch.setattr(doctor, "check_starter", missing)
    assert doctor.findings()["folders"]["models"]["path"] == str(tmp_path / "disk")
    assert asked == [tmp_path / "disk"]


def test_the_report_names_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor"]) == 0
    printed = capsys.readouterr().out
    for words in ("Versions", "Devices", "CPU", "Machine", "Folders", "Starter model", "must be unpacked", "Window"):
        assert words in printed


def test_doctor_outlives_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_list, "_tell", dying_child.abort)
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


def test_a_gpu_that_is_not_used_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = MachineGpu(Maker.NVIDIA, "NVIDIA GeForce RTX 4090", "0000:01:00.0", "nvidia")
    facts = EngineFacts("b1", "AVX2", ("CPU",), (), (Device("CPU", "A processor", "CPU", 10**9, 2 * 10**9, "CPU"),))
    monkeypatch.setattr(doctor, "engine_facts", lambda: facts)
    monkeypatch.setattr(doctor, "surroundings", lambda: Surroundings("Linux", (card,), cuda_driver=True))
    assert cli.run(["devices"]) == 0
    printed = capsys.readouterr().out
    assert "A processor, CPU, 1.0 GB free of 2.0 GB" in printed
    assert "“NVIDIA GeForce RTX 4090” is not used." in printed
    assert 'CMAKE_ARGS="-DGGML_CUDA=ON" pip install' in printed
    assert max(len(line) for line in printed.splitlines() if "pip install" not in line) <= 102
    assert printed.strip() in doctor.report(doctor.findings())
    assert cli.run(["devices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"]["devices"][0]["backend"] == "CPU"
    assert found["gpus"]["found"] == [card.name]
    assert len(found["gpus"]["reasons"]) == len(found["gpus"]["commands"]) == 1
