"""Work off the UI thread, its outcome back on it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

T = TypeVar("T")
_Call = Callable[[], None]


class Worker(QObject):
    """One thread that does jobs in the order given and reports each outcome on the UI thread.

    A failure without a `failed` receiver is raised on the UI thread, where the crash dialog finds it.
    """

    _outcomeReady = Signal()

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: deque[_Call] = deque()
        self._ready = threading.Condition()
        self._outcomes: deque[_Call] = deque()
        self._closing = False
        self._busy = False
        self._outcomeReady.connect(self._deliver, Qt.ConnectionType.QueuedConnection)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(
        self,
        job: Callable[[], T],
        done: Callable[[T], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Do `job` after all earlier ones; then one of the receivers is called on the UI thread."""

        def call() -> None:
            outcome = outcome_of(job, done, failed)
            if outcome is not None:
                self._report(outcome)

        with self._ready:
            if self._closing:
                return
            self._jobs.append(call)
            self._ready.notify_all()

    def close(self, timeout: float = 2.0) -> bool:
        """Finish the jobs that wait, then end the thread. Outcomes no longer arrive. False if time ran out."""
        with self._ready:
            self._closing = True
            self._ready.notify_all()
        self._thread.join(timeout)
        self._outcomes.clear()
        return not self._thread.is_alive()

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing runs, and every outcome was delivered."""
        with self._ready:
            return not self._jobs and not self._busy and not self._outcomes

    def _work(self) -> None:
        while True:
            with self._ready:
                self._busy = False
                while not self._jobs:
                    if self._closing:
                        return
                    self._ready.wait()
                job = self._jobs.popleft()
                self._busy = True
            job()

    def _report(self, outcome: _Call) -> None:
        with self._ready:
            if self._closing:
                return
            self._outcomes.append(outcome)
        self._outcomeReady.emit()

    @Slot()
    def _deliver(self) -> None:
        try:
            outcome = self._outcomes.popleft()
        except IndexError:
            return
        outcome()


def outcome_of(
    job: Callable[[], T],
    done: Callable[[T], None] | None,
    failed: Callable[[Exception], None] | None,
) -> Callable[[], None] | None:
    """Do it now; what comes back is to be called on the UI thread. A failure that nobody takes is raised there."""
    try:
        result = job()
    except Exception as error:  # noqa: BLE001 - carried to the UI thread, whatever it is
        return _raising(error) if failed is None else partial(failed, error)
    return None if done is None else partial(done, result)


def _raising(error: Exception) -> _Call:
    def raise_it() -> None:
        raise error

    return raise_it
