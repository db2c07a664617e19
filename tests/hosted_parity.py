"""An engine whose pair can be checked, and a check that only counts, for the process that hosts them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from forespeak.engines.engine import LoadRequest, PairCheck, Progress
from forespeak.engines.pair_knowledge import ReproducibleEngine
from forespeak.engines.parity_result import ParityCase, ParityRequest, ParityResult
from hosted_engine import ScriptedEngine


class CheckableEngine(ScriptedEngine):
    @property
    def loaded_request(self) -> LoadRequest | None:
        return None

    @contextmanager
    def bench(self, context_length: int) -> Iterator[Any]:
        yield None


def checkable_engine(pair_check: PairCheck) -> CheckableEngine:
    return CheckableEngine(pair_check)


def count_cases(
    engine: ReproducibleEngine,
    request: ParityRequest,
    progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> ParityResult:
    """A case per prompt that was asked for; without a number, until it is cancelled."""
    cases: list[ParityCase] = []
    while not cancelled() and len(cases) != request.prompts:
        progress(Progress(0.0, f"case {len(cases)}"))
        cases.append(ParityCase("p", 0.0, request.tokens, 1, 1))
        time.sleep(0.005)
    return ParityResult(
        tuple(cases), 3, request.sources, 0.0, 0.0, "2026-11-29T21:00:00+00:00", type(engine).__name__, ""
    )
