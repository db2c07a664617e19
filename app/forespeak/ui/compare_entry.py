"""The Compare page in the window's list of pages, without anything of it before it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from forespeak.engines.engine import EngineClient, EngineEvent
from forespeak.models.folders import Folders
from forespeak.ui.main_window import MainWindow
from forespeak.ui.navigation import Page, PageWidget
from forespeak.ui.pair_controller import Models

if TYPE_CHECKING:
    from forespeak.models.library_item import LibraryItem
    from forespeak.ui.compare_view import CompareView
    from forespeak.ui.session import Session

COMPARE_PAGE = "compare"


class CompareEntry(QObject):
    """Add it before the menus are made, which give each page its key. `connect` makes an engine of its own."""

    def __init__(
        self,
        window: MainWindow,
        session: Session,
        where: Folders,
        models: Models,
        connect: Callable[[Callable[[EngineEvent], None]], EngineClient],
    ) -> None:
        super().__init__(session)
        self._session, self._where, self._models, self._connect = session, where, models, connect
        self._models_folder = where.models
        self._view: CompareView | None = None
        window.add_page(Page(COMPARE_PAGE, self.tr("Compare"), "compare", self._make_page))
        window.conversation.compareRequested.connect(self._compare_reply)
        session.closers.append(self.close)

    def view(self) -> CompareView:
        """Made now if it was not needed before."""
        if self._view is None:
            from forespeak.compare.store import FOLDER
            from forespeak.models.file_hashes import FileHashes
            from forespeak.models.library import users_library
            from forespeak.ui.compare_desk import ComparisonDesk
            from forespeak.ui.compare_view import CompareView

            def library(cancelled: Callable[[], bool]) -> Sequence[LibraryItem]:
                return users_library().scan(cancelled=cancelled)

            def hash_of(path: Path, stopped: Callable[[], bool]) -> str | None:
                return FileHashes(self._models_folder).sha256(path, stopped)

            desk = ComparisonDesk(self._where.data / FOLDER, self._connect, hash_of)
            self._view = CompareView(self._session, desk, self._where.data, self._models, library)
        return self._view

    @Slot(object)
    def set_models_folder(self, folder: Path) -> None:
        """The folder has been moved: what is known of its files moved along."""
        self._models_folder = folder

    def close(self) -> None:
        if self._view is not None:
            self._view.close()

    def _make_page(self) -> PageWidget:
        return self.view().make_page()

    @Slot(int)
    def _compare_reply(self, message: int) -> None:
        """The page, ready to compare on what this reply answers."""
        self._session.window.show_page(COMPARE_PAGE)
        self.view().compare_reply(message)
