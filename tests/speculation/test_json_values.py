"""Counts come back from JSON as they were; what else is kept of them is tested where it is kept."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from forespeak.speculation.json_values import stats_from
from forespeak.speculation.trace import GenerationStats, SpeculationState, StepCosts

STATS = GenerationStats(
    prompt_tokens=12,
    acceptance_rate_per_position=(0.9, 0.5),
    speculation=SpeculationState(True, "Drafting.", 4, StepCosts(0.1, 0.2, 0.05), ((0, 2), (4, 7))),
    accepted_by_source=(("draft-model", 9),),
)


@pytest.mark.parametrize("stats", [STATS, GenerationStats()])
def test_counts_come_back_as_they_were(stats: GenerationStats) -> None:
    assert stats_from(json.loads(json.dumps(asdict(stats)))) == stats


def test_what_is_no_state_is_refused() -> None:
    values = asdict(STATS)
    del values["speculation"]["reason"]
    with pytest.raises(TypeError):
        stats_from(values)
