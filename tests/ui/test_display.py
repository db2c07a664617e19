"""A window that cannot be opened is explained before Qt aborts the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forespeak.ui import display
from forespeak.ui.display import missing_libraries, window_problem

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays differ elsewhere")


def environment(**values: str) -> dict[str, str]:
    return values


@linux
def test_no_display_is_said_with_the_way_out() -> None:
    problem = window_problem(environment())
    assert problem is not None
    assert "neither DISPLAY nor WAYLAND_DISPLAY" in problem.why
    assert "forespeak chat" in problem.remedy


@linux
def test_offscreen_needs_no_display() -> None:
    assert window_problem(environment(QT_QPA_PLATFORM="offscreen")) is None
    assert window_problem(environment(QT_QPA_PLATFORM="vnc:size=800x600")) is None


@linux
def test_a_display_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_missing_problem", lambda *_names: None)
    problem = window_problem(environment(DISPLAY=":987"))
    assert problem is not None
    assert "DISPLAY=:987" in problem.why


@linux
def test_a_wayland_socket_that_is_gone_falls_back_to_x(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(display, "_missing_problem", lambda *_names: None)
    monkeypatch.setattr(display, "_x_server_problem", lambda _environment: None)
    place = environment(WAYLAND_DISPLAY="wayland-9", XDG_RUNTIME_DIR=str(tmp_path))
    problem = window_problem(place)
    assert problem is not None
    assert "wayland-9" in problem.why
    assert window_problem(place | {"DISPLAY": ":0"}) is None
    (tmp_path / "wayland-9").touch()
    assert window_problem(place) is None


@linux
def test_the_libraries_of_a_plugin_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "libqxcb.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(display, "_plugin", lambda _name: broken)
    monkeypatch.setattr(display, "_not_found", lambda _path: ["libxcb-cursor.so.0", "libxcb-icccm.so.4"])
    problem = window_problem(environment(DISPLAY=":0"))
    assert problem is not None
    assert "libxcb-cursor.so.0, libxcb-icccm.so.4" in problem.why
    assert "sudo apt install libxcb-cursor0 libxcb-icccm4" in problem.remedy
    assert "sudo dnf install xcb-util-cursor xcb-util-wm" in problem.remedy


def test_a_library_we_do_not_know_is_still_named() -> None:
    problem = missing_libraries(["libstrange.so.3"])
    assert "libstrange.so.3" in problem.why
    assert "package manager" in problem.remedy


@linux
def test_an_import_of_qt_that_fails_is_explained(tmp_path: Path) -> None:
    """In a process of its own, with a PySide6 that lacks a library as Linux reports it."""
    package = tmp_path / "PySide6"
    package.mkdir()
    (package / "__init__.py").write_text("")
    message = "libEGL.so.1: cannot open shared object file: No such file or directory"
    (package / "QtSvg.py").write_text(f"raise ImportError({message!r})")
    done = subprocess.run(
        [sys.executable, "-c", "from forespeak.ui.app import ui_problem; print(ui_problem())"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "libEGL.so.1" in done.stdout
    assert "libegl1" in done.stdout


def test_what_is_imported_later_is_not_read_by_qt(tmp_path: Path) -> None:
    (tmp_path / "imported_later.py").write_text("FOUND = 'PySide6'\n", encoding="utf-8")
    code = """
import builtins
before = builtins.__import__
from forespeak.ui.display import window_problem
problem = window_problem({"QT_QPA_PLATFORM": "offscreen"})
assert problem is None, problem
assert builtins.__import__ is before
import imported_later
from PySide6.QtCore import QObject
import PySide6.QtNetwork
assert builtins.__import__ is before
from __feature__ import pyside_feature_dict
assert "imported_later" not in pyside_feature_dict
# Names of methods are what they always are.
QObject().setObjectName("x")
"""
    path = os.pathsep.join([*filter(None, sys.path), str(tmp_path)])
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, check=True, timeout=60)
