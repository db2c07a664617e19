"""A real engine process for what has to be made, as window and command line use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.converting import ConvertingProcess
from hosted_engine import refuse_pair


@contextmanager
def converting(folder: Path) -> Iterator[WaitingEngine]:
    engine = WaitingEngine(
        lambda listener: ConvertingProcess(listener, log_path=folder / "make.log", pair_check=refuse_pair)
    )
    try:
        yield engine
    finally:
        engine.close()
