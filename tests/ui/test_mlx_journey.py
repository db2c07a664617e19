"""The whole way with models in the MLX format: found in the library, tested as a pair, kept, and chatted with."""

from __future__ import annotations

import importlib
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.models.folders import folders
from forespeak.pairing import quick_test
from forespeak.pairing.pairs import FOLDER, NamedPairs
from forespeak.speculation.trace import Source
from forespeak.ui.app import make_session, make_window
from forespeak.ui.pair_entry import PAIR_PAGE
from forespeak.ui.pair_page import PairPage
from forespeak.ui.preferences import Preferences, PreferencesFile
from tiny_llama import vocabulary, write_llama

pytestmark = pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed (extra: mlx)")

PATIENCE = 60_000


def write_pair(folder: Path) -> tuple[Path, Path]:
    """A target of some layers and random weights, and a small draft with its tokens."""
    from mlx_folders import convert, save_network

    draft = convert(write_llama(vocabulary(), folder / "Sprout-0.1B-F32.gguf"), folder / "maker" / "Sprout-0.1B-fp32")
    llama = importlib.import_module("mlx_lm.models.llama")
    config = json.loads((draft / "config.json").read_text()) | {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 6,
        "tie_word_embeddings": False,
    }
    network = llama.Model(llama.ModelArgs.from_dict(config))
    return save_network(network, config, draft, folder / "maker" / "Sprout-1.5B-fp32"), draft


def test_from_the_library_to_the_chat(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(quick_test, "MOST_TOKENS", quick_test.LEAST_TOKENS)
    where = folders()
    where.create()
    target, draft = write_pair(where.models)
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    palette = application.palette()
    preferences = Preferences()
    window, appearance = make_window(application, preferences)
    qtbot.addWidget(window)
    window.show()
    session = make_session(window, appearance, PreferencesFile(tmp_path / "preferences.json"), where)
    try:
        session.start()
        window.show_page(PAIR_PAGE)
        page = window.pages.made(PAIR_PAGE)
        assert isinstance(page, PairPage)
        controller = page.controller
        qtbot.waitUntil(lambda: target in {item.path for item in controller.targets}, timeout=PATIENCE)
        page.find_draft(target)
        qtbot.waitUntil(lambda: controller.found is not None and not controller.finding, timeout=PATIENCE)
        lines = {line.name: line for line in controller.lines}
        assert lines["Sprout-0.1B-fp32 · F32"].badge == "same vocabulary"
        assert "one engine has to run both" in lines["Sprout-0.1B-F32"].problem
        controller.choose(str(draft))
        page.next.click()
        page.test.start_button.click()
        qtbot.waitUntil(lambda: controller.state.measurement is not None, timeout=3 * PATIENCE)
        assert controller.state.measurement is not None
        assert controller.state.measurement.engine.startswith("MLX")
        page.next.click()
        assert page.keep.name.text() == "Sprout-1.5B-fp32 + Sprout-0.1B-fp32"
        page.second.click()
        qtbot.waitUntil(lambda: window.page == "chat", timeout=PATIENCE)
        qtbot.waitUntil(lambda: session.pair.status.loaded is not None, timeout=PATIENCE)
        loaded = session.pair.status.loaded
        assert loaded is not None
        assert loaded.target.path == target
        assert loaded.draft is not None
        (pair,) = NamedPairs(where.data / FOLDER).all()
        assert (pair.target.path, pair.problem) == (target, None)
        assert Source.DRAFT_MODEL in pair.settings.sources
        assert session.pair.name(target) == "Sprout-1.5B-fp32"
        QTest.keyClicks(window.composer.edit, "the thing")
        QTest.keyClick(window.composer.edit, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: session.chats.busy, timeout=PATIENCE)
        session.chats.stop()
        qtbot.waitUntil(lambda: not session.chats.busy, timeout=PATIENCE)
        assert session.pair.status.problem is None
    finally:
        window.close()
        application.setStyleSheet("")
        application.setPalette(palette)
