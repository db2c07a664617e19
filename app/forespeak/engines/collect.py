"""A generation run to its end: what it wrote, said and counted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from forespeak.engines.engine import Notice
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.trace import FinishReason, GenerationStats, Step, text_of


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished generation."""

    steps: tuple[Step, ...]
    notices: tuple[str, ...]
    reason: FinishReason
    stats: GenerationStats

    @property
    def text(self) -> str:
        return text_of(self.steps)


def collect(events: Iterator[Notice | Event], on_step: Callable[[Step], None] | None = None) -> Reply:
    """Run a generation to its end and keep what happened; `on_step` hears of each step at once.

    Raises what the generation raises.
    """
    steps: list[Step] = []
    notices: list[str] = []
    finished: Finished | None = None
    try:
        for event in events:
            match event:
                case Step():
                    steps.append(event)
                    if on_step is not None:
                        on_step(event)
                case Notice(text):
                    notices.append(text)
                case Finished():
                    finished = event
                case _:
                    pass
    finally:
        # Whatever went wrong here, the engine has to end the generation before it can do anything else.
        if isinstance(events, Generator):
            events.close()
    if finished is None:
        raise RuntimeError("a generation ended without saying how")
    return Reply(tuple(steps), tuple(notices), finished.reason, finished.stats)
