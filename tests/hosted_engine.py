"""An engine that does what the last message says, for the process that hosts it.

In a module of its own: the child imports it by name, and test modules have no name outside of pytest.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from forespeak.engines.engine import (
    ConversionRequest,
    Converted,
    GenerationRequest,
    Loaded,
    LoadRequest,
    ModelSummary,
    Notice,
    PairCheck,
    Progress,
)
from forespeak.errors import UserFacingError
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.trace import FinishReason, GenerationStats, Origin, Step, Token


class ScriptedEngine:
    """Does what the last message says: a number of steps, "for ever", or one of the ways to fail."""

    def __init__(self, pair_check: PairCheck) -> None:
        self._check = pair_check
        self._loaded: str | None = None

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        progress(Progress(0.5, "Loading"))
        while request.target.name == "slow" and not cancelled():
            time.sleep(0.005)
        if cancelled():
            return None
        self._loaded = request.target.name
        summary = ModelSummary(request.target, request.target.name, "", 1, 1, 1, 1, 1)
        problem = self._check(request.target, request.draft) if request.draft else None
        return Loaded(summary, draft_problem=problem)

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        script = request.messages[-1].content
        if self._loaded is None:
            raise UserFacingError("No model is loaded.", "", "Load one.")
        if script == "raise":
            raise UserFacingError("What.", "Why.", "Remedy.")
        if script == "bug":
            raise ZeroDivisionError("oops")
        yield self._step(0)
        if script == "fail late":
            yield Finished(FinishReason.STOP, GenerationStats())
            raise ZeroDivisionError("oops")
        if script == "abort":
            sys.stderr.write("GGML_ASSERT(something) failed\n")
            os.abort()
        if script == "exit":
            os._exit(3)
        index = 0
        while (script == "for ever" or index < int(script)) and not cancelled():
            index += 1
            yield self._step(index)
            if script == "for ever":
                time.sleep(0.002)
        yield Finished(FinishReason.CANCELLED if cancelled() else FinishReason.STOP, GenerationStats())

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        return Converted(request.destination)

    def close(self) -> None:
        pass

    @staticmethod
    def _step(index: int) -> Step:
        return Step(index, (Token(index, f"{index} ", Origin.TARGET),))


def scripted_engine(pair_check: PairCheck) -> ScriptedEngine:
    return ScriptedEngine(pair_check)


def refuse_pair(target: Path, draft: Path) -> str | None:
    return f"{draft.name} does not suit {target.name}."
