"""Settings and counts as JSON values, wherever they are kept: chats, preferences, comparisons and reports.

A `Check` takes a value that a person may have written, and says in words what is wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, SpeculationState, StepCosts

Check = Callable[[Any, str], Any]
"""(value, what it is called) -> the value. Raises TypeError or ValueError."""


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


def or_null(check: Check) -> Check:
    return lambda value, what: None if value is None else check(value, what)


def whole(least: int, most: int = 2**31 - 1) -> Check:
    """A whole number; by default at most what fits into a C int, which engines take."""

    def check(value: Any, what: str) -> int:  # noqa: ANN401 -- JSON values
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{what} must be a whole number")
        if not least <= value <= most:
            raise ValueError(f"{what} must be from {least} to {most}")
        return value

    return check


def number(value: Any, what: str) -> float:  # noqa: ANN401 -- JSON values
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{what} must be a number")
    return value


def switch(value: Any, what: str) -> bool:  # noqa: ANN401 -- JSON values
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be true or false")
    return value


def text(value: Any, what: str) -> str:  # noqa: ANN401 -- JSON values
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{what} must be a text")
    return value


_Kind = TypeVar("_Kind", bound=Enum)


def one_of(kind: type[_Kind]) -> Callable[[Any, str], _Kind]:
    """A member of an enumeration, by its value."""

    def check(value: Any, what: str) -> _Kind:  # noqa: ANN401 -- JSON values
        try:
            return kind(value)
        except ValueError:
            known = ", ".join(str(each.value) for each in kind)
            raise ValueError(f"{what} must be one of {known}, not {value!r}") from None

    return check
