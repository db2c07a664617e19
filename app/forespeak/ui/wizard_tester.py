"""Runs the wizard's tests of a pair in an engine of their own, so that the chat's pair stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import EngineClient, EngineEvent, LoadRequest, Progress
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.errors import UserFacingError
from forespeak.pairing.quick_test import (
    Done,
    Happening,
    Loading,
    PromptResult,
    PromptTested,
    QuickResult,
    QuickTest,
    Writing,
    run,
)
from forespeak.pairing.quick_test import Ready as PairReady
from forespeak.ui.background import Worker

CLOSE_SECONDS = 1.2
Connect = Callable[[Callable[[EngineEvent], None]], EngineClient]


class Room(Enum):
    """Whether memory holds a pair for a test."""

    BESIDE = "beside what the chat has loaded"
    ALONE = "once the chat's pair is unloaded"
    NONE = "not at all"


@dataclass(frozen=True, slots=True)
class RoomFound:
    room: Room
    sentence: str = ""


class ChatWork(Enum):
    """What the chat does that a test would disturb."""

    REPLY = "a reply is being written"
    LOADING = "its model is being loaded, or unpacked"
    CHECK = "the words of its pair are being checked"


class Surroundings:
    """What a test asks of the chat. `room` and `unload` are called off the UI thread."""

    def room(self, request: LoadRequest) -> RoomFound:
        return RoomFound(Room.BESIDE)

    def unload(self) -> None:
        """Give back what the chat's pair takes; its next message loads it again."""

    @property
    def chat_work(self) -> ChatWork | None:
        return None


class TestPhase(Enum):
    __test__ = False  # pytest would take it for tests

    IDLE = "idle"
    WEIGHING = "weighing"
    """Whether memory will do is being looked at."""
    ASKING = "asking"
    """Somebody has to say whether it may go on (`room`)."""
    LOADING = "loading"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TestStatus:
    """`prompts` are those that are done, `writing` is the reply that is being written."""

    __test__ = False

    phase: TestPhase = TestPhase.IDLE
    test: QuickTest | None = None
    room: RoomFound | None = None
    progress: Progress | None = None
    writing: Writing | None = None
    prompts: tuple[PromptResult, ...] = ()
    result: QuickResult | None = None
    error: UserFacingError | None = None
    stopping: bool = False

    @property
    def running(self) -> bool:
        return self.phase in {TestPhase.WEIGHING, TestPhase.LOADING, TestPhase.RUNNING}


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """The check that the words stay the same. `result` of the pair at hand.

    `room`: somebody has to say whether it may go on; nothing runs meanwhile.
    """

    running: bool = False
    stopping: bool = False
    progress: Progress | None = None
    result: ParityResult | None = None
    error: UserFacingError | None = None
    room: RoomFound | None = None


class Tester(QObject):
    changed = Signal()
    """Of `status`"""
    finished = Signal(object)
    """QuickResult of a test that was not stopped"""
    checkChanged = Signal()
    """Of `check`"""
    _happened = Signal(int, object)

    def __init__(self, connect: Connect, surroundings: Surroundings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._connect = connect
        self._around = surroundings
        self._worker = Worker("pair-test", self)
        self._stop = threading.Event()
        self._number = 0
        """Of the newest job: what an older one tells no longer counts."""
        self._engine: _Checking | None = None
        self._closed = False
        self._unchecked: QuickTest | None = None
        """Whose check was asked for last"""
        self.status = TestStatus()
        self.check = CheckStatus()
        self._happened.connect(self._on_happening)

    # -- the test

    def start(self, test: QuickTest) -> None:
        """Look whether memory holds the pair, then test it; or ask first."""
        if self.status.running or self.check.running:
            return
        self._forget_question()
        if (busy := self._chat_first()) is not None:
            self._set(TestStatus(TestPhase.FAILED, test, error=busy))
            return
        number = self._begin()
        self._set(TestStatus(TestPhase.WEIGHING, test))

        def weighed(found: RoomFound) -> None:
            if number != self._number:
                return
            if found.room is Room.BESIDE:
                self._run(number, test)
            else:
                self._set(TestStatus(TestPhase.ASKING, test, found))

        around = self._around
        self._worker.run(lambda: around.room(test.load_request), weighed, self._failed(number))

    def allow(self) -> None:
        """Go on with what was asked about."""
        status = self.status
        if status.phase is not TestPhase.ASKING or status.test is None or self.check.running:
            return
        if (busy := self._chat_first()) is not None:
            # Somebody has written since: to unload the pair would cost the reply.
            self._set(TestStatus(TestPhase.FAILED, status.test, error=busy))
            return
        self._worker.run(self._around.unload)
        self._run(self._begin(), status.test)

    def stop(self) -> None:
        """End the test; what is done of it is shown."""
        if self.status.phase in {TestPhase.ASKING, TestPhase.WEIGHING}:
            self._number += 1
            self._set(TestStatus())
        elif self.status.running and not self.status.stopping:
            self._stop.set()
            self._set(replace(self.status, stopping=True))

    def reset(self) -> None:
        """Forget the last test: it was of another pair."""
        self._stop.set()
        self._number += 1
        self._set(TestStatus())
        if self.check != CheckStatus():
            self._set_check(CheckStatus())

    @Slot()
    def chat_became_busy(self) -> None:
        """A message does not wait for a test, which would measure both."""
        if (busy := self._chat_first()) is not None:
            if self.status.running:
                test = self.status.test
                self._stop.set()
                self._number += 1
                self._set(TestStatus(TestPhase.FAILED, test, error=busy))
            elif self.check.running:
                self.stop_check()

    def _run(self, number: int, test: QuickTest) -> None:
        self._set(TestStatus(TestPhase.LOADING, test, progress=Progress(0.0, "")))
        stop = self._stop

        def job() -> None:
            def tell(what: Happening) -> None:
                self._happened.emit(number, what)

            with self._opened() as engine:
                for what in run(test, engine, stop.is_set, tell):
                    tell(what)

        self._worker.run(job, None, self._failed(number))

    @Slot(int, object)
    def _on_happening(self, number: int, what: Happening | Progress) -> None:
        if number != self._number or self._closed:
            return
        status = self.status
        match what:
            case Progress():
                self._set_check(replace(self.check, progress=what))
            case Loading(progress):
                self._set(replace(status, phase=TestPhase.LOADING, progress=progress))
            case PairReady():
                self._set(replace(status, phase=TestPhase.RUNNING, progress=None))
            case Writing():
                self._set(replace(status, phase=TestPhase.RUNNING, writing=what))
            case PromptTested(result):
                self._set(replace(status, prompts=(*status.prompts, result)))
            case Done(result):
                if result.stopped and not result.prompts:
                    self._set(TestStatus())
                    return
                self._set(replace(status, phase=TestPhase.DONE, writing=None, result=result, stopping=False))
                if result.prompts:
                    self.finished.emit(result)

    def _failed(self, number: int) -> Callable[[Exception], None]:
        def failed(error: Exception) -> None:
            if not isinstance(error, UserFacingError):
                if number == self._number:
                    self._set(TestStatus(TestPhase.IDLE))
                raise error
            if number == self._number:
                self._set(TestStatus(TestPhase.FAILED, self.status.test, error=error))

        return failed

    # -- the check of the words

    def start_check(self, test: QuickTest) -> None:
        """Whether the pair writes the same words with drafts and without; or ask first. Takes a minute or more."""
        if self.status.running or self.check.running:
            return
        self._forget_question()
        if (busy := self._chat_first()) is not None:
            self._set_check(CheckStatus(result=self.check.result, error=busy))
            return
        number, stop, around = self._begin(), self._stop, self._around
        self._unchecked = test
        self._set_check(CheckStatus(True, progress=Progress(0.0, ""), result=self.check.result))

        def weighed(found: RoomFound) -> None:
            if number != self._number:
                return
            if stop.is_set():
                self._set_check(CheckStatus(result=self.check.result))
            elif found.room is Room.BESIDE:
                self._run_check(number, test)
            else:
                self._set_check(CheckStatus(result=self.check.result, room=found))

        self._worker.run(lambda: around.room(test.load_request), weighed, self._check_failed(number))

    def allow_check(self) -> None:
        """Go on with the check that was asked about."""
        test = self._unchecked
        if self.check.room is None or test is None or self.status.running:
            return
        if (busy := self._chat_first()) is not None:
            self._set_check(CheckStatus(result=self.check.result, error=busy))
            return
        self._worker.run(self._around.unload)
        self._set_check(CheckStatus(True, progress=Progress(0.0, ""), result=self.check.result))
        self._run_check(self._begin(), test)

    def _run_check(self, number: int, test: QuickTest) -> None:
        stop = self._stop

        def job() -> ParityResult | None:
            with self._opened() as engine:
                return engine.checked(test, lambda each: self._progressed(number, each), stop.is_set)

        def done(result: ParityResult | None) -> None:
            if number == self._number:
                known = result if result is not None and result.cases else self.check.result
                self._set_check(CheckStatus(result=known))

        self._worker.run(job, done, self._check_failed(number))

    def _check_failed(self, number: int) -> Callable[[Exception], None]:
        def failed(error: Exception) -> None:
            if number == self._number:
                known = error if isinstance(error, UserFacingError) else None
                self._set_check(CheckStatus(result=self.check.result, error=known))
            if not isinstance(error, UserFacingError):
                raise error

        return failed

    def stop_check(self) -> None:
        if self.check.room is not None:
            self._set_check(CheckStatus(result=self.check.result))
        elif self.check.running and not self.check.stopping:
            self._stop.set()
            self._set_check(replace(self.check, stopping=True))

    def know(self, result: ParityResult | None) -> None:
        """What was found of the pair at hand before."""
        if not self.check.running and self.check.result is None and result is not None:
            self._set_check(replace(self.check, result=result))

    # -- inside

    def close(self) -> None:
        """End what runs; takes no longer than the window may."""
        if self._closed:
            return
        self._closed = True
        self._stop.set()
        engine = self._engine
        if engine is not None and not self._worker.idle:
            ending = threading.Thread(target=engine.close, name="pair-test-end", daemon=True)
            ending.start()
            ending.join(CLOSE_SECONDS)
        self._worker.close(0.3)

    @contextmanager
    def _opened(self) -> Iterator[_Checking]:
        """An engine process that ends with the job, so that its memory comes back."""
        self._engine = engine = _Checking(self._connect)
        try:
            yield engine
        finally:
            self._engine = None
            engine.close()

    def _forget_question(self) -> None:
        """Whoever asks for something else does not want what was asked about."""
        if self.status.phase is TestPhase.ASKING:
            self._set(TestStatus())
        if self.check.room is not None:
            self._set_check(CheckStatus(result=self.check.result))

    def _begin(self) -> int:
        self._stop = threading.Event()
        self._number += 1
        return self._number

    def _progressed(self, number: int, progress: Progress) -> None:
        # On the engine's thread.
        self._happened.emit(number, progress)

    def _set(self, status: TestStatus) -> None:
        self.status = status
        self.changed.emit()

    def _set_check(self, check: CheckStatus) -> None:
        self.check = check
        self.checkChanged.emit()

    def _chat_first(self) -> UserFacingError | None:
        """Why nothing can be tested now, if the chat is at work."""
        work = self._around.chat_work
        if work is None:
            return None
        what, then = {
            ChatWork.REPLY: (
                self.tr("A reply is being written in the chat."),
                self.tr("Try again when it has ended."),
            ),
            ChatWork.LOADING: (
                self.tr("The chat’s model is being loaded."),
                self.tr("Try again when it is ready."),
            ),
            ChatWork.CHECK: (
                self.tr("The words of the chat’s pair are being checked."),
                self.tr("Try again when that has ended."),
            ),
        }[work]
        return UserFacingError(what, self.tr("A test beside it would slow it down, and measure neither."), then)


class _Checking(WaitingEngine):
    """With the check of the words, which comparisons do without."""

    def checked(
        self, test: QuickTest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> ParityResult | None:
        if self.load(test.load_request, progress, cancelled) is None:
            return None
        for body in self._bodies(self._client.check(ParityRequest(test.sources)), cancelled):
            if isinstance(body, Progress):
                progress(body)
            elif isinstance(body, ParityResult):
                return body
        return None
