"""Counts come back from JSON as they were; what else is kept of them is tested where it is kept."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest

from forespeak.speculation.json_values import Check, number, one_of, or_null, stats_from, switch, text, whole
from forespeak.speculation.settings import Rule
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


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (whole(2, 5), [2, 5], [1, 6, 2.0, True, "3", None]),
        (or_null(whole(0)), [None, 0, 2**31 - 1], [-1, 2**31, []]),
        (number, [0, -1.5], [True, "1", math.inf, math.nan, None]),
        (switch, [True, False], [1, "true", None]),
        (text, ["a"], ["", " ", 1, None]),
    ],
)
def test_what_a_person_wrote_is_checked(check: Check, good: list[object], bad: list[object]) -> None:
    for value in good:
        assert check(value, "it") is value
    for value in bad:
        with pytest.raises((TypeError, ValueError), match=r"^it must be "):
            check(value, "it")


def test_a_choice_names_what_there_is() -> None:
    assert one_of(Rule)("rejection", "it") is Rule.REJECTION
    others: tuple[object, ...] = ("other", [], None)
    for value in others:
        with pytest.raises(ValueError, match=r"^it must be one of coupled, rejection, not "):
            one_of(Rule)(value, "it")
