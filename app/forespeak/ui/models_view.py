"""The Models page and what stands behind it, joined with the rest of the window. Made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from forespeak.errors import UserFacingError
from forespeak.models.file_hashes import FileHashes
from forespeak.models.folders import Folders
from forespeak.models.formats import on_apple_silicon
from forespeak.models.good_pairs import good_pairs
from forespeak.models.hub_errors import offline_error
from forespeak.models.hub_results import HubRepo
from forespeak.models.hub_settings import HubSettings
from forespeak.models.library import ImportWay, Library, LibraryItem
from forespeak.models.library_settings import LibrarySettings, LibrarySettingsFile
from forespeak.models.memory import fit_of
from forespeak.models.on_disk import moved_path
from forespeak.models.roots import known_roots
from forespeak.ui.check_files import FileChecker
from forespeak.ui.good_pairs import GoodPairs
from forespeak.ui.hub_parts import HubParts
from forespeak.ui.library_controller import LibraryController
from forespeak.ui.library_state import ModelLibrary
from forespeak.ui.memory_fits import MemoryFits
from forespeak.ui.models_entry import MODELS_PAGE
from forespeak.ui.models_page import ModelsPage
from forespeak.ui.my_models import MyModels
from forespeak.ui.navigation import CHAT_PAGE
from forespeak.ui.pair_controller import Models
from forespeak.ui.pair_fetcher import PairFetcher
from forespeak.ui.preferences import Preferences
from forespeak.ui.session import Session
from forespeak.ui.target_verdicts import TargetVerdicts


class ModelsView(QObject):
    """`library` and `hub` are given by tests; else they are those of `where`."""

    draftWanted = Signal(object)
    """Path of a model for which a draft is to be found"""
    folderMoved = Signal(object)
    """Path of the models folder now"""
    pairsMoved = Signal()
    """What is kept of pairs has followed the models folder"""

    def __init__(
        self,
        session: Session,
        where: Folders,
        models: Models,
        library: ModelLibrary | None = None,
        hub: Callable[[ModelsView], HubParts] | None = None,
    ) -> None:
        super().__init__(session)
        self._session = session
        self._where = where
        self._models = models
        self._file = LibrarySettingsFile(where.config)
        self._settings = self._file.read()
        self.library = library or Library(where.models, known_roots(self._settings.added), where.cache)
        self._own = self.models_folder()
        limit = session.preferences.download_limit
        make_hub = hub or (
            lambda view: HubParts(
                where.config, view.models_folder, view.items, limit=limit, cache=where.cache, parent=view
            )
        )
        self.hub = make_hub(self)
        checker = FileChecker(lambda: FileHashes(self.models_folder()))
        self.fits = MemoryFits(self.hub.machine, session.load_request)
        self.controller = LibraryController(
            self.library, self.fits.known, self._suits, checker, self, weigh=self.fits.read
        )
        self.fetcher = PairFetcher(self.ask_repo, self.hub.downloads, self)
        self._page: ModelsPage | None = None
        self._discover = self._downloads = 0
        self._downloading = self._begun = self._moving = False
        self.controller.changed.connect(self._library_changed)
        self.controller.problemFound.connect(session.problems.show_dialog)
        self.controller.folderMoved.connect(self._folder_moved)
        self.controller.taskChanged.connect(self._task_changed)
        self.hub.account.settingsChanged.connect(self._hub_settings_changed)
        self.controller.removalsChanged.connect(session.window.undoChanged)
        self.hub.downloads.changed.connect(self.fetcher.downloads_changed)
        self.hub.downloads.runningChanged.connect(self._count_downloads)
        self.hub.downloads.limitChanged.connect(self._limit_changed)
        self.hub.account.problemFound.connect(session.problems.show_dialog)

    def models_folder(self) -> Path:
        return self.library.roots()[0].path

    def items(self) -> Sequence[LibraryItem]:
        """What the library knows now."""
        return self.controller.state.items

    def resume_downloads(self) -> None:
        """Go on with what was being downloaded when the window was closed."""
        if not self._downloading:
            self._downloading = True
            self.hub.start()

    def begin(self) -> None:
        """Begin to read the library, if that was not done before."""
        if not self._begun:
            self._begun = True
            self.hub.downloads.finished.connect(self.controller.rescan)
            self.controller.start()
            self.resume_downloads()
            self.look_at_machine()

    def look_at_machine(self) -> None:
        """Find out what the graphics processors have free, and judge the library by that."""

        def seen(changed: bool) -> None:
            if changed:
                self.controller.rescan()

        self._session.file_worker.run(self.hub.machine.look, seen)

    def ask_repo(self, name: str, cancelled: Callable[[], bool]) -> HubRepo | None:
        """What a repo holds. Waits for the network; raises UserFacingError; None where it was cancelled."""
        return self.hub.account.hub().repo(name, None, cancelled)

    def make_page(self) -> ModelsPage:
        """The page with its three tabs; begins to read the library."""
        mine = MyModels(
            self.controller,
            self._make_pairs,
            self._session.file_worker,
            lambda: self._settings.added,
            TargetVerdicts(self._models.fit, self._session.file_worker, self),
        )
        self._page = page = ModelsPage(mine)
        self._discover = page.add_tab(self.tr("Discover"), self._make_discover)
        longest = self.tr("Downloads ({count})").format(count=99)
        self._downloads = page.add_tab(self.tr("Downloads"), self._make_downloads, longest)
        mine.targetRequested.connect(self._session.pair.pick_target)
        # As if it were picked in the bar at the top, which knows what else a draft needs.
        mine.draftRequested.connect(self._session.window.top.draft.picked)
        mine.chatRequested.connect(self._chat_with)
        mine.findDraftRequested.connect(self.draftWanted)
        mine.importWayChanged.connect(self._way_changed)
        mine.addedFoldersChanged.connect(self._added_changed)
        mine.moveRequested.connect(self._move)
        self._count_downloads(self.hub.downloads.running)
        self._session.window.pageShown.connect(self._page_shown)
        self._session.preferencesChanged.connect(self._show_preferences)
        self._show_preferences(self._session.preferences)
        self.begin()
        return page

    def _make_pairs(self) -> GoodPairs:
        mlx = on_apple_silicon()
        pairs = GoodPairs(good_pairs(), self.fetcher, lambda size: fit_of(size, self.hub.machine()), mlx)
        pairs.pairRequested.connect(self._use_pair)
        pairs.downloadsRequested.connect(self._show_downloads)
        return pairs

    def _make_discover(self) -> QWidget:
        self._join_tabs()
        assert self.hub.discover is not None
        return self.hub.discover

    def _make_downloads(self) -> QWidget:
        self._join_tabs()
        assert self.hub.tab is not None
        return self.hub.tab

    def _join_tabs(self) -> None:
        if self.hub.view is not None:
            return
        view = self.hub.make_tabs()
        discover, downloads = self.hub.discover, self.hub.tab
        assert discover is not None
        assert downloads is not None
        downloads.discoverRequested.connect(self.show_discover)
        for signal in (discover.settingsRequested, downloads.tokenRequested):
            signal.connect(self._session.open_hub_settings)
        view.useRequested.connect(self._use)
        view.showRequested.connect(self._show)
        view.downloadsRequested.connect(self._show_downloads)
        view.problemFound.connect(self._session.problems.show_dialog)
        self.controller.changed.connect(view.library_changed)

    @Slot()
    def show_discover(self) -> None:
        """On the page, once it has been made."""
        if self._page is not None:
            self._page.show_tab(self._discover)

    @Slot()
    def _show_downloads(self) -> None:
        if self._page is not None:
            self._page.show_tab(self._downloads)

    @property
    def page(self) -> ModelsPage | None:
        return self._page

    def close(self) -> None:
        self.fetcher.close()
        self.hub.close()
        self.controller.close()

    # -- asked off the UI thread

    def _suits(self, target: Path, draft: Path) -> bool:
        return self._models.fit(target, draft).fits

    # -- what the user wants

    @Slot(object)
    def _chat_with(self, path: Path) -> None:
        self._session.pair.pick_target(path)
        self._session.chat_view.new_chat()
        self._session.window.show_page(CHAT_PAGE)

    @Slot(object, object)
    def _use_pair(self, target: Path, draft: Path) -> None:
        self._session.pair_view.pick_pair(target, draft)
        self._session.window.show_page(CHAT_PAGE)

    @Slot(str)
    def _page_shown(self, name: str) -> None:
        if name == MODELS_PAGE:
            # A pair that was loaded since, or given back, has changed what is free.
            self.look_at_machine()

    @Slot(object, bool)
    def _use(self, path: Path, as_draft: bool) -> None:
        if as_draft:
            self._session.window.top.draft.picked.emit(path)
        else:
            self._session.pair.pick_target(path)

    @Slot(object)
    def _show(self, path: Path) -> None:
        if self._page is not None:
            self._page.show_tab(0)
            self._page.my_models.show_model(path)

    @Slot(object)
    def _move(self, folder: Path) -> None:
        if self.controller.task is None and not self._moving:
            # Downloads move along with what is there of them, and go on in the new place.
            self._moving = True
            self.hub.downloads.suspend(lambda: self.controller.move_to(folder))
        else:
            # Which says why it cannot.
            self.controller.move_to(folder)

    @Slot()
    def _task_changed(self) -> None:
        if self._moving and self.controller.task is None:
            # Once everybody knows of the new folder, or that it stays the old one.
            QTimer.singleShot(0, self, self._moved)

    @Slot()
    def _moved(self) -> None:
        if self._moving:
            self._moving = False
            self.hub.downloads.start()

    @Slot(object)
    def _hub_settings_changed(self, settings: HubSettings) -> None:
        self.hub.downloads.follow_network(offline_error() if settings.offline else None)

    # -- what is to last

    @Slot(object)
    def _way_changed(self, way: ImportWay | None) -> None:
        value = None if way is None else way.value
        self._session.set_preferences(replace(self._session.preferences, import_way=value))

    @Slot(object)
    def _limit_changed(self, limit: int | None) -> None:
        self._session.set_preferences(replace(self._session.preferences, download_limit=limit))

    @Slot(object)
    def _added_changed(self, folders: Sequence[Path]) -> None:
        self._store(replace(self._settings, added=tuple(folders)))

    @Slot(object)
    def _folder_moved(self, folder: Path) -> None:
        before = self._settings.own
        old, self._own = self._own, folder
        self._store(replace(self._settings, own=folder))
        if before != folder and not self._moving:
            self.hub.downloads.reopen()
        # Behind what was stored, and before anybody asks the same thread for the pair of a target.
        self._session.file_worker.run(lambda: _move_pairs(self._where, old, folder), self._pairs_moved)
        self.folderMoved.emit(folder)
        self._session.pair.follow_move(old, folder)
        preferences = self._session.preferences

        def now(path: Path) -> Path:
            return moved_path(path, old, folder)

        target, draft = preferences.target, preferences.draft
        self._session.set_preferences(
            replace(
                preferences,
                target=None if target is None else now(target),
                draft=None if draft is None else now(draft),
                recent=tuple(now(path) for path in preferences.recent),
            )
        )
        if target is None:
            # What is offered instead of a choice may lie in the folder.
            self._session.pair.start()

    def _pairs_moved(self, problem: UserFacingError | None) -> None:
        self.pairsMoved.emit()
        if problem is not None:
            self._session.problems.show_dialog(problem)

    def _store(self, settings: LibrarySettings) -> None:
        self._settings = settings
        file = self._file
        self._session.file_worker.run(lambda: file.write(settings), None, self._not_stored)

    def _not_stored(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self._session.problems.show_dialog(error)

    # -- what is shown

    @Slot()
    def _library_changed(self) -> None:
        # Before the page shows it: signals are answered in the order in which they were joined.
        self.fetcher.set_items(self.items())

    @Slot(object)
    def _show_preferences(self, preferences: Preferences) -> None:
        if self._page is not None:
            way = preferences.import_way
            self._page.my_models.set_import_way(None if way is None else ImportWay(way))
            self._page.my_models.set_uses(preferences.target, preferences.draft)
            self.hub.verdicts.set_target(preferences.target)

    @Slot(int)
    def _count_downloads(self, running: int) -> None:
        if self._page is not None:
            words = self.tr("Downloads ({count})").format(count=running) if running else self.tr("Downloads")
            self._page.set_tab_title(self._downloads, words)
        navigation = self._session.window.navigation
        if MODELS_PAGE in navigation.names:
            words = self.tr("Models ({count})").format(count=running) if running else self.tr("Models")
            button = navigation.button(MODELS_PAGE)
            button.setText(words)
            button.setToolTip(self.tr("{count} downloads").format(count=running) if running else "")


def _move_pairs(where: Folders, old: Path, new: Path) -> UserFacingError | None:
    """What went wrong, if anything did: the pairs are shown anew in any case."""
    from forespeak.pairing.pairs import follow_models

    try:
        follow_models(where, old, new)
    except UserFacingError as error:
        return error
    return None
