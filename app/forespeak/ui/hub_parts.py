"""Everything about the Hub and its downloads that a window has: made once, its tabs when the page is first shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from forespeak.models import machine_memory
from forespeak.models.download_queue import Download, DownloadQueue
from forespeak.models.file_hashes import FileHashes, identical
from forespeak.models.hub import Hub
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.hub_settings import HubSettingsFile
from forespeak.models.hub_token import TokenStore
from forespeak.models.library import LibraryItem
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.pairing.load_plan import gpus_now
from forespeak.ui.discover import DiscoverTab
from forespeak.ui.downloads_controller import DownloadsController, Queue
from forespeak.ui.downloads_tab import DownloadsTab
from forespeak.ui.hub_account import HubAccount, HubLike
from forespeak.ui.hub_controller import HubController
from forespeak.ui.hub_page import HubPage
from forespeak.ui.hub_verdicts import HubVerdicts, JudgeRemote, RemoteJudge
from forespeak.ui.hub_view import HubView, MachineWatch

MakeQueue = Callable[[Path, Callable[[], HubClient], Callable[[Download], None]], Queue]


class HubParts(QObject):
    """`models_folder` is asked each time the downloads begin; `items` is what the library knows now.

    `cache`: the folder for what was read of the Hub's files.
    """

    def __init__(
        self,
        config: Path,
        models_folder: Callable[[], Path],
        items: Callable[[], Sequence[LibraryItem]],
        *,
        cache: Path,
        limit: int | None = None,
        tokens: TokenStore | None = None,
        connect: Callable[[HubClient], HubLike] = Hub,
        make_queue: MakeQueue = DownloadQueue,
        measure: Callable[[Sequence[Gpu]], Machine] = machine_memory.now,
        gpus: Callable[[], Sequence[Gpu]] = gpus_now,
        judge: JudgeRemote | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._models_folder, self._items = models_folder, items
        self.machine = MachineWatch(measure, gpus)
        self.account = HubAccount(HubSettingsFile(config), tokens or TokenStore(), connect, self)
        self.controller = HubController(self.account, self)
        self.downloads = DownloadsController(
            lambda listen: make_queue(models_folder(), self.account.client, listen), limit, self
        )
        self.verdicts = HubVerdicts(judge or RemoteJudge(self.account.client, cache), self)
        self.view: HubView | None = None
        self.discover: DiscoverTab | None = None
        self.tab: DownloadsTab | None = None

    def start(self) -> None:
        """Go on with what was being downloaded when the window was closed."""
        self.downloads.start()

    def make_tabs(self) -> HubView:
        """The two tabs, `discover` and `tab`, and what joins them."""
        if self.view is None:
            self.discover = DiscoverTab(self.controller, self.account, self.machine.fits)
            self.tab = DownloadsTab(self.downloads)
            self.view = HubView(
                self.discover,
                self.tab,
                self.controller,
                self.downloads,
                self._items,
                self.machine,
                self._same,
                self.verdicts,
                self,
            )
            self.view.library_changed()
        return self.view

    def make_settings(self) -> HubPage:
        """The page of the settings, anew each time they are opened."""
        page = HubPage(self.account, self.downloads.limit)
        page.limitChanged.connect(self.downloads.set_limit)
        self.downloads.limitChanged.connect(page.set_limit)
        return page

    def close(self) -> None:
        if self.view is not None:
            self.view.close()
        self.verdicts.close()
        self.controller.close()
        self.downloads.close()
        self.account.close()

    def _same(self, group: HubFileGroup, item: LibraryItem, stopped: Callable[[], bool]) -> bool:
        return identical(group, [item], FileHashes(self._models_folder()), stopped) is not None
