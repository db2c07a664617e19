"""The application itself: it is told by the system which files to open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class Application(QApplication):
    """Macs name a file that was opened in an event, other systems among the arguments of the program.

    `open_with` is told each; one that comes before there is anybody to be told is kept for them.
    """

    def __init__(self, argv: list[str]) -> None:
        super().__init__(argv)
        self._open: Callable[[Path], None] | None = None
        self._waiting: Path | None = None

    def open_with(self, opener: Callable[[Path], None]) -> None:
        self._open = opener
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            opener(waiting)

    def open_file(self, path: Path) -> None:
        if self._open is None:
            self._waiting = path
        else:
            self._open(path)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and event.file():
            self.open_file(Path(event.file()))
            return True
        return super().event(event)
