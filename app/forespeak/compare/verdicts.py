"""What a ratio means in words, why a lane is not faster, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from forespeak.speculation.trace import Source

NEGLIGIBLE = 0.03
"""A difference that nobody notices: an interval within it says that there is none."""
_FAST_RATE = 150.0
_FEW_ACCEPTED = 0.5
_LITTLE_LOST = 0.05
"""Of a plain token's time: less is not worth a reason."""


class VerdictKind(Enum):
    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference"
    """The interval holds 1 and reaches no further than what nobody notices."""
    UNCLEAR = "unclear"
    """The interval holds 1, and is wide."""
    BASE = "base"
    """What the others are compared with."""
    NOTHING = "nothing measured"


class Reason(Enum):
    """Why a lane is slower, or no faster, than the target alone."""

    MEMORY_ON_CPU = "memory moved to the CPU"
    TARGET_FAST = "target already fast"
    FEW_ACCEPTED = "too few accepted"
    DRAFT_DEAR = "draft too dear"
    CHECKS_DEAR = "checks too dear"
    NEVER_DRAFTED = "nothing drafted"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`words` is a sentence or two; `advice` says what to try next, None where nothing suggests itself."""

    kind: VerdictKind
    words: str
    reason: Reason | None = None
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the figures alone do not tell. `moved_to_cpu`: beside the draft, the target has less of the GPU."""

    sources: tuple[Source, ...] = ()
    moved_to_cpu: bool = False
    fixed_length: int | None = None
