"""Settings and counts as JSON values, wherever they are kept: chats, preferences, comparisons and reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, SpeculationState, StepCosts


def sampling_record(settings: SamplingSettings) -> dict[str, Any]:
    """By the settings' names. A banned token has no bias, None: JSON knows no infinity."""
    record: dict[str, Any] = {item.name: getattr(settings, item.name) for item in fields(settings)}
    record["dry_breakers"] = [list(breaker) for breaker in settings.dry_breakers]
    record["logit_bias"] = [[token, None if math.isinf(bias) else bias] for token, bias in settings.logit_bias]
    return record


def stats_from(values: Mapping[str, Any]) -> GenerationStats:
    """What `dataclasses.asdict` made of counts, through JSON.

    Counts that this version does not know are left out; those that were not yet counted have their defaults. Raises
    ValueError, TypeError or AttributeError for values that are no counts.
    """
    known = _known(GenerationStats, values)
    if known.get("speculation") is not None:
        known["speculation"] = _state_from(known["speculation"])
    if "acceptance_rate_per_position" in known:
        known["acceptance_rate_per_position"] = tuple(known["acceptance_rate_per_position"])
    if "accepted_by_source" in known:
        known["accepted_by_source"] = tuple((name, count) for name, count in known["accepted_by_source"])
    return GenerationStats(**known)


def _state_from(values: Mapping[str, Any]) -> SpeculationState:
    known = _known(SpeculationState, values)
    if known.get("costs") is not None:
        known["costs"] = StepCosts(**known["costs"])
    known["chosen_lengths"] = tuple((length, steps) for length, steps in known.get("chosen_lengths", ()))
    return SpeculationState(**known)


def _known(kind: type[GenerationStats] | type[SpeculationState], values: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}
