"""Questions of which only the newest one counts, asked off the UI thread: a search while one types."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

from forespeak.ui.background import outcome_of

T = TypeVar("T")
_Call = Callable[[], None]
_Question = tuple[int, threading.Event, Callable[[threading.Event], _Call | None]]
_MOST_THREADS = 3
"""A question that waits for a dead network must not keep the next one waiting, nor may they pile up."""


class Latest(QObject):
    """Runs the newest job; the ones before it are told to stop, and their outcomes are dropped.

    A failure without a `failed` receiver is raised on the UI thread, where the crash dialog finds it.
    """

    _outcomeReady = Signal(object)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._lock = threading.Lock()
        self._number = 0
        self._stop = threading.Event()
        self._waiting: _Question | None = None
        self._threads: set[threading.Thread] = set()
        self._busy = False
        self._outcomeReady.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        job: Callable[[threading.Event], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Ask this instead of what was asked before. `job` gets an event that is set when nobody waits any more."""

        def ask(stop: threading.Event) -> _Call | None:
            return outcome_of(partial(job, stop), done, failed)

        with self._lock:
            self._supersede()
            self._busy = True
            self._waiting = (self._number, self._stop, ask)
            if len(self._threads) < _MOST_THREADS:
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._threads.add(thread)
                thread.start()

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._busy

    def cancel(self) -> None:
        """Nobody waits for an answer any more."""
        with self._lock:
            self._supersede()
            self._busy = False

    def close(self, timeout: float = 0.2) -> None:
        """Cancel, and wait a little for the threads; one that hangs in the network ends with the program."""
        self.cancel()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(timeout)

    def _supersede(self) -> None:
        self._stop.set()
        self._stop = threading.Event()
        self._number += 1
        self._waiting = None

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._waiting is None:
                    self._threads.discard(threading.current_thread())
                    return
                number, stop, ask = self._waiting
                self._waiting = None
            outcome = ask(stop)
            if not stop.is_set():
                self._outcomeReady.emit((number, outcome))

    @Slot(object)
    def _deliver(self, answer: tuple[int, _Call | None]) -> None:
        number, outcome = answer
        if number == self._number and self._busy:
            self._busy = False
            if outcome is not None:
                outcome()
