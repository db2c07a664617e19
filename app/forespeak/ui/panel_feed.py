"""Feeds the figures beside the conversation once a second: they are read, not watched."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.speculation.trace import Step
from forespeak.ui.live_reply import LiveReply
from forespeak.ui.speculation_panel import SpeculationPanel

INTERVAL_MILLISECONDS = 1000


class PanelFeed(QObject):
    """Gathers the steps of the reply on show. The first ones are passed on at once, the others together with new text,
    so that the window wakes up and paints once for both.
    """

    contextGrew = Signal(object)
    """Tokens in the target's cache, as of the newest step passed on"""

    def __init__(self, panel: SpeculationPanel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._panel = panel
        self._reply: LiveReply | None = None
        self._waiting: list[Step] = []
        self._last_flush = 0.0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        # For what no further text comes behind.
        self._timer.setInterval(2 * INTERVAL_MILLISECONDS)
        self._timer.timeout.connect(self.flush)

    def add(self, reply: LiveReply, steps: Sequence[Step]) -> None:
        self._reply = reply
        self._waiting += steps
        due = time.monotonic() - self._last_flush >= INTERVAL_MILLISECONDS / 1000
        if due or len(reply.steps) == len(self._waiting):
            self.flush()
        elif not self._timer.isActive():
            self._timer.start()

    def drop(self) -> None:
        """Forget what waits: the panel is about to show something else, or has it already."""
        self._timer.stop()
        self._reply, self._waiting = None, []

    @Slot()
    def flush(self) -> None:
        """Pass on what waits."""
        reply, steps = self._reply, tuple(self._waiting)
        self.drop()
        if reply is None or not steps:
            return
        self._last_flush = time.monotonic()
        self._panel.add_steps(steps, reply.seconds)
        rate = reply.rate
        if rate is not None:
            self._panel.set_live_rate(rate)
        self.contextGrew.emit(steps[-1].cache_length)
