"""How the vocabularies of the library's models go with that of the target, in two or three words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from forespeak.models.library import LibraryItem
from forespeak.ui.background import Worker
from forespeak.ui.pair_controller import Fit


class TargetVerdicts(QObject):
    """`judge` (target, draft) is asked on the worker's thread, once for each two models."""

    changed = Signal()

    def __init__(self, judge: Callable[[Path, Path], Fit], worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._judge, self._worker = judge, worker
        self._words: dict[tuple[Path, LibraryItem], str] = {}
        self.target: Path | None = None

    def words(self, item: LibraryItem) -> str:
        """Empty where there is nothing to tell, and until it is found out: then `changed` comes."""
        target = self.target
        if target is None or item.path == target or not item.usable:
            return ""
        key = (target, item)
        if key not in self._words:
            self._words[key] = ""

            def judged(fit: Fit) -> None:
                self._words[key] = fit.short[:1].upper() + fit.short[1:]
                self.changed.emit()

            self._worker.run(lambda: self._judge(target, item.path), judged, lambda _: None)
        return self._words[key]
