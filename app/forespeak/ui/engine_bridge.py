"""From the engine's reader thread to the UI thread: gathered, ordered, as often as the machine can afford."""

from __future__ import annotations

import threading
import time
from collections import deque

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from forespeak.engines.bundles import bundle_seconds
from forespeak.engines.engine import Died, EngineEvent, Loaded
from forespeak.speculation.trace import Step

FRAME_SECONDS = 1 / 60
_BUNDLE_ARRIVES_SECONDS = 0.0003
STEPS_PER_FLUSH = 128
"""More than a frame's worth at any speed we know; a longer queue is worked off over several frames."""


class EngineBridge(QObject):
    """Hand `listen` to an engine client; connect to the signals, which come on the UI thread.

    Only events of watched requests get through, so that a late result of an abandoned request goes nowhere. Steps that
    wait together come together; the order of events is kept. The first step of a request goes out at once.
    """

    stepsArrived = Signal(object, object)
    """request number, tuple of Steps"""
    eventArrived = Signal(object)
    """EngineEvent with any other body"""
    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._waiting: deque[EngineEvent] = deque()
        self._awake = False
        self._urgent = False
        self._newest = 0
        """The request of the newest step that came in."""
        self._watched: set[int] = set()
        self._last_flush = 0.0
        self._interval = FRAME_SECONDS
        """Seconds from one flush to the next, at least."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.flush)
        self._woken.connect(self._wake, Qt.ConnectionType.QueuedConnection)

    def watch(self, request: int) -> None:
        self._watched.add(request)

    def forget(self, request: int) -> None:
        """Whatever else comes for this request is dropped."""
        self._watched.discard(request)

    def listen(self, event: EngineEvent) -> None:
        """Called on any thread."""
        with self._lock:
            self._waiting.append(event)
            first = isinstance(event.body, Step) and event.request != self._newest
            if first:
                self._newest = event.request
                self._urgent = True
            wake = first or not self._awake
            self._awake = True
        if wake:
            self._woken.emit()

    @Slot()
    def _wake(self) -> None:
        if self._urgent:
            self.flush()
            return
        wait = self._last_flush + self._interval - time.perf_counter()
        if wait <= 0:
            # The reader wakes this thread with the first step of a bundle and is about to bring the others: shown
            # together, they cost one painting instead of two.
            time.sleep(_BUNDLE_ARRIVES_SECONDS)
            self.flush()
        else:
            self._timer.start(max(1, round(wait * 1000)))

    @Slot()
    def flush(self) -> None:
        """Give out what waits, up to a frame's worth of steps."""
        self._timer.stop()
        events: list[EngineEvent] = []
        steps = 0
        with self._lock:
            self._urgent = False
            while self._waiting and steps < STEPS_PER_FLUSH:
                events.append(self._waiting.popleft())
                steps += isinstance(events[-1].body, Step)
            more = bool(self._waiting)
            self._awake = more
        try:
            self._give_out(events)
        finally:
            # Counted from the end: the window gets its frame's time for painting, however long the receivers took.
            self._last_flush = time.perf_counter()
            if more:
                # A queue is worked off as fast as it can be shown.
                self._timer.start(max(1, round(FRAME_SECONDS * 1000)))

    def _give_out(self, events: list[EngineEvent]) -> None:
        together: list[Step] = []
        owner = 0
        for event in events:
            known = event.request in self._watched or isinstance(event.body, Died)
            if together and (not isinstance(event.body, Step) or event.request != owner):
                self._give_steps(owner, together)
                together = []
            if not known:
                continue
            if isinstance(event.body, Step):
                owner = event.request
                together.append(event.body)
            else:
                if isinstance(event.body, Loaded):
                    # The engine process sets the pace: its bundles never wait here. Other engines' steps do.
                    self._interval = max(FRAME_SECONDS, bundle_seconds(event.body.computes_on_cpu) / 2)
                self.eventArrived.emit(event)
        if together:
            self._give_steps(owner, together)

    def _give_steps(self, request: int, steps: list[Step]) -> None:
        # A receiver of an earlier event in this flush may have let go of the request.
        if request in self._watched:
            self.stepsArrived.emit(request, tuple(steps))
