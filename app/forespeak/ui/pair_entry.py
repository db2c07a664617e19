"""The page about pairs in the window's list of pages, and its ways to and from the chat and the models.

Nothing of the page itself is imported before it is first wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from forespeak.engines.engine import EngineClient, EngineEvent
from forespeak.models.folders import Folders
from forespeak.ui.main_window import MainWindow
from forespeak.ui.models_entry import MODELS_PAGE, ModelsEntry
from forespeak.ui.navigation import CHAT_PAGE, Page, PageWidget

if TYPE_CHECKING:
    from forespeak.models.machine_memory import Machine
    from forespeak.pairing.named_pair import NamedPair
    from forespeak.ui.pair_page import PairPage
    from forespeak.ui.session import Session
    from forespeak.ui.wizard_controller import WizardController
    from forespeak.ui.wizard_finder import Finder

PAIR_PAGE = "pair"
Connect = Callable[[Callable[[EngineEvent], None]], EngineClient]


class PairEntry(QObject):
    """Add it before the menus are made. `connect` makes an engine of the tests' own; `finder` is given by tests."""

    def __init__(
        self,
        window: MainWindow,
        session: Session,
        where: Folders,
        models: ModelsEntry,
        connect: Connect,
        finder: Finder | None = None,
    ) -> None:
        super().__init__(session)
        self._window, self._session, self._where = window, session, where
        self._models, self._connect, self._finder = models, connect, finder
        self._models_folder = where.models
        models.folderMoved.connect(self._folder_moved)
        models.pairsMoved.connect(self._pairs_moved)
        self._controller: WizardController | None = None
        self.page: PairPage | None = None
        window.add_page(Page(PAIR_PAGE, self.tr("Pair"), "pair", self._make_page))
        # Before the library, to which it listens.
        session.closers.insert(0, self.close)
        session.pair.usual_pair = partial(_usual_pair, where.data)
        session.pair.usualPairFound.connect(self.use)
        window.top.draft.findRequested.connect(self._find_for_chat)
        models.draftWanted.connect(self._find_for)

    def close(self) -> None:
        if self._controller is not None:
            self._controller.close()

    def _make_page(self) -> PageWidget:
        from forespeak.models.formats import mlx_is_installed, on_apple_silicon
        from forespeak.models.good_pairs import good_pairs
        from forespeak.models.memory import fit_of
        from forespeak.pairing.pair_memory import PairFiles
        from forespeak.pairing.pairs import FOLDER, NamedPairs
        from forespeak.ui.pair_page import PairPage
        from forespeak.ui.wizard_controller import WizardController
        from forespeak.ui.wizard_fetcher import Fetcher
        from forespeak.ui.wizard_finder import targets_that_fit
        from forespeak.ui.wizard_maker import Maker
        from forespeak.ui.wizard_pairs import PairsKeeper
        from forespeak.ui.wizard_state import WizardFile
        from forespeak.ui.wizard_surroundings import ChatSurroundings
        from forespeak.ui.wizard_tester import Tester

        view, session, where = self._models.view(), self._session, self._where
        view.begin()
        fetcher = Fetcher(view.ask_repo, view.hub.downloads, self)
        view.hub.downloads.changed.connect(fetcher.downloads_changed)
        maker = Maker(self._connect_converter, self)
        tester = Tester(self._connect, ChatSurroundings(session), self)
        session.chats.busyChanged.connect(tester.chat_became_busy)
        keeper = PairsKeeper(NamedPairs(where.data / FOLDER), PairFiles(where.pairs).parity, self)
        self._controller = WizardController(
            view.controller,
            self._finder or self._disk_finder(),
            fetcher,
            maker,
            tester,
            keeper,
            WizardFile(where.data / "wizard.json"),
            session.file_worker,
            engine_name,
            self,
            load_request=session.load_request,
        )
        # MLX is the better engine on Apple silicon alone.
        mlx = on_apple_silicon() and mlx_is_installed()
        goods = targets_that_fit(good_pairs(), lambda size: fit_of(size, view.hub.machine()), mlx=mlx)
        self.page = PairPage(self._controller, goods)
        self.page.useRequested.connect(self.use)
        self.page.discoverRequested.connect(self._discover)
        self.page.undoChanged.connect(self._window.undoChanged)
        self._controller.start()
        return self.page

    def _connect_converter(self, listener: Callable[[EngineEvent], None]) -> EngineClient:
        from forespeak.engines.converting import ConvertingProcess
        from forespeak.pairing.compatibility import Judge

        check = Judge(self._where.cache / "verdicts").refusal
        return ConvertingProcess(listener, log_path=self._where.logs / "engine-make.log", pair_check=check)

    def _disk_finder(self) -> Finder:
        from typing import cast

        from forespeak.models.good_pairs import good_pairs
        from forespeak.models.hub import Hub
        from forespeak.ui.wizard_finder import DiskFinder

        account, session = self._models.view().hub.account, self._session
        return DiskFinder(
            self._where,
            lambda: cast(Hub, account.hub()),
            good_pairs(),
            lambda: _machine_without_chat(session),
            session.load_request,
            lambda: self._models_folder,
        )

    @Slot(object)
    def _folder_moved(self, folder: Path) -> None:
        self._models_folder = folder

    @Slot()
    def _pairs_moved(self) -> None:
        if self._controller is not None:
            self._controller.keeper.refresh()

    # -- ways

    @Slot()
    def _find_for_chat(self) -> None:
        target = self._session.preferences.target
        if target is not None:
            self._find_for(target)
        else:
            self._window.show_page(PAIR_PAGE)

    @Slot(object)
    def _find_for(self, target: Path) -> None:
        self._window.show_page(PAIR_PAGE)
        if self.page is not None:
            self.page.find_draft(target)

    @Slot()
    def _discover(self) -> None:
        self._window.show_page(MODELS_PAGE)
        self._models.view().show_discover()

    @Slot(object)
    def use(self, pair: NamedPair) -> None:
        """Chat with a pair, in the way in which it was kept."""
        from forespeak.ui.draft_sources import in_order

        session, settings = self._session, pair.settings
        load = session.preferences.load_settings
        session.set_preferences(
            replace(
                session.preferences,
                speculate=True,
                sources=in_order(settings.sources) or session.preferences.sources,
                draft_length=settings.draft_length,
                rule=settings.rule,
                load_settings=replace(load, context_length=settings.context_length or load.context_length),
            )
        )
        session.pair.pick_pair(pair.target.path, None if pair.draft is None else pair.draft.path)
        self._window.show_page(CHAT_PAGE)


def _usual_pair(data: Path, target: Path) -> NamedPair | None:
    from forespeak.pairing.pairs import FOLDER, NamedPairs

    folder = data / FOLDER
    return NamedPairs(folder).default_for(target) if folder.is_dir() else None


def _machine_without_chat(session: Session) -> Machine:
    from forespeak.ui.memory_use import machine_without

    return machine_without(session.pair.engine_pid, session.pair.status.plan)


def engine_name(target: Path) -> str:
    """Name and version of what computes a pair, as it is kept with measurements."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        if target.is_dir():
            return f"MLX {version('mlx')}, mlx-lm {version('mlx-lm')}"
        return f"llama-cpp-python {version('llama-cpp-python')}"
    except PackageNotFoundError:
        return "MLX" if target.is_dir() else "llama.cpp"
