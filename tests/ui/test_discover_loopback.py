"""The whole way in the real window, with the real client and the tests' Hub: search, look, download, in the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.models.download_record import DownloadState
from forespeak.models.folders import Folders
from forespeak.models.hub_settings import HubSettings, HubSettingsFile
from forespeak.models.library import Library
from forespeak.ui.discover import DiscoverTab
from forespeak.ui.download_row import DownloadRow
from forespeak.ui.downloads_tab import DownloadsTab
from forespeak.ui.hub_parts import HubParts
from forespeak.ui.models_entry import MODELS_PAGE, ModelsEntry
from forespeak.ui.models_page import ModelsPage
from forespeak.ui.models_view import ModelsView
from loopback_hub import Fault, LoopbackHub, Repo, Then
from models.gguf_writer import ModelFile
from ui.conftest import App, AppMaker
from ui.hub_desk import Keyring, token_store

PATIENCE = 20_000
REPO = "riverbank/Heron-Tiny-GGUF"
CARD = b"---\nlicense: mit\n---\n# Heron\n\nSmall, and **real**. ![x](https://tracker.example/p.png)\n"


@dataclass
class Window:
    app: App
    hub: LoopbackHub
    view: ModelsView
    page: ModelsPage
    keyring: Keyring
    where: Folders

    @property
    def discover(self) -> DiscoverTab:
        assert self.view.hub.discover is not None
        return self.view.hub.discover

    @property
    def downloads(self) -> DownloadsTab:
        assert self.view.hub.tab is not None
        return self.view.hub.tab

    def show_tab(self, number: int) -> None:
        bar = self.page.tabs.tabBar()
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(number).center())

    @property
    def only_row(self) -> DownloadRow:
        (row,) = self.downloads.rows.values()
        return row


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    content = ModelFile([f"t{number}" for number in range(3000)]).write(tmp_path / "tiny.gguf").read_bytes()
    with LoopbackHub() as made:
        made.add(Repo(REPO, {"heron-tiny-Q4_0.gguf": content, "README.md": CARD}, gguf={"total": 1_000_000}))
        made.add(
            Repo(
                "riverbank/Heron-Gated-GGUF", {"heron-gated-Q4_0.gguf": content}, gated="auto", needs="hf_abcdefghijkl"
            )
        )
        yield made


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path, hub: LoopbackHub, make_app: AppMaker) -> Callable[[], Window]:
    def made() -> Window:
        root = tmp_path / "home"
        where = Folders(root / "data", root / "models", root / "config", root / "cache", root / "logs")
        where.create()
        HubSettingsFile(where.config).write(HubSettings(endpoint=hub.endpoint))
        app = make_app(ready=False)
        keyring = Keyring()
        entry = ModelsEntry(app.window, app.session, where, app.models)
        view = ModelsView(
            app.session,
            where,
            app.models,
            Library(where.models, (), where.cache),
            lambda view: HubParts(
                where.config,
                view.models_folder,
                view.items,
                cache=where.cache,
                tokens=token_store(keyring),
                parent=view,
            ),
        )
        entry._view = view
        QTest.mouseClick(app.window.navigation.button(MODELS_PAGE), Qt.MouseButton.LeftButton)
        page = view.page
        assert page is not None
        return Window(app, hub, view, page, keyring, where)

    return made


def search(qtbot: QtBot, window: Window, words: str, name: str) -> None:
    """Type it, and click on what is found."""
    window.show_tab(1)
    window.discover.search.setFocus()
    QTest.keyClicks(window.discover.search, words)
    results = window.discover.list
    qtbot.waitUntil(lambda: results.repos.index_of(name).isValid(), timeout=PATIENCE)
    place = results.visualRect(results.repos.index_of(name)).center()
    QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: bool(window.discover.repo.groups.rows), timeout=PATIENCE)


def test_from_a_search_to_the_library(qtbot: QtBot, make: Callable[[], Window]) -> None:
    window = make()
    assert window.hub.requests == [], "nothing is asked before somebody does"
    search(qtbot, window, "heron tiny", REPO)
    repo = window.discover.repo
    qtbot.waitUntil(lambda: "Small, and" in repo.card.text, timeout=PATIENCE)
    (row,) = repo.groups.rows
    assert row.name.text() == "Q4_0"
    qtbot.waitUntil(lambda: row.fit.words == "Fits", timeout=PATIENCE)
    QTest.mouseClick(row.button, Qt.MouseButton.LeftButton)
    window.show_tab(2)
    qtbot.waitUntil(lambda: bool(window.downloads.rows), timeout=PATIENCE)
    download = window.only_row
    qtbot.waitUntil(lambda: download.download.state is DownloadState.DONE, timeout=PATIENCE)
    target = window.where.models / REPO / "heron-tiny-Q4_0.gguf"
    assert download.download.paths == (target,)
    assert target.read_bytes() == window.hub.repos[REPO].files["heron-tiny-Q4_0.gguf"].content
    assert download.state.text().startswith("Done and verified by SHA-256")
    qtbot.waitUntil(lambda: [item.path for item in window.view.items()] == [target], timeout=PATIENCE)
    assert row.here.words == "Here"
    QTest.mouseClick(download.buttons["show"], Qt.MouseButton.LeftButton)
    assert window.page.tabs.currentIndex() == 0
    chosen = window.page.my_models.table.current
    assert chosen is not None
    assert chosen.path == target
    assert not any("tracker" in request.path for request in window.hub.requests)


def test_a_file_that_is_not_here_is_judged_by_its_beginning(
    qtbot: QtBot, tmp_path: Path, make: Callable[[], Window]
) -> None:
    window = make()
    target = tmp_path / "target.gguf"
    target.write_bytes((tmp_path / "tiny.gguf").read_bytes())
    window.app.session.set_preferences(replace(window.app.session.preferences, target=target))
    search(qtbot, window, "heron tiny", REPO)
    (row,) = window.discover.repo.groups.rows
    assert not window.hub.seen("cdn")
    QTest.mouseClick(row.other, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: row.verdict.text().startswith("Could draft for target: same vocabulary."), timeout=PATIENCE)
    assert len(window.hub.seen("cdn")) == 1
    assert list((window.where.cache / "headers").iterdir())


def test_a_gated_model_with_a_token(qtbot: QtBot, make: Callable[[], Window]) -> None:
    window = make()
    search(qtbot, window, "gated", "riverbank/Heron-Gated-GGUF")
    (row,) = window.discover.repo.groups.rows
    QTest.mouseClick(row.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(window.downloads.rows), timeout=PATIENCE)
    download = window.only_row
    qtbot.waitUntil(lambda: download.download.state is DownloadState.FAILED, timeout=PATIENCE)
    assert "accept its licence" in download.state.text()
    entry = window.discover.repo.gate.entry
    QTest.keyClicks(entry.field, "hf_abcdefghijkl")
    QTest.keyClick(entry.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: list(window.keyring.kept.values()) == ["hf_abcdefghijkl"], timeout=PATIENCE)
    qtbot.waitUntil(lambda: not entry._status.busy, timeout=PATIENCE)
    window.show_tab(2)
    QTest.mouseClick(download.buttons["retry"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: download.download.state is DownloadState.DONE, timeout=PATIENCE)
    assert not any("hf_abcdefghijkl" in path.read_text("utf-8") for path in window.where.config.rglob("*.json"))
    assert all(request.token is None for request in window.hub.seen("cdn"))


def test_the_count_stands_in_the_navigation_and_the_settings_keep_the_limit(
    qtbot: QtBot, make: Callable[[], Window]
) -> None:
    window = make()
    window.hub.cdn_faults.append(Fault(after=1000, then=Then.STALL))
    search(qtbot, window, "heron tiny", REPO)
    QTest.mouseClick(window.discover.repo.groups.rows[0].button, Qt.MouseButton.LeftButton)
    button = window.app.window.navigation.button(MODELS_PAGE)
    qtbot.waitUntil(lambda: button.text() == "Models (1)", timeout=PATIENCE)
    assert window.page.tabs.tabText(2) == "Downloads (1)"
    window.app.session.open_hub_settings()
    dialog = window.app.session._settings
    assert dialog is not None
    assert dialog.tabs.tabText(dialog.tabs.currentIndex()) == "Hub"
    limit = dialog.tabs.currentWidget().findChild(type(dialog.max_tokens), "bandwidth")
    assert limit is not None
    limit.setValue(7)
    assert window.app.session.preferences.download_limit == 7_000_000
    assert window.downloads.limit.currentText() == "At most 7 MB/s"
    dialog.reject()
    window.show_tab(2)
    QTest.mouseClick(window.only_row.buttons["cancel"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: button.text() == "Models", timeout=PATIENCE)
    assert window.page.tabs.tabText(2) == "Downloads"
    window.hub.released.set()


def test_no_network_says_so(qtbot: QtBot, make: Callable[[], Window]) -> None:
    window = make()
    window.show_tab(1)
    account = window.view.hub.account
    # A port on which nobody listens.
    account.set_settings(HubSettings(endpoint="http://127.0.0.1:9"))
    QTest.keyClicks(window.discover.search, "heron")
    state = window.discover.state
    qtbot.waitUntil(lambda: "does not accept connections" in state.title.text(), timeout=PATIENCE)
    account.set_settings(HubSettings(endpoint=window.hub.endpoint))
    qtbot.waitUntil(lambda: window.discover.list.repos.rowCount() == 2, timeout=PATIENCE)
