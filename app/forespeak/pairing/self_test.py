"""The parity check as the engine process runs it: on a bench of the loaded pair, and kept with the pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forespeak.engines.engine import Progress
from forespeak.engines.pair_knowledge import ReproducibleEngine
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.parity import check, context_needed


@dataclass(frozen=True, slots=True)
class SelfTest:
    """An `engines.pair_knowledge.ParityCheck`. Can be sent to another process."""

    files: PairFiles

    def __call__(
        self,
        engine: ReproducibleEngine,
        request: ParityRequest,
        progress: Callable[[Progress], None],
        cancelled: Callable[[], bool],
    ) -> ParityResult:
        loaded = engine.loaded_request
        with engine.bench(context_needed(request)) as bench:
            result = check(bench, request, progress, cancelled)
        if loaded is not None and self._is_worth_keeping(result, loaded.target, loaded.draft):
            self.files.keep_parity(loaded.target, loaded.draft, result)
        return result

    def _is_worth_keeping(self, result: ParityResult, target: Path, draft: Path | None) -> bool:
        """One that was stopped early does not take the place of a complete one, unless it found a fault."""
        if result.complete or result.faults:
            return True
        return bool(result.cases) and self.files.parity(target, draft) is None
