"""Makes drafts from the target's own weights within the pairing wizard, in an engine process of their own."""

from __future__ import annotations

import threading
from collections.abc import Collection

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import Progress
from forespeak.errors import UserFacingError
from forespeak.pairing.making import make_draft
from forespeak.pairing.offers import Making
from forespeak.ui.background import Worker
from forespeak.ui.wizard_fetcher import Fetch, FetchStep
from forespeak.ui.wizard_tester import Connect

CLOSE_SECONDS = 1.2


class Maker(QObject):
    """One after the other. How each stands is told as of a download (`fetch_of`).

    `connect` makes an engine whose cancel ends what it does at once.
    """

    changed = Signal(str)
    """The key of what moved on"""
    arrived = Signal(str, object)
    """A key, and the Path of the draft"""
    _progressed = Signal(str, object)

    def __init__(self, connect: Connect, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._connect = connect
        self._worker = Worker("pair-make", self)
        self._fetches: dict[str, Fetch] = {}
        self._stops: dict[str, threading.Event] = {}
        """Of what is being made, or waits for its turn"""
        self._progressed.connect(self._on_progress)

    def close(self) -> None:
        """End what is being made; takes no longer than the window may."""
        for stop in self._stops.values():
            stop.set()
        self._worker.close(CLOSE_SECONDS)

    def fetch_of(self, key: str) -> Fetch | None:
        return self._fetches.get(key)

    def make(self, key: str, making: Making) -> None:
        if key in self._stops:
            return
        stop = self._stops[key] = threading.Event()
        self._set(key, Fetch(FetchStep.COMING, self.tr("Waiting") if len(self._stops) > 1 else self.tr("Starting")))

        def job() -> object:
            if stop.is_set():
                return None
            engine = WaitingEngine(self._connect)
            try:
                return make_draft(making, engine, lambda each: self._progressed.emit(key, each), stop.is_set)
            finally:
                engine.close()

        def done(path: object) -> None:
            if self._stops.get(key) is stop:
                del self._stops[key]
                self._set(key, None if path is None else Fetch(FetchStep.DONE, self.tr("Made"), 1.0))
            if path is not None:
                self.arrived.emit(key, path)

        def failed(error: Exception) -> None:
            known = error if isinstance(error, UserFacingError) else None
            if self._stops.get(key) is stop:
                del self._stops[key]
                self._set(key, None if known is None else Fetch(FetchStep.STOPPED, str(known), error=known))
            if known is None:
                raise error

        self._worker.run(job, done, failed)

    def cancel(self, key: str) -> None:
        """Give it up; nothing is left of it."""
        stop = self._stops.pop(key, None)
        if stop is not None:
            stop.set()
        self._set(key, None)

    def forget_all_but(self, keys: Collection[str]) -> None:
        """What was made is a model like others, and may be made again once it is removed."""
        for key in [key for key in self._fetches if key not in keys and key not in self._stops]:
            del self._fetches[key]

    @Slot(str, object)
    def _on_progress(self, key: str, progress: Progress) -> None:
        stop = self._stops.get(key)
        if stop is not None and not stop.is_set():
            words = self.tr("{doing}: {share} %").format(doing=progress.doing, share=round(100 * progress.fraction))
            self._set(key, Fetch(FetchStep.COMING, words, progress.fraction))

    def _set(self, key: str, fetch: Fetch | None) -> None:
        if fetch is None:
            self._fetches.pop(key, None)
        else:
            self._fetches[key] = fetch
        self.changed.emit(key)
