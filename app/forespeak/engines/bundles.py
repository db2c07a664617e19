"""How steps travel from the engine process to the window: how often, and in what form."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter

from forespeak.engines.engine import EngineEvent
from forespeak.speculation.trace import Alternative, DraftedToken, Step, Token

_FRAME_SECONDS = 1 / 60


def bundle_seconds(computes_on_cpu: bool) -> float:
    """The time between two bundles of steps, once a reply's first step has gone out.

    The threads of an engine on the processor wait for the slowest of them, and showing new tokens takes a core from
    one of them: the fewer cores there are, the more that costs.
    """
    if not computes_on_cpu:
        return _FRAME_SECONDS
    return min(max(_FRAME_SECONDS, 0.4 / (os.cpu_count() or 1)), 0.2)


def register_compact_pickles() -> None:
    """Send steps by their values. Frozen dataclasses are otherwise unpickled field by field, in Python: three times
    the work for the window.
    """
    from multiprocessing.reduction import ForkingPickler

    for kind in _VALUES:
        ForkingPickler.register(kind, _by_values)


def _by_values(value: object) -> tuple[type, tuple[object, ...]]:
    return type(value), _VALUES[type(value)](value)


_VALUES: dict[type, Callable[[object], tuple[object, ...]]] = {
    kind: attrgetter(*(field.name for field in fields(kind)))
    for kind in (EngineEvent, Step, Token, DraftedToken, Alternative)
}
