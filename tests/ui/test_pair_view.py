"""Which models the window offers for a pair, and how a file dialogue leads to one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from forespeak.ui.model_picker import Place
from models.library_folders import write_mlx
from ui.conftest import AppMaker


def test_folders_are_among_the_models_used_last(make_app: AppMaker, tmp_path: Path) -> None:
    folder, file, gone = write_mlx(tmp_path / "qwen-mlx"), tmp_path / "a.gguf", tmp_path / "gone"
    file.write_bytes(b"GGUF")
    app = make_app(ready=False, recent=(folder, gone, file))
    offered = [choice.path for choice in app.session.pair_view._choices()]
    assert [path for path in offered if path.parent == tmp_path] == [folder, file]


@pytest.mark.parametrize("name", ["qwen-mlx/config.json", "a.gguf"])
def test_browsing_to_a_folders_settings_chooses_the_folder(
    make_app: AppMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    app = make_app(ready=False)
    chosen: list[Path] = []
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / name), ""))
    app.session.pair_view._browse("Choose", chosen.append)
    assert chosen == [tmp_path / name.removesuffix("/config.json")]


@pytest.mark.parametrize("inside", ["", "config.json", "model.safetensors"])
def test_a_folder_and_what_lies_in_it_can_be_dropped(
    make_app: AppMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    app = make_app(ready=False)
    chosen: list[Path] = []
    monkeypatch.setattr(app.session.pair, "pick_target", chosen.append)
    folder = tmp_path / "qwen-mlx"
    app.window.veil.fileDropped.emit(Place.TARGET, folder / inside if inside else folder)
    assert chosen == [folder]
