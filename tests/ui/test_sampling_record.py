"""Sampling settings come back from JSON, each by itself."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from forespeak.speculation.json_values import sampling_record
from forespeak.speculation.settings import SamplingSettings
from forespeak.ui.sampling_record import sampling_from

OTHER = SamplingSettings(temperature=0.0, seed=2**63, dry_multiplier=0.5, logit_bias=((5, 2.5), (6, -math.inf)))


@pytest.mark.parametrize("settings", [SamplingSettings(), OTHER])
def test_they_come_back_through_strict_json(settings: SamplingSettings) -> None:
    assert sampling_from(json.loads(json.dumps(sampling_record(settings), allow_nan=False))) == settings


def test_every_setting_is_kept() -> None:
    assert sampling_record(replace(OTHER, dry_breakers=((1, 2),)))["dry_breakers"] == [[1, 2]]
    assert set(sampling_record(OTHER)) == set(SamplingSettings.__slots__)


@pytest.mark.parametrize(
    "biases",
    [5, [5], [[5]], [["5", 1.0]], [[5, "x"]], [[-1, 1.0]], [[True, 1.0]], [[5, math.inf]], None],
)
def test_damaged_biases_leave_the_others(biases: object) -> None:
    record = sampling_record(OTHER) | {"logit_bias": biases}
    assert sampling_from(record) == replace(OTHER, logit_bias=())


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError):
        sampling_from([])
