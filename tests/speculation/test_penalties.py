"""DRY against its definition, at its limits, and in the settings."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forespeak.speculation.constraint import NoTokenLeftError
from forespeak.speculation.penalties import Dry, tokens_with
from forespeak.speculation.sampling import Sampler, SamplingSettings, distribution
from scripted import ScriptedVocabulary

OFF = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def by_definition(
    multiplier: float, base: float, allowed: int, last_n: int, breakers: list[tuple[int, ...]], recent: list[int]
) -> dict[int, float]:
    """Every earlier place, every length, every breaker, one after the other."""
    window = recent if last_n < 0 else recent[len(recent) - min(last_n, len(recent)) :]
    size = len(window)
    found = [
        (start, len(breaker))
        for start in range(size)
        for breaker in breakers
        if tuple(window[start : start + len(breaker)]) == breaker
    ]
    reach = size - sum(max(found)) if found else size
    longest: dict[int, int] = {}
    for place in range(size - 1):
        for length in range(allowed, min(reach, place + 1) + 1):
            if window[place + 1 - length : place + 1] == window[size - length :]:
                longest[window[place + 1]] = max(length, longest.get(window[place + 1], 0))
    return {
        token: multiplier * base ** (length - allowed) for token, length in longest.items() if (token,) not in breakers
    }


tokens = st.integers(0, 3)


@settings(max_examples=400, deadline=None)
@given(
    recent=st.lists(tokens, max_size=40),
    allowed=st.integers(1, 5),
    last_n=st.integers(-1, 45),
    breakers=st.lists(st.lists(tokens, min_size=1, max_size=3).map(tuple), max_size=3),
)
@example(recent=[1] * 30, allowed=2, last_n=-1, breakers=[])
@example(recent=[0, 1, 2] * 10, allowed=3, last_n=17, breakers=[(2, 0, 1)])
def test_dry_is_what_its_definition_says(
    recent: list[int], allowed: int, last_n: int, breakers: list[tuple[int, ...]]
) -> None:
    found = Dry(0.8, 1.75, allowed, last_n, breakers).penalties(recent)
    assert found == pytest.approx(by_definition(0.8, 1.75, allowed, last_n, breakers, recent))


def test_dry_by_hand() -> None:
    dry = Dry(1.0, 2.0, 2, -1, [])
    assert dry.penalties([0, 1, 2, 0, 1]) == {2: 1.0}
    assert dry.penalties([5, 0, 1, 2, 5, 0, 1]) == {2: 2.0}
    assert dry.penalties([0, 1]) == dry.penalties([]) == dry.penalties([7]) == {}
    # A breaker within the repetition leaves one token behind it, too few.
    assert Dry(1.0, 2.0, 2, -1, [(0,)]).penalties([0, 1, 2, 0, 1]) == {}
    # What would be penalised is a breaker itself.
    assert Dry(1.0, 2.0, 2, -1, [(2,)]).penalties([0, 1, 2, 0, 1]) == {}
    assert Dry(1.0, 2.0, 2, -1, [(2, 9)]).penalties([0, 1, 2, 0, 1]) == {2: 1.0}


def test_a_very_long_repetition_stays_a_number() -> None:
    choices = distribution(
        np.zeros(2, dtype=np.float32), replace(OFF, dry_multiplier=1000.0, dry_base=100.0), [0] * 2000
    )
    assert choices.probability(1) == 1.0
    assert np.isfinite(choices.log_probabilities).all()


@pytest.mark.parametrize("text", [[5] * 20_000, [1, 2, 3, 4] * 5_000, [1] * 10_000 + [2] + [1] * 10_000])
def test_dry_takes_time_proportional_to_the_window(text: list[int]) -> None:
    dry = Dry(0.8, 1.75, 2, -1, [(99,)])
    started = time.perf_counter()
    assert dry.penalties(text)
    # Some 10 ms on an idle core; a comparison of every place with every other takes minutes.
    assert time.perf_counter() - started < 2.0


def test_dry_looks_at_the_drafted_tokens_too() -> None:
    sampler = Sampler(replace(OFF, dry_multiplier=3.0, dry_penalty_last_n=5))
    logits = np.zeros(4, dtype=np.float32)
    text = [0, 1, 2, 0]
    assert sampler.after(logits, text, []).probability(1) == pytest.approx(0.25), "one token is no repetition yet"
    repeated = sampler.after(logits, text, [1])
    assert repeated.probability(2) == pytest.approx(math.exp(-3) / (3 + math.exp(-3)))
    assert sampler.after(logits, [9, *text, 1], []).probability(2) == repeated.probability(2)
    assert sampler.after(logits, [*text, 1, 3, 3], []).probability(2) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("last_n", "window", "expected"), [(-1, 2, [1, 2, 3, 4, 9]), (3, 2, [2, 3, 4, 9]), (2, 3, [2, 3, 4, 9])]
)
def test_the_longer_of_two_windows_is_looked_at(last_n: int, window: int, expected: list[int]) -> None:
    chosen = SamplingSettings(
        dry_multiplier=1.0, dry_penalty_last_n=last_n, presence_penalty=0.1, penalty_window=window
    )
    assert Sampler(chosen).recent([1, 2, 3, 4], [9]) == expected


def test_nothing_is_looked_at_when_dry_is_off() -> None:
    for chosen in (SamplingSettings(), SamplingSettings(dry_multiplier=1.0, dry_penalty_last_n=0)):
        assert not chosen.adjusts
        assert Sampler(chosen).recent([1, 2, 1, 2], [1]) == []


def test_bias_is_added_before_everything_else() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.25], dtype=np.float32))
    chosen = replace(OFF, logit_bias=((1, math.log(2)), (0, -math.inf), (77, 5.0)))
    choices = distribution(logits, chosen, [])
    assert {int(token) for token in choices.ids} == {1, 2}
    assert choices.probability(1) == pytest.approx(2 / 3)
    # With the best token banned, the best of the others is what the filters measure by.
    assert distribution(logits, replace(chosen, top_k=1), []).probability(1) == 1.0
    greedy = Sampler(replace(chosen, temperature=0.0))
    assert greedy.choose(greedy.distribution(logits, []), 0) == 1


def test_logits_are_left_as_they_were() -> None:
    logits = np.zeros(4, dtype=np.float32)
    chosen = replace(OFF, logit_bias=((1, 2.0),), dry_multiplier=1.0, presence_penalty=1.0)
    distribution(logits, chosen, [0, 1, 2, 0, 1], np.array([True, True, True, False]))
    assert not logits.any()


def test_banning_everything_is_told() -> None:
    chosen = replace(OFF, logit_bias=((0, -math.inf), (1, -math.inf)))
    with pytest.raises(NoTokenLeftError):
        distribution(np.zeros(2, dtype=np.float32), chosen, [])
    with pytest.raises(NoTokenLeftError):
        distribution(np.zeros(2, dtype=np.float32), OFF, [], np.zeros(2, dtype=np.bool_))


def test_a_draft_is_permitted_up_to_a_banned_token() -> None:
    sampler = Sampler(SamplingSettings(logit_bias=((3, -math.inf), (4, -100.0))))
    assert sampler.permitted([4, 1, 3, 1]) == 2
    assert sampler.permitted([4, 1]) == 2
    assert sampler.permitted([]) == 0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("dry_multiplier", -0.1, "dry_multiplier must lie between"),
        ("dry_base", 0.9, "dry_base must lie between"),
        ("dry_allowed_length", 0, "dry_allowed_length must lie between"),
        ("dry_penalty_last_n", -2, "dry_penalty_last_n must lie between"),
        ("dry_breakers", ((1,), ()), "empty sequence"),
        ("logit_bias", ((1, math.inf),), "logit_bias"),
        ("logit_bias", ((1, math.nan),), "logit_bias"),
        ("logit_bias", ((-1, 1.0),), "logit_bias"),
    ],
)
def test_values_out_of_range_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SamplingSettings(**{field: value})  # type: ignore[arg-type]


def test_settings_cross_a_border() -> None:
    chosen = SamplingSettings(dry_multiplier=0.8, dry_breakers=((1, 2), (3,)), logit_bias=((7, -math.inf),))
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    assert len({chosen, replace(chosen)}) == 1


def test_breakers_are_all_tokens_that_hold_the_text() -> None:
    vocabulary = ScriptedVocabulary([b"a", b"\n", b" \n\n", b"b:", b"", b'"c'])
    assert tokens_with(vocabulary, ["\n", ":"]) == ((1,), (2,), (3,))
