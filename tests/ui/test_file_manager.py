"""Which command shows a file in which system, and what happens where there is none."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath

import pytest

from forespeak.ui import file_manager
from forespeak.ui.file_manager import folder_command, open_folder, reveal, reveal_command

FILE = Path("/models/a b/it's, 模型.gguf")


def test_windows_marks_the_file() -> None:
    assert reveal_command(FILE, "win32") == ["explorer", f"/select,{FILE}"]


def test_macos_marks_the_file() -> None:
    assert reveal_command(FILE, "darwin") == ["open", "-R", str(FILE)]


@pytest.mark.skipif(sys.platform == "win32", reason="paths of another system")
def test_linux_asks_the_desktop_and_quotes_the_name() -> None:
    command = reveal_command(FILE, "linux", lambda name: name == "gdbus")
    assert command[:2] == ["gdbus", "call"]
    assert command[-2] == "['file:///models/a%20b/it%27s%2C%20%E6%A8%A1%E5%9E%8B.gguf']"


def test_linux_without_the_desktop_opens_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    assert reveal_command(file, "linux", lambda _: False) == ["xdg-open", str(tmp_path)]


@pytest.mark.parametrize(("platform", "program"), [("win32", "explorer"), ("darwin", "open"), ("linux", "xdg-open")])
def test_a_folder_is_opened_as_itself(tmp_path: Path, platform: str, program: str) -> None:
    assert folder_command(tmp_path, platform) == [program, str(tmp_path)]
    assert PurePosixPath(folder_command(tmp_path / "a.gguf", platform)[1]) == PurePosixPath(tmp_path.as_posix()) or (
        sys.platform == "win32"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs programs that fail and succeed")
def test_the_folder_is_opened_where_the_file_cannot_be_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_manager, "reveal_command", lambda *_: ["false"])
    monkeypatch.setattr(file_manager, "folder_command", lambda *_: ["true"])
    assert reveal(tmp_path / "a.gguf", "linux")
    monkeypatch.setattr(file_manager, "folder_command", lambda *_: ["no-such-program-anywhere"])
    assert not reveal(tmp_path / "a.gguf", "linux")
    assert not open_folder(tmp_path, "linux")
