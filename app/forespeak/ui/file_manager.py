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
    return folder_command(path)


def folder_command(path: Path) -> list[str]:
    """Opens the folder of a file, or the folder itself."""
    return ["xdg-open", os.fspath(path if path.is_dir() else path.parent)]


def reveal(path: Path, platform: str = sys.platform) -> bool:
    """Not for the UI thread. False if no file manager could be asked."""
    commands = [reveal_command(path, platform)]
    if platform not in {"win32", "darwin"}:
        commands.append(folder_command(path))
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        # Explorer answers 1 although it has done what was asked.
        if done.returncode == 0 or platform == "win32":
            return True
    return False
