"""One comparison at a time, carried out on a thread of its own; what happens there arrives here, gathered."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from forespeak.compare.control import Control
from forespeak.compare.lanes import Plan
from forespeak.compare.plan import Place, Prompt
from forespeak.compare.runner import (
    Happening,
    Loading,
    PairFailed,
    Paused,
    Ran,
    Run,
    Running,
    Stepped,
    WentOn,
)
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Step
from forespeak.ui.compare_reading import kind_words
from forespeak.ui.compare_values import HistoryRow, ResultValues

FRAME_MS = 33
Listen = Callable[[Happening], None]


class Measuring(Protocol):
    """Carries comparisons out and keeps them. Blocks: not for the UI thread. Raises UserFacingError."""

    def measure(self, plan: Plan, name: str, listen: Listen, control: Control) -> str:
        """Returns the id under which what was measured is kept; an empty one if nothing was."""
        ...

    def go_on(self, comparison: str, listen: Listen, control: Control) -> str:
        """Measure what is missing of one that was ended."""
        ...


class KeptComparison(Protocol):
    """One, read."""

    @property
    def plan(self) -> Plan: ...
    @property
    def values(self) -> ResultValues: ...


class Removed(Protocol):
    """What can be brought back."""

    def undo(self) -> None: ...


class Desk(Measuring, Protocol):
    """What is kept, too. All of it blocks and raises UserFacingError."""

    def rows(self, query: str) -> tuple[HistoryRow, ...]: ...
    def open(self, comparison: str) -> KeptComparison: ...
    def rename(self, comparison: str, name: str) -> None: ...
    def remove(self, comparisons: tuple[str, ...]) -> Removed: ...
    def read_prompts(self, path: Path) -> Sequence[Prompt]: ...
    def export(self, comparison: str, kind: str, path: Path, private: bool, stopped: Callable[[], bool]) -> None: ...


class CompareState(Enum):
    IDLE = "idle"
    RUNNING = "running"
    PAUSING = "pausing"
    """The run that goes on is finished first."""
    PAUSED = "paused"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class CompareStatus:
    """`doing` in words; `problem`: the newest that failed meanwhile and is recorded."""

    state: CompareState = CompareState.IDLE
    lanes: tuple[str, ...] = ()
    doing: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    problem: str = ""


@dataclass(slots=True)
class _Live:
    """The run that goes on, as far as its steps have come."""

    lane: int
    tokens: int = 0
    seconds: float = 0.0
    started: bool = False

    def add(self, step: Step) -> None:
        if self.started:
            self.tokens += len(step.emitted)
            self.seconds += step.draft_seconds + step.target_seconds
        self.started = True

    @property
    def rate(self) -> float | None:
        """Decoded tokens per second; the first step belongs to the prompt."""
        return self.tokens / self.seconds if self.seconds > 0 else None


class CompareController(QObject):
    """`changed` after each change of `status`. `before` runs on the thread, before the first run."""

    changed = Signal()
    runBegan = Signal(int)
    """Lane number, the plain one is 0"""
    stepsCame = Signal(int, object, object)
    """Lane number, tuple of Steps, tokens per second or None"""
    runEnded = Signal(int, object)
    """Lane number, tokens per second or None"""
    finished = Signal(str)
    """The id of what was kept; empty if nothing was measured"""
    failed = Signal(object)
    """UserFacingError: nothing was kept"""
    _woken = Signal()

    def __init__(
        self,
        measuring: Measuring,
        before: Callable[[], None] = lambda: None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._measuring = measuring
        self._before = before
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._awake = False
        self._control = Control()
        self._chatting = False
        self._thread: threading.Thread | None = None
        self._lanes: dict[Place, int] = {}
        self._live: _Live | None = None
        self._gathered: list[Step] = []
        self.status = CompareStatus()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._flush)
        self._woken.connect(self._timer.start, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        return self.status.state is not CompareState.IDLE

    # -- what is asked of it

    def start(self, plan: Plan, name: str) -> None:
        """Nothing happens while another one runs."""
        if not self.busy:
            self._begin(plan, lambda listen, control: self._measuring.measure(plan, name, listen, control))

    def resume(self, comparison: str, plan: Plan) -> None:
        """Go on with one that was ended."""
        if not self.busy:
            self._begin(plan, lambda listen, control: self._measuring.go_on(comparison, listen, control))

    @Slot()
    def pause(self) -> None:
        if self.status.state is CompareState.RUNNING:
            self._control.pause()
            self._set(replace(self.status, state=CompareState.PAUSING))

    @Slot()
    def go_on(self) -> None:
        if self.status.state in {CompareState.PAUSING, CompareState.PAUSED}:
            self._control.go_on()
            self._set(replace(self.status, state=CompareState.RUNNING))

    @Slot()
    def stop(self) -> None:
        """End it; what is done is kept."""
        if self.busy:
            self._control.stop()
            self._set(replace(self.status, state=CompareState.STOPPING))

    def set_chatting(self, on: bool) -> None:
        """A chat is answered meanwhile: the runs that it meets say so."""
        self._chatting = on
        self._control.set_chatting(on)

    def close(self, seconds: float = 1.5) -> None:
        """The window closes: what is done is kept."""
        self._control.stop()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(seconds)
        self._timer.stop()
        with self._lock:
            self._waiting.clear()
            self._awake = True

    # -- the thread

    def _begin(self, plan: Plan, work: Callable[[Listen, Control], str]) -> None:
        lanes = plan.all_lanes
        self._lanes = {place: lanes.index(lane) for place, lane in plan.lanes_by_place.items()}
        self._control = control = Control()
        control.set_chatting(self._chatting)
        self._live = None
        before = self._before
        self._set(CompareStatus(CompareState.RUNNING, tuple(lane.name for lane in lanes)))

        def run() -> None:
            try:
                before()
                kept = work(self._listen, control)
            except UserFacingError as error:
                self._post(lambda error=error: self._ended(error=error))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001 - carried to the UI thread, whatever it is
                self._post(lambda error=error: self._ended(fault=error))  # type: ignore[misc]
            else:
                self._post(lambda: self._ended(kept=kept))

        self._thread = threading.Thread(target=run, name="comparison", daemon=True)
        self._thread.start()

    def _listen(self, happening: Happening) -> None:
        self._post(lambda: self._happened(happening))

    def _post(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(call)
            wake, self._awake = not self._awake, True
        if wake:
            self._woken.emit()

    # -- the UI thread

    @Slot()
    def _flush(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, deque()
            self._awake = False
        for call in calls:
            call()
        self._give_steps()

    def _happened(self, happening: Happening) -> None:
        status = self.status
        if isinstance(happening, Stepped):
            self._step(happening)
            return
        self._give_steps()
        match happening:
            case Loading(_, progress):
                self._set(replace(status, doing=progress.doing or self.tr("Loading the models")))
            case PairFailed(_, problem):
                self._set(replace(status, problem=problem))
            case Running():
                self._run_began(happening)
            case Ran(run):
                self._run_ended(run)
            case Paused() if status.state is CompareState.PAUSING:
                self._set(replace(status, state=CompareState.PAUSED))
            case WentOn() if status.state is CompareState.PAUSED:
                self._set(replace(status, state=CompareState.RUNNING))
            case _:
                pass

    def _run_began(self, running: Running) -> None:
        task = running.task
        lane = self._lanes[task.where]
        self._live = _Live(lane)
        self.runBegan.emit(lane)
        if task.repetition is None:
            doing = self.tr("Warming up: {0}").format(self.status.lanes[lane])
        else:
            doing = self.tr("{0}: {1}, {2}").format(
                self.status.lanes[lane], kind_words(task.prompt.category), task.prompt.name
            )
        self._set(
            replace(self.status, doing=doing, done=running.done, total=running.total, seconds_left=running.seconds_left)
        )

    def _step(self, stepped: Stepped) -> None:
        if self._live is not None:
            self._live.add(stepped.step)
            self._gathered.append(stepped.step)

    def _give_steps(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered and self._live is not None:
            self.stepsCame.emit(self._live.lane, tuple(gathered), self._live.rate)

    def _run_ended(self, run: Run) -> None:
        self.runEnded.emit(self._lanes[run.task.where], run.rate)
        status = self.status
        if run.task.repetition is not None:
            # The next run may be long in coming: a pause begins here.
            self._set(replace(status, done=min(status.done + 1, status.total)))
        if run.failure is not None:
            words = self.tr("A run failed, which is recorded: {0}").format(run.failure)
            self._set(replace(self.status, problem=words))

    def _ended(
        self, kept: str | None = None, error: UserFacingError | None = None, fault: Exception | None = None
    ) -> None:
        self._give_steps()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self._live = None
        self._set(CompareStatus())
        if kept is not None:
            self.finished.emit(kept)
        elif error is not None:
            self.failed.emit(error)
        elif fault is not None:
            raise fault

    def _set(self, status: CompareStatus) -> None:
        self.status = status
        self.changed.emit()
