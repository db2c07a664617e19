"""The command line refuses what memory would not hold, in words, and loads it if it is told to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forespeak import cli, terminal
from forespeak.errors import UserFacingError
from models import architectures

HUGE = "2000000000"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return architectures.lfm2().write(tmp_path_factory.mktemp("models") / "model.gguf")


@pytest.mark.parametrize(
    "arguments",
    [("chat", "-p", "Hello", "--context", HUGE), ("bench", "--context", HUGE, "--source", "prompt-lookup")],
    ids=["chat", "bench"],
)
def test_a_command_says_what_is_needed_and_what_is_free(model: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "forespeak", *arguments, "--target", str(model)],
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == terminal.MENDABLE, done.stderr
    assert "This does not fit into this machine's memory." in done.stderr
    assert "The model needs " in done.stderr
    assert "(--context 32768)." in done.stderr
    assert "--load-anyway" in done.stderr
    assert done.stdout == ""


def test_every_command_that_loads_can_be_told_to(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed on is looked at where it arrives; nothing is loaded."""
    told: list[tuple[str, bool]] = []

    def look(request: object, *, anyway: bool, **_: object) -> None:
        told.append((command, anyway))
        raise UserFacingError("Looked at.")

    monkeypatch.setattr("forespeak.pairing.load_plan.see_that_it_fits", look)
    for command, more in (("chat", ["-p", "Hello"]), ("bench", ["--source", "prompt-lookup"]), ("parity", [])):
        for option in ([], ["--load-anyway"]):
            assert cli.run([command, "--target", str(model), *more, *option]) == terminal.MENDABLE
    assert told == [(command, anyway) for command in ("chat", "bench", "parity") for anyway in (False, True)]
