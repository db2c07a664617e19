"""Shows a file in the system's file manager."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def reveal_command(
    path: Path, platform: str = sys.platform, has_program: Callable[[str], bool] | None = None
) -> list[str]:
    """The command that opens the file manager with `path` marked, where the system can mark; else its folder."""
    known = has_program or (lambda name: shutil.which(name) is not None)
    if platform == "win32":
        # One argument: explorer splits at commas, and wants backslashes.
        return ["explorer", f"/select,{os.fspath(path)}"]
    if platform == "darwin":
        return ["open", "-R", os.fspath(path)]
    if known("gdbus"):
        # The desktops' common interface; without a listener the command fails and the folder is opened.
        return [
            *("gdbus", "call", "--session", "--dest", "org.freedesktop.FileManager1"),
            *("--object-path", "/org/freedesktop/FileManager1"),
            *("--method", "org.freedesktop.FileManager1.ShowItems", f"['{path.as_uri()}']", ""),
        ]
    return folder_command(path, platform)


def folder_command(path: Path, platform: str = sys.platform) -> list[str]:
    """Opens the folder of a file, or the folder itself."""
    folder = os.fspath(path if path.is_dir() else path.parent)
    return [{"win32": "explorer", "darwin": "open"}.get(platform, "xdg-open"), folder]


def reveal(path: Path, platform: str = sys.platform) -> bool:
    """Not for the UI thread. False if no file manager could be asked."""
    return _run(reveal_command(path, platform), platform) or open_folder(path, platform)


def open_folder(path: Path, platform: str = sys.platform) -> bool:
    """Not for the UI thread. False if no file manager could be asked."""
    return _run(folder_command(path, platform), platform)


def _run(command: list[str], platform: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    # Explorer answers 1 although it has done what was asked.
    return done.returncode == 0 or platform == "win32"
