"""Feeds the figures beside the conversation twice a second: they are read, not watched."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.speculation.trace import Step
from forespeak.ui.live_reply import LiveReply
from forespeak.ui.speculation_panel import SpeculationPanel

INTERVAL_MILLISECONDS = 500


class PanelFeed(QObject):
    """Gathers the steps of the reply on show. The first ones are passed on at once."""

    contextGrew = Signal(object)
    """Tokens in the target's cache, as of the newest step passed on"""

    def __init__(self, panel: SpeculationPanel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._panel = panel
        self._reply: LiveReply | None = None
        self._waiting: list[Step] = []
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(INTERVAL_MILLISECONDS)
        self._timer.timeout.connect(self.flush)

    def add(self, reply: LiveReply, steps: Sequence[Step]) -> None:
        self._reply = reply
        self._waiting += steps
        if len(reply.steps) == len(self._waiting):
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
        self._panel.add_steps(steps, reply.seconds)
        rate = reply.rate
        if rate is not None:
            self._panel.set_live_rate(rate)
        self.contextGrew.emit(steps[-1].cache_length)
