"""Sampling settings from JSON values that may be damaged, for the preferences."""

from __future__ import annotations

import math
from dataclasses import fields, replace

from forespeak.speculation.settings import SamplingSettings


def sampling_from(record: object) -> SamplingSettings:
    """Each setting by itself: one value out of range must not reset the others. Raises TypeError for no record."""
    if not isinstance(record, dict):
        raise TypeError
    settings = SamplingSettings()
    for item in fields(SamplingSettings):
        stored, standard = record.get(item.name), getattr(settings, item.name)
        if isinstance(stored, bool) or not isinstance(stored, int | float) or isinstance(standard, tuple):
            continue
        try:
            wanted = type(standard)(stored)
            settings = replace(settings, **{item.name: wanted})
        except (ValueError, OverflowError):
            continue
    try:
        biases = [(_token(token), -math.inf if bias is None else float(bias)) for token, bias in record["logit_bias"]]
        return replace(settings, logit_bias=tuple(biases))
    except (KeyError, ValueError, TypeError):
        return settings


def _token(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value
