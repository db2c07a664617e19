"""Plans over the engine with made-up times, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compare.timed_engine import DRAFT, MODEL, TARGET, TimedEngine, prompts
from forespeak.compare.control import Control
from forespeak.compare.lane_results import ComparisonResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.machine import machine_notes
from forespeak.compare.runner import Happening
from forespeak.compare.session import measure
from forespeak.compare.store import ComparisonStore
from forespeak.speculation.trace import Source

OFF = Lane("Off")
SMALL = Lane("Small", (MODEL,), DRAFT)
FOUR = Lane("Small, 4", (MODEL,), DRAFT, 4)
OTHER = Lane("Other", (MODEL,), Path("other.gguf"))
LOOKUP = Lane("Lookup", (Source.PROMPT_LOOKUP,))


def plan(*lanes: Lane, **changed: object) -> Plan:
    """Off and a draft model, two categories, nine tokens, two repeats, no warm-up; and what is `changed`."""
    settings: dict[str, object] = {"prompts": prompts("code", "prose"), "tokens": 9, "repeats": 2, "warm_up": False}
    return Plan(TARGET, lanes or (OFF, SMALL), **settings | changed)  # type: ignore[arg-type]


def measured(
    wanted: Plan,
    folder: Path,
    engine: TimedEngine | None = None,
    *,
    listen: Callable[[Happening], None] = lambda _: None,
    control: Control | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    others: Callable[[], float] = lambda: 0.0,
) -> tuple[ComparisonResult, str]:
    """The result, and the id under which it is kept in `folder`."""
    engine = engine or TimedEngine()
    journal = ComparisonStore(folder).begin(wanted, machine_notes())
    result = measure(
        wanted,
        engine,
        journal,
        listen,
        control or Control(),
        cancelled=cancelled,
        clock=engine.clock,
        others=others,
    )
    assert journal.problem is None
    return result, journal.id
