"""The engine process: native code aborts, so it lives in a child. The window survives the child's death.

Requests go through a pipe to the child, whose main thread only reads them, so that a cancel arrives while its worker
thread generates. Events come back through the same pipe; a reader thread here hands them to the listener. The child
ends when the pipe closes, so a killed parent leaves nothing behind.

Events travel in bundles: both processes' wake-ups for each single step took one to two per cent of a small model's
speed on two cores. The bundles are the pace of the window, too, which shows each of them when it comes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from forespeak.engines import huge_pages
from forespeak.engines.bundles import bundle_seconds, register_compact_pickles
from forespeak.engines.by_format import EngineByFormat
from forespeak.engines.engine import (
    Body,
    ConversionRequest,
    Converted,
    Died,
    Engine,
    EngineEvent,
    Failed,
    GenerationRequest,
    Loaded,
    LoadRequest,
    PairCheck,
)
from forespeak.engines.pair_knowledge import ParityCheck, ReproducibleEngine
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import Step

Request = LoadRequest | GenerationRequest | ConversionRequest | ParityRequest
Listener = Callable[[EngineEvent], None]
EngineFactory = Callable[[PairCheck], Engine]

_LOG_TAIL_BYTES = 8192
_EXIT_SECONDS = 3.0
_MAX_LOG_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class _Job:
    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class _Cancel:
    number: int


def is_last(body: Body) -> bool:
    """Whether an event ends its request."""
    return isinstance(body, Loaded | Converted | Finished | ParityResult | Failed | Died)


class EngineProcess:
    """An EngineClient whose engine is a child process, started with the first request.

    `listener` is called on threads of this object's own, one event at a time; it should only hand them on. After a
    death the next request starts a new child, and a generation or a check loads the last pair again first: under a
    number of its own, which the listener sees Progress and Loaded for. Loading another target starts a new child too:
    the old one's memory really comes back.
    """

    def __init__(
        self,
        listener: Listener,
        *,
        log_path: Path,
        pair_check: PairCheck,
        engine: EngineFactory = EngineByFormat,
        parity_check: ParityCheck | None = None,
    ) -> None:
        self._listener = listener
        self._log_path = log_path
        self._pair_check = pair_check
        self._engine = engine
        self._parity_check = parity_check
        self._lock = threading.RLock()
        self._telling = threading.Lock()
        self._child: _Child | None = None
        self._endings: list[threading.Thread] = []
        """What ends children that are no longer wanted."""
        self._numbers = iter(range(1, sys.maxsize))
        self._last_load: LoadRequest | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        with self._lock:
            return self._child.process.pid if self._child is not None and self._child.alive else None

    def load(self, request: LoadRequest) -> int:
        with self._lock:
            if self._last_load is not None and self._last_load.target != request.target:
                self._let_go()
            self._last_load = request
            return self._send(request, needs_pair=False)

    def generate(self, request: GenerationRequest) -> int:
        with self._lock:
            return self._send(request, needs_pair=True)

    def convert(self, request: ConversionRequest) -> int:
        with self._lock:
            return self._send(request, needs_pair=False)

    def check(self, request: ParityRequest) -> int:
        with self._lock:
            return self._send(request, needs_pair=True)

    def cancel(self, request: int) -> None:
        with self._lock:
            if self._child is not None:
                self._child.cancel(request)

    def close(self) -> None:
        """End the child and wait for it. What it was doing ends with Failed."""
        with self._lock:
            self._let_go()
            endings, self._endings = self._endings, []
        for ending in endings:
            ending.join()

    def _let_go(self) -> None:
        """End the child, which takes up to a quarter of a second, without waiting: the caller has a window to paint.

        Its memory is back before the next child has imported its engine.
        """
        child, self._child = self._child, None
        self._endings = [ending for ending in self._endings if ending.is_alive()]
        if child is not None:
            self._endings.append(threading.Thread(target=child.close, name="engine-end", daemon=True))
            self._endings[-1].start()

    def _send(self, request: Request, *, needs_pair: bool) -> int:
        job = _Job(next(self._numbers), request)
        child = self._child
        if child is None or not child.take(self._with_pair(job, needs_pair and not child.knows_pair)):
            jobs = self._with_pair(job, needs_pair)
            self._child = _Child(self._tell, self._log_path, self._pair_check, self._engine, self._parity_check, jobs)
        return job.number

    def _with_pair(self, job: _Job, needs_pair: bool) -> list[_Job]:
        """The job, behind one that loads the last pair if it needs that."""
        if needs_pair and self._last_load is not None:
            return [_Job(next(self._numbers), self._last_load), job]
        return [job]

    def _tell(self, event: EngineEvent) -> None:
        # A child that is let go may still tell how its requests ended while the next one tells of its own.
        with self._telling:
            self._listener(event)


class _Child:
    """One child process, its pipe and the thread that reads it: which sees to it that each job ends, and once.

    `jobs` are its first ones.
    """

    def __init__(
        self,
        listener: Listener,
        log_path: Path,
        pair_check: PairCheck,
        engine: EngineFactory,
        parity_check: ParityCheck | None,
        jobs: Sequence[_Job],
    ) -> None:
        self._listener = listener
        self._log_path = log_path
        self._open = [job.number for job in jobs]
        """Numbers of the requests that have not ended, in order."""
        self.knows_pair = _holds_load(jobs)
        """Whether it was told what to load."""
        self._lock = threading.Lock()
        self._closing = False
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=serve,
            args=(theirs, log_path, pair_check, engine, parity_check),
            name="forespeak-engine",
            daemon=True,
        )
        with huge_pages.for_children():
            self.process.start()
        theirs.close()
        self.alive = True
        # Nobody reads yet, so a child that dies this early ends all of them, wherever it broke off.
        with contextlib.suppress(OSError):
            for job in jobs:
                self._pipe.send(job)
        self._reader = threading.Thread(target=self._read, name="engine-events", daemon=True)
        self._reader.start()

    def take(self, jobs: Sequence[_Job]) -> bool:
        """False if the child has died, and nobody tells how the last of these jobs ended."""
        numbers = [job.number for job in jobs]
        with self._lock:
            if not self.alive:
                return False
            self._open += numbers
        try:
            for job in jobs:
                self._pipe.send(job)
        except OSError:
            with self._lock:
                if numbers[-1] in self._open:
                    self._open = [number for number in self._open if number not in numbers]
                    return False
                # The reader has noticed the death first, and tells it.
        self.knows_pair = self.knows_pair or _holds_load(jobs)
        return True

    def cancel(self, number: int) -> None:
        # What a dead child was doing is ended by the reader, cancelled or not.
        with contextlib.suppress(OSError):
            self._pipe.send(_Cancel(number))

    def close(self) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            # The child leaves as soon as its end of the pipe is at its end, also out of native code.
            self._pipe.send(None)
        self.process.join(_EXIT_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        if threading.current_thread() is not self._reader:
            self._reader.join()
        self._pipe.close()
        # Starting another child looks after ended ones, and may be about to note that this one is: no harm is done.
        with contextlib.suppress(ValueError):
            self.process.close()

    def _read(self) -> None:
        while True:
            try:
                events: list[EngineEvent] = self._pipe.recv()
            except (EOFError, OSError):
                break
            for event in events:
                if is_last(event.body):
                    with self._lock:
                        if event.request not in self._open:
                            continue  # It has ended: what failed behind its end is in the log.
                        self._open.remove(event.request)
                self._listener(event)
        with self._lock:
            self.alive = False
            left, self._open = self._open, []
        if not left and self._closing:
            return
        body: Body
        if self._closing:
            body = Failed("The engine was closed.", "Another model was chosen, or the app was closing.")
        else:
            self.process.join(_EXIT_SECONDS)
            body = _obituary(self.process.exitcode, _tail(self._log_path))
        for number in left or [0]:
            self._listener(EngineEvent(number, body))


def _holds_load(jobs: Sequence[_Job]) -> bool:
    return any(isinstance(job.request, LoadRequest) for job in jobs)


def _obituary(exit_code: int | None, log: str) -> Died:
    what = "The engine stopped unexpectedly."
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else f"signal {-exit_code}"
        why = f"Its process was ended by {name}."
        if name == "SIGKILL":
            why += " The system does this when memory runs out."
    else:
        why = f"Its process ended with exit code {exit_code}."
    return Died(what, why, "The next message starts it again. If it keeps happening, try a shorter context.", log)


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


# ---- the child's side ----


def serve(
    pipe: Connection,
    log_path: Path,
    pair_check: PairCheck,
    make_engine: EngineFactory,
    parity_check: ParityCheck | None = None,
) -> None:
    """The child's whole life: read requests, work on them one after the other, leave when the pipe closes."""
    _redirect_output(log_path)
    register_compact_pickles()
    # Ctrl+C in a terminal goes to the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = _Worker(pipe, pair_check, make_engine, parity_check)
    threading.Thread(target=worker.run, name="engine-worker", daemon=True).start()
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            message = None
        if message is None:
            # The worker may be deep in native code; nothing it holds outlives the process.
            os._exit(0)
        elif isinstance(message, _Cancel):
            worker.cancel(message.number)
        else:
            worker.jobs.put(message)


class _Worker:
    """Serves jobs one by one on a thread of its own."""

    def __init__(
        self, pipe: Connection, pair_check: PairCheck, make_engine: EngineFactory, parity_check: ParityCheck | None
    ) -> None:
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._outbox = _Outbox(pipe)
        self._pair_check = pair_check
        self._make_engine = make_engine
        self._parity_check = parity_check
        self._cancelled: set[int] = set()

    def cancel(self, number: int) -> None:
        self._cancelled.add(number)

    def run(self) -> None:
        engine: Engine | None = None
        while True:
            job = self.jobs.get()
            try:
                if engine is None:
                    engine = self._make_engine(self._pair_check)
                for body in self._answers(engine, job):
                    self._outbox.put(EngineEvent(job.number, body))
            except UserFacingError as error:
                self._fail(job, Failed(error.what, error.why, error.remedy))
            except BaseException as error:  # noqa: BLE001 -- a bug of ours must not end the process silently
                details = traceback.format_exc()
                sys.stderr.write(details)
                self._fail(job, Failed("Something went wrong inside the engine.", repr(error), "", details, True))
            self._cancelled.discard(job.number)

    def _answers(self, engine: Engine, job: _Job) -> Iterator[Body]:
        request, number = job.request, job.number

        def cancelled() -> bool:
            return number in self._cancelled

        def progress(body: Body) -> None:
            self._outbox.put(EngineEvent(number, body))

        if isinstance(request, GenerationRequest):
            yield from engine.generate(request, cancelled)
            return
        if isinstance(request, LoadRequest):
            done: Body | None = engine.load(request, progress, cancelled)
        elif isinstance(request, ParityRequest):
            if self._parity_check is None or not isinstance(engine, ReproducibleEngine):
                raise UserFacingError("This engine cannot be checked.", "Its scores cannot be read.", "")
            done = self._parity_check(engine, request, progress, cancelled)
        else:
            done = engine.convert(request, progress, cancelled)
        yield done if done is not None else Failed("Cancelled.")

    def _fail(self, job: _Job, body: Failed) -> None:
        self._outbox.put(EngineEvent(job.number, body))


class _Outbox:
    """Sends events in their order, on a thread of its own; steps in bundles, everything else at once."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._waiting: list[EngineEvent] = []
        self._changed = threading.Condition()
        self._urgent = False
        self._idle = False
        """Nothing waits, and the next bundle may go as soon as it has a step."""
        self._bundle_seconds = bundle_seconds(True)
        self._streaming = 0
        """The request whose first step has gone out."""
        threading.Thread(target=self._run, name="engine-outbox", daemon=True).start()

    def put(self, event: EngineEvent) -> None:
        with self._changed:
            self._waiting.append(event)
            self._urgent = self._urgent or not isinstance(event.body, Step) or event.request != self._streaming
            if isinstance(event.body, Step):
                self._streaming = event.request
            elif isinstance(event.body, Loaded):
                self._bundle_seconds = bundle_seconds(event.body.computes_on_cpu)
            if self._urgent or self._idle:
                # The thread wakes up once for each bundle, not for each step.
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                self._changed.wait_for(lambda: self._waiting)
                self._idle = False
                bundle, self._waiting, self._urgent = self._waiting, [], False
            try:
                self._pipe.send(bundle)
            except (BrokenPipeError, ConnectionResetError):
                # The parent is gone.
                os._exit(0)
            with self._changed:
                self._changed.wait_for(lambda: self._urgent, self._bundle_seconds)


def _redirect_output(log_path: Path) -> None:
    """What native code prints, its last words above all, goes to the log file."""
    with contextlib.suppress(OSError):
        log_path.parent.mkdir(parents=True, exist_ok=True)
        full = log_path.exists() and log_path.stat().st_size > _MAX_LOG_BYTES
        with log_path.open("wb" if full else "ab", buffering=0) as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
        faulthandler.enable(sys.stderr)
