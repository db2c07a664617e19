"""The start of the program, as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forespeak import __version__
from forespeak.__main__ import main
from forespeak.ui import app


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"}
    }
    return subprocess.run(
        [sys.executable, "-m", "forespeak", *arguments],
        env=kept | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a display be missing")
def test_without_a_display_the_terminal_is_offered() -> None:
    done = start()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "forespeak chat" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_s_file_is_opened_in_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "A model 🍁.GGUF"
    model.touch()
    opened: list[Path | None] = []
    monkeypatch.setattr(app, "ui_problem", lambda: None)

    def run_window(model: Path | None = None) -> int:
        opened.append(model)
        return 0

    monkeypatch.setattr(app, "run_window", run_window)
    monkeypatch.chdir(tmp_path)
    for arguments in ([str(model)], [model.name], []):
        monkeypatch.setattr(sys, "argv", ["forespeak", *arguments])
        assert main() == 0
    assert opened == [model, model, None]
    monkeypatch.setattr(sys, "argv", ["forespeak", "missing.gguf"])
    assert main() == 2
    assert len(opened) == 3


def test_arguments_go_to_the_command_line() -> None:
    done = start("--version")
    assert (done.returncode, done.stdout) == (0, f"forespeak {__version__}\n")
    assert start("nonsense").returncode == 2
