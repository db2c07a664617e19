"""The parity check of the loaded pair: what is known of it, and a new one, run where the pair is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.engines.engine import Died, EngineEvent, Failed, Progress
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.ui.background import Worker
from forespeak.ui.engine_bridge import EngineBridge
from forespeak.ui.pair_controller import PairController, PairState
from forespeak.ui.preferences import Preferences


class ParityState(Enum):
    UNAVAILABLE = "unavailable"
    """No pair is loaded, or what is known of it is still being read."""
    IDLE = "idle"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class ParityStatus:
    """`result` is the newest one of the loaded pair; `problem` why the last check came to nothing, in words."""

    state: ParityState
    result: ParityResult | None = None
    progress: Progress | None = None
    seconds_left: float | None = None
    stopping: bool = False
    problem: str = ""


class KeptResults(Protocol):
    """Where results are kept. Reads the disk."""

    def parity(self, target: Path, draft: Path | None) -> ParityResult | None: ...


class ParityController(QObject):
    """`changed` after each change of `status`. A reply goes before a check, which is then stopped."""

    changed = Signal()

    def __init__(
        self,
        pair: PairController,
        bridge: EngineBridge,
        worker: Worker,
        kept: KeptResults | None,
        preferences: Callable[[], Preferences],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._pair = pair
        self._bridge = bridge
        self._worker = worker
        self._kept = kept
        self._preferences = preferences
        self._clock = clock
        self._request: int | None = None
        self._files: tuple[Path, Path | None] | None = None
        """The pair that the status is about."""
        self._began: tuple[float, float] | None = None
        self.status = ParityStatus(ParityState.UNAVAILABLE)
        pair.changed.connect(self._pair_changed)
        bridge.eventArrived.connect(self._on_event)

    @Slot()
    def start(self) -> None:
        """Check the loaded pair now, with what drafts for its messages."""
        if self.status.state is not ParityState.IDLE:
            return
        self._began = None
        self._request = self._pair.client.check(ParityRequest(self._preferences().drafting))
        self._bridge.watch(self._request)
        self._set(ParityStatus(ParityState.RUNNING, self.status.result, Progress(0.0, "")))

    @Slot()
    def stop(self) -> None:
        """End the check; what is done of it is shown."""
        if self._request is not None and not self.status.stopping:
            self._pair.client.cancel(self._request)
            self._set(replace(self.status, stopping=True))

    def _set(self, status: ParityStatus) -> None:
        self.status = status
        self.changed.emit()

    @Slot()
    def _pair_changed(self) -> None:
        """The stored result of a pair that was just loaded; a check of the former one is over."""
        status = self._pair.status
        files = None
        if status.state is PairState.READY and status.loaded is not None:
            loaded = status.loaded
            files = (loaded.target.path, None if loaded.draft is None else loaded.draft.path)
        if files == self._files:
            return
        if self._request is not None:
            self._pair.client.cancel(self._request)
            self._end_request()
        self._files = files
        self._set(ParityStatus(ParityState.UNAVAILABLE))
        if files is None:
            return
        target, draft = files

        def read(result: ParityResult | None) -> None:
            if files == self._files and self.status.state is ParityState.UNAVAILABLE:
                self._set(ParityStatus(ParityState.IDLE, result))

        kept = self._kept
        self._worker.run(lambda: None if kept is None else kept.parity(target, draft), read)

    @Slot(object)
    def _on_event(self, event: EngineEvent) -> None:
        if self._request is None or event.request != self._request:
            return
        match event.body:
            case Progress() as progress:
                self._set(replace(self.status, progress=progress, seconds_left=self._seconds_left(progress.fraction)))
            case ParityResult() as result:
                self._end_request()
                # Stopped before the first prompt was done, it says nothing that was not known before.
                self._set(ParityStatus(ParityState.IDLE, result if result.cases else self.status.result))
            case Failed() | Died() as failure:
                self._end_request()
                words = " ".join(part for part in (failure.what, failure.why) if part)
                self._set(ParityStatus(ParityState.IDLE, self.status.result, problem=words))
            case _:
                pass

    def _seconds_left(self, fraction: float) -> float | None:
        """By the pace since the first prompt was done; before it, other things were measured."""
        now = self._clock()
        if self._began is None:
            if fraction > 0.0:
                self._began = (now, fraction)
            return None
        since, begun = self._began
        return None if fraction <= begun else (now - since) / (fraction - begun) * (1.0 - fraction)

    def _end_request(self) -> None:
        if self._request is not None:
            self._bridge.forget(self._request)
        self._request = None
