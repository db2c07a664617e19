"""The Models page in the real window, with the real library on real folders: keys, restart, chat, moving, the end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.engines.devices import Device
from forespeak.models import moving
from forespeak.models.download_record import DownloadState
from forespeak.models.folders import Folders
from forespeak.models.formats import model_stem
from forespeak.models.library import Library
from forespeak.models.library_settings import LibrarySettingsFile
from forespeak.models.starter import starter_draft_path
from forespeak.pairing.named_pair import PairSettings
from forespeak.pairing.pairs import FOLDER, NamedPairs
from forespeak.ui.library_model import Column
from forespeak.ui.models_entry import ModelsEntry
from forespeak.ui.models_page import ModelsPage
from forespeak.ui.navigation import CHAT_PAGE
from forespeak.ui.pair_controller import PairState
from forespeak.ui.preferences import PreferencesFile
from forespeak.ui.window_menus import add_menus
from ui.conftest import App, AppMaker
from ui.hub_doubles import group

CONTROL = Qt.KeyboardModifier.ControlModifier
STARTER = starter_draft_path()

pytestmark = pytest.mark.skipif(STARTER is None, reason="the starter's package is not installed")


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    # What these tests do needs no network, and a mistake of theirs must not reach for it.
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    places = Folders(*(tmp_path / name for name in ("data", "models", "config", "cache", "logs")))
    places.create()
    return places


@pytest.fixture
def open_app(make_app: AppMaker, where: Folders) -> Callable[..., tuple[App, ModelsEntry]]:
    def make(**chosen: object) -> tuple[App, ModelsEntry]:
        app = make_app(**chosen)
        entry = ModelsEntry(app.window, app.session, where, app.models)
        # As the program does it: the keys of the pages come with the menus, which were made without this page here.
        for action in app.window.actions():
            app.window.removeAction(action)
        app.commands = add_menus(app.window, app.session, where.logs)
        return app, entry

    return make


def put_model(folder: Path, name: str = "Tiny-135M-Q4_1.gguf") -> Path:
    assert STARTER is not None
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(STARTER, folder / name))


def page_of(qtbot: QtBot, app: App, entry: ModelsEntry) -> ModelsPage:
    app.window.show_page("models")
    page = app.window.pages.made("models")
    assert isinstance(page, ModelsPage)
    state = entry.view().controller
    qtbot.waitUntil(lambda: state.state.read and state.state.scan is None, timeout=20_000)
    return page


def test_the_page_is_made_when_its_key_is_pressed(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    app, _ = open_app()
    assert app.window.pages.made("models") is None
    qtbot.waitUntil(lambda: not app.session.chats.busy)
    QTest.keyClick(app.window, Qt.Key.Key_2, CONTROL)
    assert app.window.page == "models"
    assert app.window.pages.made("models") is not None
    QTest.keyClick(app.window, Qt.Key.Key_1, CONTROL)
    assert app.window.page == CHAT_PAGE
    keys = dict(app.commands.lines)
    assert (keys["Chat"], keys["Models"]) == ("Ctrl+1", "Ctrl+2")


def test_real_files_are_listed_and_one_of_them_is_used(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    mine = put_model(where.models / "maker" / "Tiny-GGUF")
    (where.models / "notes.txt").write_text("not a model")
    (where.models / "half.gguf.part").write_bytes(b"GGUF")
    app, entry = open_app()
    page = page_of(qtbot, app, entry).my_models
    assert {item.name for item in page.model.items} == {"Tiny-135M-Q4_1", STARTER.stem if STARTER else ""}
    assert page.table.choose(mine)
    row = page.model.row_of(mine)
    assert row is not None
    assert page.model.index(row, Column.FIT).data() == "Fits"
    assert page.details.item is not None
    assert page.details.item.has_template
    page.actions_of_model.as_draft.trigger()
    qtbot.waitUntil(lambda: app.session.preferences.draft == mine)
    qtbot.waitUntil(lambda: page.details.note.text() == "Draft now")
    page.actions_of_model.chat.trigger()
    qtbot.waitUntil(lambda: app.session.preferences.target == mine)
    assert app.window.page == CHAT_PAGE
    assert app.engine.loads[-1].target == mine


def test_a_file_that_comes_is_noticed_and_a_removed_one_comes_back(
    qtbot: QtBot,
    where: Folders,
    tmp_path: Path,
    open_app: Callable[..., tuple[App, ModelsEntry]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Library, "watch", partialmethod(Library.watch, seconds=0.1))
    first = put_model(where.models)
    app, entry = open_app()
    page = page_of(qtbot, app, entry).my_models
    page.table.choose(first)
    later = put_model(tmp_path / "elsewhere", "Later-135M-Q4_1.gguf")
    later.write_bytes(first.read_bytes() + bytes(32))
    # Whole at once: a file that grows without another name is not noticed.
    (where.models / "more").mkdir()
    later.rename(where.models / "more" / later.name)
    qtbot.waitUntil(lambda: any(item.name == "Later-135M-Q4_1" for item in page.model.items), timeout=20_000)
    assert page.table.current is not None
    assert page.table.current.path == first
    entry.view().controller.remove(page.table.current)
    qtbot.waitUntil(lambda: not first.exists())
    qtbot.waitUntil(lambda: all(item.path != first for item in page.model.items))
    assert app.commands["undo"].isEnabled()
    app.window.undo()
    qtbot.waitUntil(first.exists)
    qtbot.waitUntil(lambda: any(item.path == first for item in page.model.items), timeout=20_000)


def test_the_folder_moves_with_its_files_and_the_choice_lasts(
    qtbot: QtBot, where: Folders, tmp_path: Path, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    before = put_model(where.models / "maker" / "Tiny-GGUF")
    app, entry = open_app(target=before)
    page = page_of(qtbot, app, entry).my_models
    pair = app.session.pair
    qtbot.waitUntil(lambda: pair.status.state is PairState.READY)
    called, on_chip = pair.name(before), app.window.top.target.words()
    elsewhere = tmp_path / "disk" / "models"
    page.moveRequested.emit(elsewhere)
    after = elsewhere / "maker" / "Tiny-GGUF" / before.name
    qtbot.waitUntil(lambda: LibrarySettingsFile(where.config).read().own == elsewhere, timeout=20_000)
    assert after.is_file()
    assert not before.exists()
    assert app.session.preferences.target == after
    assert pair.name(after) == called != model_stem(after)
    assert app.window.top.target.words() == on_chip
    assert pair.status.target == after
    assert pair.status.loaded is not None
    assert pair.status.loaded.target.path == after
    qtbot.waitUntil(lambda: any(item.path == after for item in page.model.items), timeout=20_000)


def test_a_move_that_was_interrupted_is_finished_for_all_who_know_its_files(
    qtbot: QtBot,
    where: Folders,
    tmp_path: Path,
    open_app: Callable[..., tuple[App, ModelsEntry]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = put_model(where.models), tmp_path / "disk" / "Tiny-135M-Q4_1.gguf"
    kept = NamedPairs(where.data / FOLDER).keep("one", before, None, PairSettings())
    with monkeypatch.context() as patch:
        patch.setattr(moving, "_delete_sources", lambda *_: None)
        Library(where.models, (), where.cache).move_to(tmp_path / "disk")
    app, entry = open_app(target=before)
    told: list[bool] = []
    entry.pairsMoved.connect(lambda: told.append(True))
    page_of(qtbot, app, entry)
    qtbot.waitUntil(lambda: bool(told))
    assert app.session.preferences.target == after
    found = NamedPairs(where.data / FOLDER).get(kept.id)
    assert found is not None
    assert (found.target.path, found.problem) == (after, None)


def test_the_folder_moves_with_its_downloads(
    qtbot: QtBot, where: Folders, tmp_path: Path, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    app, entry = open_app()
    page = page_of(qtbot, app, entry).my_models
    told: list[Path] = []
    entry.folderMoved.connect(told.append)
    downloads = entry.view().hub.downloads
    qtbot.waitUntil(lambda: downloads.started)
    # Without a network it waits, and holds its place in the folder.
    downloads.add(group())
    qtbot.waitUntil(lambda: [each.state for each in downloads.downloads] == [DownloadState.PAUSED])
    elsewhere = tmp_path / "disk" / "models"
    page.moveRequested.emit(elsewhere)
    qtbot.waitUntil(lambda: any(elsewhere in each.paths[0].parents for each in downloads.downloads), timeout=20_000)
    assert told == [elsewhere]
    assert [each.state for each in downloads.downloads] == [DownloadState.PAUSED]
    assert not list(where.models.glob(".downloads/*.json"))


def test_a_move_that_cannot_be_leaves_the_downloads_as_they_were(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    app, entry = open_app()
    page = page_of(qtbot, app, entry).my_models
    downloads = entry.view().hub.downloads
    qtbot.waitUntil(lambda: downloads.started)
    downloads.add(group())
    qtbot.waitUntil(lambda: [each.state for each in downloads.downloads] == [DownloadState.PAUSED])
    problems: list[object] = []
    entry.view().controller.problemFound.disconnect(app.session.problems.show_dialog)
    entry.view().controller.problemFound.connect(problems.append)
    page.moveRequested.emit(where.models / "inside")
    qtbot.waitUntil(lambda: len(problems) == 1)
    qtbot.waitUntil(lambda: downloads.started)
    downloads.cancel(downloads.downloads[0].id)
    qtbot.waitUntil(lambda: downloads.downloads == ())


def test_page_way_and_folders_survive_a_restart(
    qtbot: QtBot, where: Folders, tmp_path: Path, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    added = tmp_path / "other"
    put_model(added, "Other-135M-Q4_1.gguf").write_bytes((STARTER.read_bytes() if STARTER else b"") + bytes(64))
    app, entry = open_app()
    page = page_of(qtbot, app, entry).my_models
    page.addedFoldersChanged.emit((added,))
    entry.view().controller.set_added((added,))
    page.import_button.way_actions[next(way for way in page.import_button.way_actions if way is not None)].trigger()
    qtbot.waitUntil(lambda: any(item.name == "Other-135M-Q4_1" for item in page.model.items), timeout=20_000)
    app.window.close()
    kept = PreferencesFile(app.folder / "preferences.json").read()
    assert (kept.page, kept.import_way) == ("models", "copy")
    assert LibrarySettingsFile(where.config).read().added == (added,)


def test_the_other_tabs_are_the_hubs(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    app, entry = open_app()
    page = page_of(qtbot, app, entry)
    titles = [page.tabs.tabText(number) for number in range(page.tabs.count())]
    assert titles == ["My models", "Discover", "Downloads"]
    hub = entry.view().hub
    assert hub.view is None, "made when it is looked at"
    page.show_tab(1)
    qtbot.waitUntil(lambda: hub.discover is not None and hub.discover.isVisible())
    page.show_tab(2)
    qtbot.waitUntil(lambda: hub.tab is not None and hub.tab.isVisible())
    hub.downloads.runningChanged.emit(2)
    assert page.tabs.tabText(2) == "Downloads (2)"


def test_a_reply_goes_on_and_stop_is_not_the_pages(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    from ui.conftest import TEXT
    from ui.scripted_engine import Script, scripted_steps

    app, entry = open_app(scripts=[Script(scripted_steps(TEXT), rate=40.0)])
    app.session.chats.send("Go on.")
    qtbot.waitUntil(lambda: app.session.chats.last_reply() is not None)
    page_of(qtbot, app, entry)
    assert app.session.chats.busy
    assert not app.commands["stop"].isEnabled()
    qtbot.waitUntil(lambda: not app.session.chats.busy, timeout=20_000)
    assert app.session.chats.text_of(app.session.chats.last_reply() or 0) == TEXT


def test_downloads_of_before_go_on_without_the_page(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    (where.models / ".downloads").mkdir()
    (where.models / ".downloads" / "1-a.json").write_text("{}")
    app, entry = open_app()
    qtbot.waitUntil(lambda: entry._view is not None and entry._view.hub.downloads.started, timeout=20_000)
    assert app.window.pages.made("models") is None


def test_the_theme_reaches_the_page(
    qtbot: QtBot, where: Folders, open_app: Callable[..., tuple[App, ModelsEntry]]
) -> None:
    from forespeak.ui.theme import DARK

    put_model(where.models)
    app, entry = open_app()
    page = page_of(qtbot, app, entry).my_models
    app.window.set_theme(replace(DARK, accent_soft="#123456"))
    page.table.selectRow(0)
    seen = page.table.grab().toImage()
    index = page.table.currentIndex()
    spot = page.table.visualRect(index).center() + page.table.viewport().pos()
    assert seen.pixelColor(spot.x() + 60, spot.y() + 20).name() == "#123456"


def test_a_model_too_large_for_main_memory_may_fit_on_the_graphics_card(
    qtbot: QtBot,
    where: Folders,
    open_app: Callable[..., tuple[App, ModelsEntry]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = put_model(where.models)
    little = SimpleNamespace(total=64 << 20, available=32 << 20)
    monkeypatch.setattr("psutil.virtual_memory", lambda: little)
    card = Device("CUDA0", "A card", "GPU", 24 << 30, 24 << 30, "CUDA")
    asked = threading.Event()

    def gpus() -> tuple[Device, ...]:
        assert threading.current_thread() is not threading.main_thread(), "it may take a second"
        asked.wait(20)
        return (card,)

    monkeypatch.setattr("forespeak.engines.device_list.gpus", gpus)
    app, entry = open_app()
    page_of(qtbot, app, entry)
    controller = entry.view().controller

    def words() -> str:
        return controller.state.fits[path].words

    assert words() == "Too large"
    asked.set()
    qtbot.waitUntil(lambda: path in controller.state.fits and words() == "Fits", timeout=20_000)
