"""The Pair page's ways to and from the chat and the models; and once the whole way, with the pair that comes along."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import EngineClient, EngineEvent
from forespeak.models.folders import Folders, folders
from forespeak.models.starter import starter_draft_path, starter_target_path
from forespeak.pairing import quick_test
from forespeak.pairing.named_pair import NamedPair, PairSettings
from forespeak.pairing.pairs import FOLDER, NamedPairs
from forespeak.speculation.trace import Source
from forespeak.ui.app import make_session, make_window
from forespeak.ui.main_window import MainWindow
from forespeak.ui.models_entry import ModelsEntry
from forespeak.ui.pair_controller import PairState
from forespeak.ui.pair_entry import PAIR_PAGE, PairEntry, engine_name
from forespeak.ui.pair_page import PairPage
from forespeak.ui.preferences import Preferences, PreferencesFile
from forespeak.ui.session import Session
from forespeak.ui.wizard_state import WizardStep
from tiny_llama import vocabulary, write_llama
from ui.conftest import App, AppMaker
from ui.scripted_engine import Script, ScriptedEngine, scripted_steps
from ui.wizard_doubles import TEXT

PATIENCE = 60_000


def places(folder: Path) -> Folders:
    where = Folders(folder / "data", folder / "models", folder / "config", folder / "cache", folder / "logs")
    where.create()
    return where


class World(QObject):
    """The window with the entries of both pages."""

    def __init__(self, app: App, folder: Path) -> None:
        super().__init__(app.session)
        self.app, self.where = app, places(folder)
        self.models = ModelsEntry(app.window, app.session, self.where, app.models)
        self.entry = PairEntry(app.window, app.session, self.where, self.models, self._connect)

    def _connect(self, listener: Callable[[EngineEvent], None]) -> EngineClient:
        return ScriptedEngine(listener, [Script(scripted_steps(TEXT))])

    @property
    def named(self) -> NamedPairs:
        return NamedPairs(self.where.data / FOLDER)


def a_pair(world: World, *, as_default: bool = False) -> NamedPair:
    target, draft = world.where.models / "other-target.gguf", world.where.models / "other-draft.gguf"
    for path in (target, draft):
        path.write_bytes(b"GGUF")
    settings = PairSettings((Source.DRAFT_MODEL, Source.NGRAM_MOD), 6)
    return world.named.keep("Fast one", target, draft, settings, as_default=as_default)


@pytest.fixture
def world(make_app: AppMaker, tmp_path: Path) -> World:
    return World(make_app(), tmp_path / "home")


def test_a_pair_that_was_named_is_taken_before_the_usual_one(qtbot: QtBot, world: World) -> None:
    usual = a_pair(world, as_default=True)
    assert usual.draft is not None
    other = usual.draft.path.with_name("named-draft.gguf")
    other.write_bytes(b"GGUF")
    pairs = world.models.view()._make_pairs()
    pairs.pairRequested.emit(usual.target.path, other)
    app = world.app
    qtbot.waitUntil(lambda: app.session.pair.status.state is PairState.READY and app.session.file_worker.idle)
    assert (app.session.preferences.target, app.session.preferences.draft) == (usual.target.path, other)


def test_nothing_is_made_before_the_page_is_wanted(world: World) -> None:
    assert world.entry.page is None
    assert world.app.window.navigation.button(PAIR_PAGE).text() == "Pair"


def test_a_pair_that_is_used_comes_to_the_chat_with_its_settings(qtbot: QtBot, world: World) -> None:
    pair = a_pair(world)
    assert pair.draft is not None
    window, session = world.app.window, world.app.session
    window.show_page(PAIR_PAGE)
    page = world.entry.page
    assert page is not None
    qtbot.waitUntil(lambda: pair.id in page.pairs.lines, timeout=PATIENCE)
    page.pairs.lines[pair.id].button.click()
    assert window.page == "chat"
    engine = world.app.engine
    qtbot.waitUntil(lambda: engine.loads[-1].target == pair.target.path, timeout=PATIENCE)
    assert [(load.target, load.draft) for load in engine.loads[1:]] == [(pair.target.path, pair.draft.path)]
    preferences = session.preferences
    assert preferences.sources == (Source.NGRAM_MOD, Source.DRAFT_MODEL)
    assert preferences.draft_length == 6
    assert preferences.speculate


def test_a_target_comes_with_its_default_pair(qtbot: QtBot, world: World) -> None:
    pair = a_pair(world, as_default=True)
    assert pair.draft is not None
    world.app.window.top.target.picked.emit(pair.target.path)
    engine = world.app.engine
    qtbot.waitUntil(lambda: engine.loads[-1].target == pair.target.path, timeout=PATIENCE)
    assert [(load.target, load.draft) for load in engine.loads[1:]] == [(pair.target.path, pair.draft.path)]
    assert world.app.session.preferences.draft_length == 6


def test_kept_pairs_follow_the_models_folder(qtbot: QtBot, world: World, tmp_path: Path) -> None:
    kept = a_pair(world, as_default=True)
    world.app.window.show_page(PAIR_PAGE)
    page = world.entry.page
    assert page is not None
    keeper, elsewhere = page.controller.keeper, tmp_path / "disk" / "models"
    qtbot.waitUntil(lambda: bool(keeper.pairs))
    world.models.view().controller.move_to(elsewhere)
    qtbot.waitUntil(lambda: keeper.pairs[0].target.path.parent == elsewhere, timeout=20_000)
    assert keeper.pairs[0].problem is None
    assert page.pairs.lines[kept.id].button.isEnabled()
    assert world.named.default_for(elsewhere / "other-target.gguf") is not None


def test_the_chat_s_draft_menu_leads_here(qtbot: QtBot, world: World) -> None:
    target = world.app.session.preferences.target
    assert target is not None
    target.write_bytes(b"no model at all")
    menu = world.app.window.top.draft.fill_menu()
    next(action for action in menu.actions() if action.text() == "Find a draft…").trigger()
    assert world.app.window.page == PAIR_PAGE
    page = world.entry.page
    assert page is not None
    assert page.controller.state.target == target
    qtbot.waitUntil(lambda: page.controller.found is not None, timeout=PATIENCE)
    # What it holds is no model, so nothing can draft for it, and the reason is said.
    assert all(line.problem for line in page.controller.lines)
    assert "Nothing can draft" in page.draft.nothing.text()


def test_a_model_of_the_library_leads_here(qtbot: QtBot, world: World) -> None:
    path = world.where.models / "mine.gguf"
    path.write_bytes(b"GGUF")
    world.models.draftWanted.emit(path)
    assert world.app.window.page == PAIR_PAGE
    page = world.entry.page
    assert page is not None
    assert page.controller.state.target == path


def test_discover_is_one_button_away(qtbot: QtBot, world: World) -> None:
    world.app.window.show_page(PAIR_PAGE)
    page = world.entry.page
    assert page is not None
    page.target.discover.click()
    assert world.app.window.page == "models"
    models = world.models.view().page
    assert models is not None
    assert models.tabs.tabText(models.tabs.currentIndex()) == "Discover"


def test_a_draft_is_really_made_and_found_on_disk(qtbot: QtBot, world: World) -> None:
    pytest.importorskip("llama_cpp")
    target = write_llama(vocabulary(), world.where.models / "Sprout-1B-F32.gguf")
    world.app.window.show_page(PAIR_PAGE)
    page = world.entry.page
    assert page is not None
    controller = page.controller
    qtbot.waitUntil(lambda: controller.library_read, timeout=PATIENCE)
    page.find_draft(target)
    qtbot.waitUntil(lambda: controller.found is not None and not controller.finding, timeout=PATIENCE)
    line = next(each for each in controller.lines if each.makes and each.name.endswith("Q4_0"))
    assert line.badge == "same vocabulary"
    page.draft.rows[line.key].button.click()
    made = str(target.with_name("Sprout-1B-F32-draft-Q4_0.gguf"))
    qtbot.waitUntil(lambda: made in page.draft.rows, timeout=PATIENCE)
    assert page.draft.rows[made].line.place.startswith("made from the target")
    assert page.draft.rows[made].button.text() == "Test"
    assert line.key not in page.draft.rows


@contextmanager
def on_pair_page(qtbot: QtBot, preferences: Path, where: Folders) -> Iterator[tuple[MainWindow, Session, PairPage]]:
    """The program as it is, with its own engine processes, at the Pair page."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    palette = application.palette()
    window, appearance = make_window(application, Preferences())
    qtbot.addWidget(window)
    window.show()
    session = make_session(window, appearance, PreferencesFile(preferences), where)
    try:
        session.start()
        window.show_page(PAIR_PAGE)
        page = window.pages.made(PAIR_PAGE)
        assert isinstance(page, PairPage)
        yield window, session, page
    finally:
        window.close()
        # Tests of single widgets look at them as they come.
        application.setStyleSheet("")
        application.setPalette(palette)


def test_the_whole_way_with_the_real_engine_and_the_starter_pair(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small and quick: what is tested is that all parts meet, not what they measure."""
    pytest.importorskip("llama_cpp")
    source = starter_draft_path()
    if source is None:
        pytest.skip("the starter pair is not installed")
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "home"))
    # Else its replies would be as long as twenty seconds allow.
    monkeypatch.setattr(quick_test, "MOST_TOKENS", quick_test.LEAST_TOKENS)
    where = folders()
    where.create()
    draft = where.models / "starter-copy-Q4_1.gguf"
    draft.symlink_to(source)
    assert not starter_target_path(where.models).exists()
    with on_pair_page(qtbot, tmp_path / "preferences.json", where) as (window, session, page):
        controller = page.controller
        qtbot.waitUntil(lambda: controller.library_read and bool(controller.targets), timeout=PATIENCE)
        page.find_draft(draft)
        qtbot.waitUntil(lambda: controller.found is not None and not controller.finding, timeout=PATIENCE)
        # Of itself it cannot be the draft; the text can be looked up.
        controller.choose("lookup")
        page.next.click()
        assert controller.state.step is WizardStep.TEST
        page.test.start_button.click()
        qtbot.waitUntil(lambda: controller.state.measurement is not None, timeout=3 * PATIENCE)
        measured = controller.state.measurement
        assert measured is not None
        assert measured.plain > 0.0
        assert measured.engine.startswith("llama")
        page.next.click()
        page.keep.name.setText("The starter with n-grams")
        page.second.click()
        qtbot.waitUntil(lambda: window.page == "chat", timeout=PATIENCE)
        qtbot.waitUntil(lambda: session.pair.status.loaded is not None, timeout=PATIENCE)
        (pair,) = NamedPairs(where.data / FOLDER).all()
        assert pair.name == "The starter with n-grams"
        assert pair.draft is None
        assert session.preferences.target == draft
        assert session.preferences.draft is None
    draft.unlink()


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


def test_a_measurement_is_kept_with_what_computed_it(tmp_path: Path) -> None:
    assert engine_name(tmp_path / "target.gguf").startswith("llama")
    assert engine_name(tmp_path).startswith("MLX")


@pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed (extra: mlx)")
def test_the_whole_way_with_the_real_engine_and_mlx_folders(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(quick_test, "MOST_TOKENS", quick_test.LEAST_TOKENS)
    where = folders()
    where.create()
    target, draft = write_pair(where.models)
    with on_pair_page(qtbot, tmp_path / "preferences.json", where) as (window, session, page):
        controller = page.controller
        qtbot.waitUntil(lambda: target in {item.path for item in controller.targets}, timeout=PATIENCE)
        page.find_draft(target)
        qtbot.waitUntil(lambda: controller.found is not None and not controller.finding, timeout=PATIENCE)
        lines = {line.name: line for line in controller.lines}
        assert lines["Sprout-0.1B-fp32"].badge == "same vocabulary"
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
