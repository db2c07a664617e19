"""Collects cyclic garbage when the window has time for it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Slot

TICK_MS = 1000
MIDDLE_EVERY = 4
FULL_SECONDS = 60.0
QUIET_SECONDS = 3.0


class GarbageKeeper(QObject):
    """Takes over from Python's own timing, which walks every object of a long chat in the middle of its streaming:
    120 ms at 20,000 tokens. The young generations are collected often and are small; the whole heap only while
    nothing is written, by a model or by the user.
    """

    def __init__(self, is_busy: Callable[[], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_busy = is_busy
        self._ticks = 0
        self._last_full = self._last_input = time.monotonic()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)

    def start(self) -> None:
        # What was imported stays for ever: no need to look at it again.
        gc.collect()
        gc.freeze()
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        gc.unfreeze()
        gc.enable()

    @Slot()
    def note_input(self) -> None:
        self._last_input = time.monotonic()

    @Slot()
    def tick(self) -> None:
        self._ticks += 1
        now = time.monotonic()
        quiet = now - self._last_input > QUIET_SECONDS and not self._is_busy()
        if quiet and now - self._last_full > FULL_SECONDS:
            self._last_full = now
            gc.collect()
        else:
            gc.collect(1 if self._ticks % MIDDLE_EVERY == 0 else 0)
