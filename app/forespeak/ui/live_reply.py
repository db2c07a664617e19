"""Replies on their way: what has come of them, and saving it, off the UI thread, at least once a second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.chats.records import MessageState
from forespeak.engines.engine import GenerationRequest
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import FinishReason, GenerationStats, SpeculationState, Step, StepCounter
from forespeak.ui.background import Worker

SAVE_MS = 700
RETRY_SECONDS = 3.0
RATE_SECONDS = 1.5
"""How far back the live rate looks."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ended. `details` fold out beside the note."""

    state: MessageState
    note: str = ""
    details: str = ""
    stats: GenerationStats | None = None
    reason: FinishReason | None = None


@dataclass(slots=True, eq=False)
class LiveReply:
    """A reply that the engine writes, or wrote and the disk has not taken yet. `number` is the engine's."""

    chat: int
    message: int
    request: GenerationRequest
    plain_key: tuple[object, ...] = ()
    """What a speed without speculation must share with this reply to be compared with it."""
    number: int | None = None
    steps: list[Step] = field(default_factory=list)
    counter: StepCounter = field(default_factory=StepCounter)
    speculation: SpeculationState | None = None
    prompt: tuple[int, int] | None = None
    sent_at: float | None = None
    first_step_at: float | None = None
    ending: Ending | None = None
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, steps: Sequence[Step]) -> None:
        now = time.perf_counter()
        if self.first_step_at is None:
            self.first_step_at = now
        self.steps.extend(steps)
        for step in steps:
            self.counter.add(step)
        self._recent.append((now, self.counter.generated))
        while len(self._recent) > 2 and now - self._recent[1][0] > RATE_SECONDS:
            self._recent.popleft()

    @property
    def text(self) -> str:
        return "".join(token.text for token in chain.from_iterable(step.emitted for step in self.steps))

    @property
    def seconds_to_first_token(self) -> float | None:
        """From sending the request to the engine; None before there is one."""
        if self.sent_at is None or self.first_step_at is None:
            return None
        return self.first_step_at - self.sent_at

    @property
    def seconds(self) -> float:
        """Since the first token appeared."""
        return 0.0 if self.first_step_at is None else time.perf_counter() - self.first_step_at

    @property
    def rate(self) -> float | None:
        """Tokens per second over the last moments; None before there are two."""
        if len(self._recent) < 2:
            return None
        (then, before), (now, after) = self._recent[0], self._recent[-1]
        return (after - before) / (now - then) if now > then else None


class ReplyStore(Protocol):
    """What saving a reply takes of ChatStore."""

    def append_steps(self, message_id: int, steps: Sequence[Step]) -> None: ...

    def finish_reply(
        self,
        message_id: int,
        state: MessageState,
        *,
        note: str = "",
        stats: GenerationStats | None = None,
        finish_reason: FinishReason | None = None,
    ) -> object: ...


@dataclass(slots=True)
class _Saving:
    reply: LiveReply
    saved: int = 0
    busy: bool = False
    retry_at: float = 0.0


class ReplySaver(QObject):
    """Appends what has come to the store and ends the reply there. What the disk refuses is kept and tried again."""

    stored = Signal(object)
    """A LiveReply that is over and wholly on disk."""
    failed = Signal(object)
    """UserFacingError: something is only in the window as yet."""
    recovered = Signal()
    """Everything that had been refused is on disk now."""

    def __init__(self, store: ReplyStore, worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._worker = worker
        self._savings: list[_Saving] = []
        self._in_trouble = False
        self._timer = QTimer(self)
        self._timer.setInterval(SAVE_MS)
        self._timer.timeout.connect(self.save_all)

    def track(self, reply: LiveReply) -> None:
        self._savings.append(_Saving(reply))
        self._timer.start()

    def end(self, reply: LiveReply) -> None:
        """The reply has its ending: save the rest of it now."""
        for saving in self._savings:
            if saving.reply is reply:
                self._save(saving)

    @property
    def pending(self) -> bool:
        return bool(self._savings)

    @Slot()
    def save_all(self) -> None:
        now = time.monotonic()
        for saving in list(self._savings):
            if now >= saving.retry_at:
                self._save(saving)

    @Slot()
    def retry(self) -> None:
        for saving in list(self._savings):
            self._save(saving)

    def save_last(self) -> None:
        """Hand everything to the worker without waiting for answers: the window closes."""
        self._timer.stop()
        for saving in self._savings:
            self._worker.run(self._job(saving, final=True))

    def _save(self, saving: _Saving) -> None:
        # One at a time for each reply: a refused part must not be overtaken by the next.
        if saving.busy:
            return
        reply = saving.reply
        if len(reply.steps) == saving.saved and reply.ending is None:
            return
        saving.busy = True
        upto, ending = len(reply.steps), reply.ending
        self._worker.run(
            self._job(saving),
            lambda _: self._saved(saving, upto, ending),
            lambda error: self._refused(saving, error),
        )

    def _job(self, saving: _Saving, final: bool = False) -> _Job:
        return _Job(self._store, saving, saving.reply.steps[saving.saved :], saving.reply.ending, final)

    def _saved(self, saving: _Saving, upto: int, ending: Ending | None) -> None:
        saving.busy = False
        saving.retry_at = 0.0
        if ending is not None:
            self._savings.remove(saving)
            if not self._savings:
                self._timer.stop()
            self.stored.emit(saving.reply)
        if self._in_trouble and not any(other.retry_at for other in self._savings):
            self._in_trouble = False
            self.recovered.emit()
        if saving in self._savings and saving.reply.ending is not None:
            self._save(saving)

    def _refused(self, saving: _Saving, error: Exception) -> None:
        saving.busy = False
        saving.retry_at = time.monotonic() + RETRY_SECONDS
        if not isinstance(error, UserFacingError):
            raise error
        self._in_trouble = True
        self.failed.emit(error)


@dataclass(slots=True)
class _Job:
    """Runs on the worker; `saved` grows there, so that a later job never writes a part twice."""

    store: ReplyStore
    saving: _Saving
    steps: list[Step]
    ending: Ending | None
    final: bool

    def __call__(self) -> None:
        if self.final:
            # An earlier job may have been waiting when this one was made.
            self.steps = self.saving.reply.steps[self.saving.saved :]
        if self.steps:
            self.store.append_steps(self.saving.reply.message, self.steps)
            self.saving.saved += len(self.steps)
        if self.ending is not None:
            end = self.ending
            self.store.finish_reply(
                self.saving.reply.message, end.state, note=end.note, stats=end.stats, finish_reason=end.reason
            )
