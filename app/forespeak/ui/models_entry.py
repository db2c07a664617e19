"""The Models page in the window's list of pages, without anything of it before it is wanted."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from forespeak.models.folders import Folders
from forespeak.ui.main_window import MainWindow
from forespeak.ui.navigation import Page, PageWidget
from forespeak.ui.pair_controller import Models

if TYPE_CHECKING:
    from forespeak.ui.models_view import ModelsView
    from forespeak.ui.session import Session

MODELS_PAGE = "models"
PREPARE_MS = 1500
"""After the start, when nothing else is going on."""


class ModelsEntry(QObject):
    """Add it before the menus are made, which give each page its key."""

    draftWanted = Signal(object)
    """Path of a model for which a draft is to be found"""
    folderMoved = Signal(object)
    """Path of the models folder now"""
    pairsMoved = Signal()
    """What is kept of pairs has followed the models folder"""

    def __init__(self, window: MainWindow, session: Session, where: Folders, models: Models) -> None:
        super().__init__(session)
        self._session, self._where, self._models = session, where, models
        self._view: ModelsView | None = None
        window.add_page(Page(MODELS_PAGE, self.tr("Models"), "models", self._make_page))
        session.closers.append(self.close)
        session.settings_pages.append((self.tr("Hub"), self._make_settings))
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(PREPARE_MS)
        self._later.timeout.connect(self._prepare)
        self._later.start()

    def view(self) -> ModelsView:
        """Made now if it was not needed before."""
        if self._view is None:
            from forespeak.ui.models_view import ModelsView

            self._view = ModelsView(self._session, self._where, self._models)
            self._view.draftWanted.connect(self.draftWanted)
            self._view.folderMoved.connect(self.folderMoved)
            self._view.pairsMoved.connect(self.pairsMoved)
        return self._view

    def close(self) -> None:
        self._later.stop()
        if self._view is not None:
            self._view.close()

    def _make_page(self) -> PageWidget:
        return self.view().make_page()

    def _make_settings(self) -> QWidget:
        return self.view().hub.make_settings()

    @Slot()
    def _prepare(self) -> None:
        folder = self._where.models
        self._session.file_worker.run(lambda: _prepared(folder), self._found)

    def _found(self, has_downloads: bool) -> None:
        if has_downloads:
            self.view().resume_downloads()


def _prepared(models_folder: Path) -> bool:
    """Import what the page needs, so that it opens at once. Whether a queue has left something to go on with."""
    import forespeak.ui.models_view  # noqa: F401

    # It stays for ever: the window need not look through it for garbage.
    gc.freeze()
    try:
        return any((models_folder / ".downloads").glob("*.json"))
    except OSError:
        return False
