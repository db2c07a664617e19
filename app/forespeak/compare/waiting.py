"""An engine in another process as one to wait for, so that a comparison can run over it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

from forespeak.engines.engine import (
    Body,
    ConversionRequest,
    Converted,
    Died,
    EngineClient,
    EngineEvent,
    Failed,
    GenerationRequest,
    Loaded,
    LoadRequest,
    Notice,
    Progress,
)
from forespeak.engines.host import is_last
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Event, Finished, PromptProgress
from forespeak.speculation.trace import SpeculationState, Step

_LOOK_SECONDS = 0.05
"""How often a wait looks whether it is cancelled."""


class WaitingEngine:
    """The Engine protocol over an EngineClient. One call at a time; never on the thread that its events come from.

    `connect` makes the client, given the listener for its events.
    """

    def __init__(self, connect: Callable[[Callable[[EngineEvent], None]], EngineClient]) -> None:
        self._events: queue.SimpleQueue[EngineEvent] = queue.SimpleQueue()
        self._client = connect(self._events.put)

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        for body in self._bodies(self._client.load(request), cancelled):
            if isinstance(body, Progress):
                progress(body)
            elif isinstance(body, Loaded):
                return body
        return None

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        for body in self._bodies(self._client.generate(request), cancelled):
            if isinstance(body, Notice | PromptProgress | SpeculationState | Step | Finished):
                yield body

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        for body in self._bodies(self._client.convert(request), cancelled):
            if isinstance(body, Progress):
                progress(body)
            elif isinstance(body, Converted):
                return body
        return None

    @property
    def pid(self) -> int | None:
        """Of the process that computes, if the client has one and it runs."""
        return getattr(self._client, "pid", None)

    def close(self) -> None:
        self._client.close()

    def _bodies(self, number: int, cancelled: Callable[[], bool]) -> Iterator[Body]:
        """What comes back for a request, to its end. Raises UserFacingError if it fails, RuntimeError for a bug."""
        stopping = ended = False
        try:
            while not ended:
                if not stopping and cancelled():
                    stopping = True
                    self._client.cancel(number)
                body = self._next(number)
                if body is None:
                    continue
                ended = is_last(body)
                match body:
                    case Failed(is_bug=True):
                        raise RuntimeError(body.details or body.what)
                    case Failed() if stopping:
                        return
                    case Failed() | Died():
                        raise UserFacingError(body.what, body.why, body.remedy)
                    case _:
                        yield body
        finally:
            if not ended:
                # Nobody listens any more. The next request must not wait behind this one.
                self._client.cancel(number)
                while not ended:
                    left = self._next(number)
                    ended = left is not None and is_last(left)

    def _next(self, number: int) -> Body | None:
        try:
            event = self._events.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            return None
        # After a death the pair is loaded again, under a number of its own.
        return event.body if event.request == number else None
