from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.pairing.ranking import Measurement, Range
from forespeak.ui.wizard_state import WizardFile, WizardState, WizardStep

STATE = WizardState(
    WizardStep.KEEP,
    Path("/models/big.gguf"),
    "/models/small.gguf",
    "prose",
    "abc",
    Measurement(10.0, 15.0, Range(1.5, 1.2, 1.8), None, 200, (("prose", 1.5),), "2026-11-30T10:00:00+00:00", "e", "1"),
)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = WizardFile(tmp_path / "deep" / "wizard.json")
    assert file.read() == WizardState()
    file.write(STATE)
    assert file.read() == STATE
    file.write(WizardState())
    assert file.read() == WizardState()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": 9}', '{"format": 1, "kind": "poems"}', "null", "[" * 99999]
)
def test_a_damaged_file_is_the_beginning(tmp_path: Path, text: str) -> None:
    (tmp_path / "wizard.json").write_text(text)
    assert WizardFile(tmp_path / "wizard.json").read() == WizardState()


def test_a_disk_that_refuses_loses_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    WizardFile(tmp_path / "file" / "wizard.json").write(STATE)


def test_a_step_without_a_target_is_the_first_one(tmp_path: Path) -> None:
    file = WizardFile(tmp_path / "wizard.json")
    file.write(WizardState(WizardStep.TEST, None, None, "json"))
    assert file.read() == WizardState(kind="json")
