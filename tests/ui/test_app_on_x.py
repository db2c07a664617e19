"""On a real X server, because the offscreen platform hides a platform's faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

XVFB = shutil.which("Xvfb")
pytestmark = pytest.mark.skipif(XVFB is None, reason="Xvfb is not installed")


@pytest.fixture
def x_display() -> Iterator[str]:
    assert XVFB is not None
    read, write = os.pipe()
    command = [XVFB, "-displayfd", str(write), "-screen", "0", "1280x900x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL) as server:
        os.close(write)
        with os.fdopen(read) as answer:
            number = answer.readline().strip()
        try:
            yield f":{number}"
        finally:
            server.terminate()


def test_the_window_opens_on_x_without_a_complaint(x_display: str, tmp_path: Path) -> None:
    code = """
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from forespeak.ui import app, session
start = session.Session.start
def started(self):
    start(self)
    print(QGuiApplication.platformName(), self.window.isVisible(), flush=True)
    self.open_settings()
    QTimer.singleShot(700, self.window.close)
session.Session.start = started
problem = app.ui_problem()
if problem is not None:
    raise SystemExit(str(problem))
raise SystemExit(app.run_window(["forespeak"]))
"""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"QT_QPA_PLATFORM", "WAYLAND_DISPLAY"}
    }
    environment |= {"FORESPEAK_HOME": str(tmp_path), "DISPLAY": x_display}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "xcb True"
