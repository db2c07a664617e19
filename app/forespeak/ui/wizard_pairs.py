"""The kept pairs as the window sees them: read and changed off the UI thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from forespeak.engines.parity_result import ParityResult
from forespeak.errors import UserFacingError
from forespeak.pairing.named_pair import NamedPair, PairSettings
from forespeak.pairing.pairs import NamedPairs, RemovedPair
from forespeak.pairing.ranking import Measurement
from forespeak.ui.background import Worker

T = TypeVar("T")


class PairsKeeper(QObject):
    """`pairs` by name, as last read; `read`: whether they were read at all."""

    changed = Signal()
    removalsChanged = Signal()
    kept = Signal(object)
    """NamedPair that is new, or was tested again"""
    problemFound = Signal(object)
    """UserFacingError"""

    def __init__(
        self,
        pairs: NamedPairs,
        parity_of: Callable[[Path, Path | None], ParityResult | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._files = pairs
        self._parity_of = parity_of
        self._worker = Worker("named-pairs", self)
        self._closed = False
        self.pairs: tuple[NamedPair, ...] = ()
        self.read = False
        self.removals: list[tuple[NamedPair, RemovedPair]] = []
        """Newest last: what can still be taken back."""

    def refresh(self) -> None:
        """Read them anew: files may have changed or gone."""
        self._worker.run(self._files.all, self._came, self._fail)

    def find(self, pair_id: str) -> NamedPair | None:
        return next((pair for pair in self.pairs if pair.id == pair_id), None)

    def rename(self, pair: NamedPair, name: str) -> None:
        self._do(lambda: self._files.rename(pair, name))

    def set_default(self, pair: NamedPair, on: bool) -> None:
        if on:
            self._do(lambda: self._files.set_default(pair))
        else:
            self._do(lambda: self._files.clear_default(pair.target.path))

    def remove(self, pair: NamedPair) -> None:
        """Until the window closes it can come back."""

        def removed(removal: RemovedPair) -> None:
            self.removals.append((pair, removal))
            self.removalsChanged.emit()

        self._do(lambda: self._files.remove(pair), removed)

    def undo(self) -> None:
        """Bring back what was removed last."""
        if self.removals:
            _, removal = self.removals.pop()
            self.removalsChanged.emit()
            self._do(removal.undo)

    def keep(
        self,
        name: str,
        target: Path,
        draft: Path | None,
        settings: PairSettings,
        measurement: Measurement | None,
        parity: ParityResult | None,
        *,
        as_default: bool,
        tested_so: bool,
    ) -> None:
        """A new pair. `tested_so`: the measurement was made with these settings; else it is out of date at once."""

        def keep() -> NamedPair:
            pair = self._files.keep(
                name,
                target,
                draft,
                settings,
                parity=parity or self._parity_of(target, draft),
                measurement=measurement,
                as_default=as_default,
            )
            return pair if tested_so else self._files.mark_stale(pair)

        self._do(keep, self.kept.emit)

    def update(
        self,
        pair: NamedPair,
        name: str,
        settings: PairSettings,
        measurement: Measurement | None,
        parity: ParityResult | None,
        *,
        as_default: bool,
        tested_so: bool,
    ) -> None:
        """A kept pair after a new test."""

        def update() -> NamedPair:
            changed = self._files.rename(pair, name)
            changed = self._files.set_settings(changed, settings)
            if measurement is not None:
                changed = self._files.tested(changed, measurement, parity)
            if not tested_so:
                changed = self._files.mark_stale(changed)
            if as_default:
                self._files.set_default(changed)
            elif changed.is_default:
                self._files.clear_default(changed.target.path)
            return self._files.get(changed.id) or changed

        self._do(update, self.kept.emit)

    def known_parity(self, target: Path, draft: Path | None, done: Callable[[ParityResult | None], None]) -> None:
        """What the last check of these very files found, in the chat or here."""
        self._worker.run(lambda: self._parity_of(target, draft), done, self._fail)

    def close(self) -> None:
        """Removed pairs are forgotten now."""
        if self._closed:
            return
        self._closed = True
        removals, self.removals = self.removals, []
        for _, removal in removals:
            self._worker.run(removal.finish)
        self._worker.close(0.5)

    def _do(self, job: Callable[[], T], done: Callable[[T], None] | None = None) -> None:
        self._worker.run(job, done, self._fail)
        # Behind it, on the same thread; after a failure too, which may be that a pair has gone.
        self.refresh()

    def _came(self, pairs: tuple[NamedPair, ...]) -> None:
        if not self.read or pairs != self.pairs:
            self.pairs, self.read = pairs, True
            self.changed.emit()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self.problemFound.emit(error)
