"""The self-test: on the real installation, and what it says where something does not work."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import self_test_child
from forespeak import cli, self_test_command, terminal
from forespeak.engines.parity_result import ParityResult
from forespeak.pairing import parity
from forespeak.speculation.trace import Source


def self_test(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = cli.run(["self-test", "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def test_all_of_it_works_here_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("FORESPEAK_HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(self_test_command, "_PROMPTS", 1)
    monkeypatch.setattr(self_test_command, "_TOKENS", 8)
    # Instead of eighty places: enough, since batches move scores from the 33rd on.
    monkeypatch.setattr(parity, "_MEASURED_TOKENS", 48)
    code, found = self_test(capsys)
    assert (code, found["problem"]) == (0, None)
    assert found["window"]["accepted"] > 0
    assert found["window"]["tokens"] == 32
    assert (found["parity"]["replies"], found["parity"]["equal"]) == (2, 2)
    assert found["parity"]["tested"] > 0
    assert not home.exists()
    assert list(temporary.iterdir()) == []
    assert os.environ["FORESPEAK_HOME"] == str(home)


@pytest.mark.parametrize(
    ("window", "code", "problem"),
    [
        (self_test_child.dies, terminal.FAULT, "The window ended its process (exit code 7)."),
        (self_test_child.cannot_open, terminal.MENDABLE, "No window. No display. Get one."),
        (self_test_child.is_broken, terminal.FAULT, "ValueError: no such thing"),
    ],
)
def test_a_window_that_does_not_work_is_told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    window: Callable[[Connection], None],
    code: int,
    problem: str,
) -> None:
    monkeypatch.setattr(self_test_command, "_check_window", window)
    given, found = self_test(capsys)
    assert (given, found["passed"], found["problem"]) == (code, False, problem)
    assert cli.run(["self-test"]) == code
    assert f"problem  {problem}" in capsys.readouterr().out


def test_a_parity_that_shows_nothing_does_not_pass() -> None:
    empty = ParityResult((), 2, (Source.DRAFT_MODEL,), 0.0, 1.0, "", "llama.cpp", "0")
    with pytest.raises(self_test_command.BrokenError, match="No drafted token was tested"):
        self_test_command._judged(empty)
