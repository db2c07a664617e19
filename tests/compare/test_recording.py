"""Recordings: when steps were there, and that they survive being written down."""

from __future__ import annotations

import json

import pytest

from forespeak.compare.recording import from_plain, recording_of, to_plain
from forespeak.speculation.trace import DraftedToken, GenerationStats, Origin, Source, Step, Token

STEPS = (
    Step(0, (Token(1, "A", Origin.TARGET, probability=0.5),), target_seconds=0.4),
    Step(
        1,
        (Token(2, "", Origin.ACCEPTED, Source.DRAFT_MODEL, 0.25), Token(3, "é", Origin.CORRECTED)),
        (DraftedToken(4, "x"),),
        (DraftedToken(5, "y"),),
        Source.DRAFT_MODEL,
        0.01,
        0.02,
    ),
    Step(2, (Token(6, "\n", Origin.BONUS),), source=Source.NGRAM_MOD, target_seconds=0.06),
)
STATS = GenerationStats(time_to_first_token_seconds=0.5, decode_seconds=0.18)


def test_the_last_step_stands_where_the_reply_ended() -> None:
    recording = recording_of(STEPS, STATS)
    # The steps' own 0.09 s are stretched to the reply's 0.18 s.
    assert [recorded.at for recorded in recording] == pytest.approx([0.5, 0.56, 0.68])
    assert recording_of((), STATS) == ()


def test_steps_without_times_are_spread_evenly() -> None:
    steps = (STEPS[0], Step(1, ()), Step(2, ()))
    assert [recorded.at for recorded in recording_of(steps, STATS)] == pytest.approx([0.5, 0.59, 0.68])


def test_it_survives_being_written_down() -> None:
    recording = recording_of(STEPS, STATS)
    again = from_plain(json.loads(json.dumps(to_plain(recording))))
    assert [recorded.step for recorded in again] == list(STEPS)
    assert [recorded.at for recorded in again] == pytest.approx([recorded.at for recorded in recording])


def test_what_is_no_recording() -> None:
    for foreign in ([[1]], [[0, 0, 0, "guess", [], [], []]], [[0, 0, 0, None, [[1, "a", "?", None]], [], []]]):
        with pytest.raises((ValueError, KeyError)):
            from_plain(foreign)
