"""What a generation yields. Without numpy, since the window needs these names before it is up."""

from __future__ import annotations

from dataclasses import dataclass

from forespeak.speculation.trace import FinishReason, GenerationStats, SpeculationState, Step


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How much of the prompt is in the target's cache."""

    done: int
    total: int
    reused: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a generation."""

    reason: FinishReason
    stats: GenerationStats


Event = PromptProgress | SpeculationState | Step | Finished
