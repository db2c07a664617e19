"""The two tabs about the Hub on doubles, as a test or a picture needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.hub_token import TokenStore
from forespeak.models.library import LibraryItem
from forespeak.models.machine_memory import Machine
from forespeak.ui.discover import DiscoverTab
from forespeak.ui.downloads_tab import DownloadsTab
from forespeak.ui.hub_parts import HubParts
from forespeak.ui.hub_view import HubView
from forespeak.ui.pair_controller import Fit
from forespeak.ui.theme import LIGHT, Theme
from ui.hub_doubles import MACHINE, FakeHub, FakeQueue


class Keyring:
    """Keeps what it is given; `problem` is raised by everything."""

    priority = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.problem: Exception | None = None

    def get_password(self, service: str, name: str) -> str | None:
        if self.problem is not None:
            raise self.problem
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        if self.problem is not None:
            raise self.problem
        self.kept[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        if self.problem is not None:
            raise self.problem
        del self.kept[service, name]


class NoKeyring(Keyring):
    priority = 0

    def set_password(self, service: str, name: str, value: str) -> None:
        raise RuntimeError("there is none")


def token_store(keyring: Keyring | None = None) -> TokenStore:
    return TokenStore(cast(Any, keyring or Keyring()))


class Desk:
    """`page` holds both tabs. What the doubles were asked is in `hub` and `queue`."""

    def __init__(
        self,
        folder: Path,
        hub: FakeHub | None = None,
        *,
        items: Sequence[LibraryItem] = (),
        keyring: Keyring | None = None,
        machine: Machine = MACHINE,
        theme: Theme = LIGHT,
        size: tuple[int, int] = (1180, 780),
    ) -> None:
        self.hub = hub or FakeHub()
        self.items: list[LibraryItem] = list(items)
        self.same = True
        self.fit: Fit | Exception = Fit(True, "same vocabulary", "All 152,064 tokens are the same.")
        self.judging: threading.Event | None = None
        """Judging waits for it."""
        self.queues: list[FakeQueue] = []
        self.clients: list[HubClient] = []

        def make_queue(models: Path, client: Callable[[], HubClient], listen: Callable[..., None]) -> FakeQueue:
            self.clients.append(client())
            self.queues.append(FakeQueue(listen, models))
            return self.queues[-1]

        self.parts = HubParts(
            folder,
            lambda: folder / "models",
            lambda: self.items,
            cache=folder / "cache",
            tokens=token_store(keyring),
            connect=lambda _: self.hub,
            make_queue=make_queue,
            measure=lambda _: machine,
            judge=self._judge,
        )
        self.view: HubView = self.parts.make_tabs()
        self.view._compare = self._compare
        assert self.parts.discover is not None
        assert self.parts.tab is not None
        self.discover: DiscoverTab = self.parts.discover
        self.tab: DownloadsTab = self.parts.tab
        self.page = QWidget()
        self.page.setObjectName("emptyPage")
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.addTab(QWidget(), "My models")
        self.tabs.addTab(self.discover, "Discover")
        self.tabs.addTab(self.tab, "Downloads")
        self.tabs.setCurrentIndex(1)
        column = QVBoxLayout(self.page)
        side = 40 if size[0] >= 720 else 14
        column.setContentsMargins(side, 22, side, 16)
        column.addWidget(self.tabs)
        for part in (self.discover, self.tab):
            part.set_theme(theme)
        self.page.resize(*size)
        self.page.show()
        self.parts.start()

    @property
    def queue(self) -> FakeQueue:
        return self.queues[-1]

    @property
    def ready(self) -> bool:
        return self.parts.downloads.started

    def type(self, words: str) -> None:
        QTest.keyClicks(self.discover.search, words)

    def enter(self) -> None:
        QTest.keyClick(self.discover.search, Qt.Key.Key_Return)

    def close(self) -> None:
        if self.hub.wait is not None:
            self.hub.wait.set()
        self.parts.close()
        self.page.close()
        # Here and now: what Python's collector finds later, it may find on another thread.
        self.page.deleteLater()
        self.parts.deleteLater()

    def _judge(self, target: Path, group: HubFileGroup, stopped: Callable[[], bool]) -> Fit | None:
        while self.judging is not None and not self.judging.wait(0.01):
            if stopped():
                return None
        if isinstance(self.fit, Exception):
            raise self.fit
        return self.fit

    def _compare(self, group: HubFileGroup, item: LibraryItem, stopped: Callable[[], bool]) -> bool:
        return self.same
