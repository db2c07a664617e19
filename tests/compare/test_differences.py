"""Where words part, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compare.lane_plans import OFF, SMALL, measured, plan
from compare.timed_engine import TimedEngine
from forespeak.compare.differences import differences_of
from forespeak.compare.recording import RecordedStep
from forespeak.compare.runner import Run, visit_of
from forespeak.engines.engine import LoadSettings
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Step


def with_probability(run: Run, value: float) -> Run:
    def step(one: Step) -> Step:
        return replace(one, emitted=tuple(replace(token, probability=value) for token in one.emitted))

    return replace(run, recording=tuple(RecordedStep(each.at, step(each.step)) for each in run.recording))


def words_of(tmp_path: Path, probabilities: Sequence[float] = (), **changed: object) -> list[str]:
    wanted = plan(OFF, SMALL, **changed)
    results = measured(wanted, tmp_path, TimedEngine(parts_at=5))[0].results
    runs = results.runs
    if probabilities:
        runs = [with_probability(run, probabilities[not run.task.way.is_plain]) for run in runs]
    bases = {visit_of(run): run for run in runs if run.task.way.is_plain}
    found = differences_of(wanted, [run for run in runs if not run.task.way.is_plain], bases)
    assert len(found) == 4
    assert {(each.at, each.base_text, each.text) for each in found} == {(5, "x ", "x ")}
    return [each.words for each in found]


def test_tokens_of_equal_probability_look_like_a_tie(tmp_path: Path) -> None:
    words = words_of(tmp_path, (0.41, 0.40))[0]
    assert words.startswith("Differs from token 6 on, in what looks like a numeric tie")
    assert "(41.0 % and 40.0 %)" in words


@pytest.mark.parametrize("probabilities", [(0.6, 0.3), (0.9, 0.9), ()])
def test_others_are_not_explained_away(tmp_path: Path, probabilities: Sequence[float]) -> None:
    assert "A parity check of the pair can tell" in words_of(tmp_path, probabilities)[0]


def test_what_the_settings_say(tmp_path: Path) -> None:
    assert "should not happen" in words_of(tmp_path, load_settings=LoadSettings(reproducible=True))[0]
    assert "vary with the draft" in words_of(tmp_path, rule=Rule.REJECTION)[0]
    warm = words_of(tmp_path, (0.41, 0.40), sampling=SamplingSettings(temperature=0.8))
    assert "numeric tie: " not in warm[0]
