"""Filters and penalties against plain implementations, and the quality of the noise."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from chi_square import chi_square_p, upper_tail
from forespeak.speculation.sampling import (
    NEGLIGIBLE_NATS,
    SHOWN_NATS,
    Distribution,
    Sampler,
    Stream,
    distribution,
    uniform_noise,
)
from forespeak.speculation.settings import SamplingSettings

OFF = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
UNLIKELY = 1e-4
"""Fixed seeds: a test that passes once passes always, and this is how lucky it needed to be."""


def row(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def shares(choices: Distribution) -> dict[int, float]:
    pairs = zip(choices.ids, np.exp(choices.log_probabilities), strict=True)
    return {int(token): float(share) for token, share in pairs}


def reference(logits: NDArray[np.float32], chosen: SamplingSettings, recent: list[int]) -> dict[int, float]:
    """The same order of filters, every one by sorting everything; ties with the k-th stay in top-k."""
    scores = {token: float(score) for token, score in enumerate(logits)}
    if chosen.penalises:
        window = recent[-chosen.penalty_window :]
        for token in {token for token in window if token < len(logits)}:
            score, factor = logits[token], np.float32(chosen.repeat_penalty)
            score = float(score / factor if score > 0 else score * factor)
            # One after the other: a sum of the two could cancel out where their differences from a tiny score do not.
            score = score - window.count(token) * chosen.frequency_penalty - chosen.presence_penalty
            scores[token] = float(np.float32(score))
    ranked = sorted(scores, key=lambda token: (-scores[token], token))
    best = scores[ranked[0]]
    if chosen.top_k > 0:
        bar = scores[ranked[min(chosen.top_k, len(ranked)) - 1]]
        ranked = [token for token in ranked if scores[token] >= bar]
    if chosen.top_p < 1.0:
        weights = [math.exp(scores[token] - best) for token in ranked]
        kept, mass = 0, 0.0
        while kept < len(ranked) and (kept == 0 or mass / math.fsum(weights) < chosen.top_p):
            mass += weights[kept]
            kept += 1
        ranked = ranked[:kept]
    if chosen.min_p > 0.0:
        ranked = [token for token in ranked if scores[token] >= best + math.log(chosen.min_p)]
    heat = chosen.temperature or 1.0
    total = math.fsum(math.exp((scores[token] - best) / heat) for token in ranked)
    return {token: math.exp((scores[token] - best) / heat) / total for token in ranked}


# Whole and half scores tie often, and no threshold but an exact tie falls between two of them by rounding alone.
logit_rows = hnp.arrays(
    np.float32,
    st.integers(1, 40),
    elements=st.one_of(
        st.integers(-12, 12).map(lambda half: half / 2), st.just(-math.inf), st.floats(-20, 20, width=32)
    ),
).filter(lambda logits: bool(np.isfinite(logits).any()))
sampling_settings = st.builds(
    SamplingSettings,
    temperature=st.sampled_from([1e-3, 0.1, 0.8, 1.0, 1.5, 5.0]),
    top_k=st.sampled_from([0, 1, 2, 5, 39, 1000]),
    top_p=st.sampled_from([0.0, 0.1234, 0.5678, 0.9501, 1.0]),
    min_p=st.sampled_from([0.0, 1e-9, 0.0513, 0.3, 1.0]),
    repeat_penalty=st.sampled_from([1.0, 1.1, 0.7]),
    frequency_penalty=st.sampled_from([0.0, 0.25, -0.5]),
    presence_penalty=st.sampled_from([0.0, 0.5]),
    penalty_window=st.sampled_from([0, 1, 4, 64]),
)


@settings(max_examples=400, deadline=None)
@given(logit_rows, sampling_settings, st.lists(st.integers(0, 45), max_size=12))
def test_the_filters_are_those_of_a_full_sort(
    logits: NDArray[np.float32], chosen: SamplingSettings, recent: list[int]
) -> None:
    before = logits.copy()
    found, expected = shares(distribution(logits, chosen, recent)), reference(logits, chosen, recent)
    np.testing.assert_array_equal(logits, before)
    assert math.fsum(found.values()) == pytest.approx(1.0, abs=1e-9)
    # What was left out before sorting weighs under 1e-12 of the best; the rest must be there, and equally likely.
    for token in found.keys() | expected.keys():
        assert found.get(token, 0.0) == pytest.approx(expected.get(token, 0.0), rel=1e-6, abs=2e-11)


@settings(deadline=None)
@given(logit_rows, st.lists(st.integers(0, 45), max_size=12), sampling_settings)
def test_temperature_zero_takes_the_best_and_shows_the_softmax(
    logits: NDArray[np.float32], recent: list[int], chosen: SamplingSettings
) -> None:
    sampler = Sampler(replace(chosen, temperature=0.0))
    choices = sampler.distribution(logits, recent)
    unfiltered = replace(chosen, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    plain = reference(logits, unfiltered, recent)
    best = max(plain.values())
    assert plain[sampler.choose(choices, 7)] == best
    shown = {token: share for token, share in plain.items() if share >= best * math.exp(-SHOWN_NATS)}
    everything = math.fsum(shown.values())
    for token in range(logits.size):
        assert choices.probability(token) == pytest.approx(shown.get(token, 0.0) / everything, rel=1e-6, abs=1e-5)


def directly(logits: NDArray[np.float32], chosen: SamplingSettings, allowed: NDArray[np.bool_] | None) -> Distribution:
    """The filters with every token looked at, in the arithmetic that makes choices the same to the last bit."""

    def normalised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        shifted = scores - scores.max()
        shares: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
        return shares

    ids = np.arange(logits.size) if allowed is None else np.flatnonzero(allowed[: logits.size])
    best = float(logits[ids].max())
    ids = ids[logits[ids] >= best - NEGLIGIBLE_NATS * max(1.0, chosen.temperature)]
    scores = logits[ids].astype(np.float64)
    if 0 < chosen.top_k < ids.size:
        keep = scores >= np.sort(scores)[-chosen.top_k]
        ids, scores = ids[keep], scores[keep]
    if chosen.top_p < 1.0:
        order = np.argsort(-scores, kind="stable")
        mass = np.cumsum(np.exp(normalised(scores[order])))
        order = order[: int(np.searchsorted(mass, chosen.top_p)) + 1]
        ids, scores = ids[order], scores[order]
    if chosen.min_p > 0.0:
        keep = scores >= best + math.log(chosen.min_p)
        ids, scores = ids[keep], scores[keep]
    return Distribution(ids, normalised((scores - best) / chosen.temperature))


Rows = tuple[NDArray[np.float32], list[NDArray[np.bool_] | None]]


def rows_and_masks(size: int, kind: str) -> Rows:
    """A row of scores, and what may be allowed of it: everything, few, all but the best, the lowest, most."""
    randomness = np.random.default_rng(size)
    logits = randomness.normal(0.0, 2.0, size).astype(np.float32)
    if kind != "heap":
        logits[randomness.integers(0, size, 60)] += np.linspace(15, 5, 60, dtype=np.float32)
    if kind == "whole":
        logits = np.round(logits)
    if kind == "level":
        logits[:] = 1.5
    if kind == "holes":
        logits[randomness.random(size) < 0.99] = -np.inf
        logits[size // 2] = -2.0
    best, worst = int(np.argmax(logits)), int(np.argmin(np.where(np.isinf(logits), np.inf, logits)))
    few, no_best, only_low = np.zeros(size + 3, np.bool_), np.ones(size + 3, np.bool_), logits < logits[best] - 3.0
    few[[worst, best]] = True
    no_best[best] = size == 1
    low = np.zeros(size, np.bool_)
    low[worst] = True
    most = randomness.random(size) < 0.9
    most[worst] = True
    masks = [None, few, low, most]
    masks += [mask for mask in (no_best, only_low) if np.isfinite(logits[mask[:size]]).any()]
    return logits, masks


SIZES, KINDS = [1, 60, 4_097, 50_257, 151_936], ["heap", "peaked", "whole", "level", "holes"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_takes_the_first_of_the_best_and_shows_those_near_it(size: int, kind: str) -> None:
    logits, masks = rows_and_masks(size, kind)
    for allowed in masks:
        choices = Sampler(SamplingSettings(temperature=0.0)).distribution(logits, [], allowed)
        ids = np.arange(size) if allowed is None else np.flatnonzero(allowed[:size])
        best = logits[ids].max()
        token = int(ids[int(logits[ids].argmax())])
        assert Sampler(SamplingSettings(temperature=0.0)).choose(choices, 5) == token
        near = ids[logits[ids] >= best - SHOWN_NATS]
        assert np.isin(near, choices.ids).all()
        assert np.isin(choices.ids, ids).all()
        assert (np.diff(choices.ids) > 0).all()
        expected = np.exp(logits[choices.ids].astype(np.float64) - float(best))
        expected /= expected.sum()
        np.testing.assert_allclose(np.exp(choices.log_probabilities), expected, rtol=1e-5)
        for one in (token, int(near[-1]), int(choices.ids[0])):
            assert choices.probability(one) == pytest.approx(expected[choices.ids == one][0], rel=1e-5)
        top = choices.top(3)
        assert [share for _, share in top] == pytest.approx(np.sort(expected)[::-1][:3], rel=1e-5)
        chosen, lead = Sampler(SamplingSettings(temperature=0.0)).choose_with_lead(choices, 5)
        ranked = np.sort(logits[ids].astype(np.float64))
        assert chosen == token
        expected_lead = ranked[-1] - ranked[-2] if ranked.size > 1 else math.inf
        assert lead == expected_lead or (lead > SHOWN_NATS and expected_lead > SHOWN_NATS)
        assert choices.probability(size) == 0.0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_chosen_otherwise_than_by_looking_at_everything(size: int, kind: str) -> None:
    logits, masks = rows_and_masks(size, kind)
    for temperature in (0.8, 4.0):
        for top_k in (0, 1, 40, 300):
            for top_p, min_p in ((1.0, 0.0), (0.95, 0.05)):
                chosen = SamplingSettings(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=size)
                for allowed in masks:
                    sampler = Sampler(chosen)
                    found, expected = sampler.distribution(logits, [], allowed), directly(logits, chosen, allowed)
                    np.testing.assert_array_equal(found.ids, expected.ids)
                    np.testing.assert_array_equal(found.log_probabilities, expected.log_probabilities)
                    assert sampler.choose(found, 5) == sampler.choose(expected, 5)


def test_top_k_larger_than_the_vocabulary_keeps_all() -> None:
    assert len(shares(distribution(row(1, 2, 3), replace(OFF, top_k=50), []))) == 3


def test_ties_with_the_k_th_stay() -> None:
    assert set(shares(distribution(row(3, 1, 2, 2, 2), replace(OFF, top_k=2), []))) == {0, 2, 3, 4}


def test_top_p_zero_keeps_the_best_one() -> None:
    assert shares(distribution(row(1, 5, 2), replace(OFF, top_p=0.0), [])) == {1: 1.0}


def test_top_p_keeps_the_token_that_crosses_it() -> None:
    logits = np.log(row(0.5, 0.3, 0.2))
    assert set(shares(distribution(logits, replace(OFF, top_p=0.51), []))) == {0, 1}
    assert set(shares(distribution(logits, replace(OFF, top_p=0.49), []))) == {0}


def test_min_p_one_keeps_the_best_and_its_equals() -> None:
    assert shares(distribution(row(4, 1, 4), replace(OFF, min_p=1.0), [])) == {0: 0.5, 2: 0.5}


def test_min_p_is_a_share_of_the_best() -> None:
    logits = np.log(row(0.6, 0.31, 0.09))
    assert set(shares(distribution(logits, replace(OFF, min_p=0.5), []))) == {0, 1}
    assert set(shares(distribution(logits, replace(OFF, min_p=0.55), []))) == {0}


def test_a_vocabulary_of_one() -> None:
    sampler = Sampler(SamplingSettings())
    choices = sampler.distribution(row(-3), [])
    assert shares(choices) == {0: 1.0}
    assert sampler.choose(choices, 0) == 0


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 5e-324, 1e-5, 0.8, 100.0])
@pytest.mark.parametrize("size", [1.0, 1e9, 1e30])
def test_scores_and_temperatures_of_any_size(temperature: float, size: float) -> None:
    sampler = Sampler(SamplingSettings(temperature=temperature))
    for sign in (1.0, -1.0):
        logits = row(*(sign * size * np.array([0.5, 1.0, 0.25, 1.0])))
        choices = sampler.distribution(logits, [])
        assert math.fsum(shares(choices).values()) == pytest.approx(1.0)
        if size > 1e3:
            best = {1, 3} if sign > 0 else {2}
            assert {token for token, share in shares(choices).items() if share > 0.0} == best
            assert sampler.choose(choices, 3) in best


def test_a_high_temperature_flattens_and_a_low_one_decides() -> None:
    hot = shares(distribution(row(0, 10), replace(OFF, temperature=100.0), []))
    assert hot[0] == pytest.approx(1 / (1 + math.exp(0.1)))
    cold = shares(distribution(row(0, 10), replace(OFF, temperature=0.01), []))
    assert cold[1] == pytest.approx(1.0)


def test_penalties_by_the_textbook() -> None:
    chosen = replace(OFF, repeat_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25, penalty_window=4)
    # The window is 1, 1, 0, 99: the 3 and the first 0 are out of it, and 99 is no token of this vocabulary.
    found = shares(distribution(row(4, -4, 1, 3), chosen, [3, 0, 1, 1, 0, 99]))
    adjusted = np.exp([4 / 2 - 0.5 - 0.25, -4 * 2 - 2 * 0.5 - 0.25, 1.0, 3.0])
    assert found == pytest.approx(dict(enumerate(adjusted / adjusted.sum())))


def test_the_penalty_window_reaches_over_text_and_draft() -> None:
    chosen = replace(OFF, presence_penalty=1.5, penalty_window=3)
    found = shares(Sampler(chosen).after(np.zeros(8, dtype=np.float32), [1, 2, 3, 4], [5, 6]))
    assert {token for token, share in found.items() if share < 0.1} == {4, 5, 6}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("top_k", -1),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("repeat_penalty", 0.0),
        ("frequency_penalty", 101.0),
        ("presence_penalty", -101.0),
        ("penalty_window", -1),
        ("seed", -1),
        ("seed", 2**64),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        SamplingSettings(**{name: value})  # type: ignore[arg-type]


def test_the_most_probable_tokens_come_best_first() -> None:
    choices = distribution(np.log(row(0.1, 0.5, 0.15, 0.25)), OFF, [])
    assert [token for token, _ in choices.top(3)] == [1, 3, 2]
    assert choices.top(3)[0][1] == pytest.approx(0.5)
    assert len(choices.top(10)) == 4
    assert choices.top(0) == []
    assert choices.probability(9) == 0.0


def test_a_choice_depends_on_its_arguments_alone() -> None:
    choices = distribution(row(*range(10)), replace(OFF, temperature=5.0), [])
    sampler = Sampler(SamplingSettings(seed=2**64 - 1))
    chosen = [sampler.choose(choices, position) for position in range(50)]
    assert [sampler.choose(choices, position) for position in reversed(range(50))] == chosen[::-1]
    assert len(set(chosen)) > 5


@settings(deadline=None)
@given(logit_rows, sampling_settings, st.integers(0, 1000), st.sampled_from([Stream.TARGET, Stream.DRAFT]))
def test_the_lead_of_a_choice_is_that_over_the_next_best_score(
    logits: NDArray[np.float32], chosen: SamplingSettings, position: int, stream: Stream
) -> None:
    sampler = Sampler(chosen)
    choices = sampler.distribution(logits, [])
    token, lead = sampler.choose_with_lead(choices, position, stream)
    assert token == sampler.choose(choices, position, stream)
    scores = sorted(sampler.scores(choices, position, stream), reverse=True)
    assert lead == (scores[0] - scores[1] if len(scores) > 1 else math.inf)


@pytest.mark.parametrize("by", ["seed", "position"])
def test_choices_follow_the_distribution(by: str) -> None:
    expected = {0: 0.5, 1: 0.3, 2: 0.15, 3: 0.05}
    choices = distribution(np.log(row(*expected.values())), OFF, [])
    counts: Counter[int] = Counter()
    for index in range(4000):
        seed, position = (index, 3) if by == "seed" else (3, index)
        counts[Sampler(SamplingSettings(seed=seed)).choose(choices, position)] += 1
    assert chi_square_p(counts, expected) > UNLIKELY


def noise_grid(stream: Stream = Stream.TARGET) -> NDArray[np.float64]:
    """Noise for 40 neighbouring seeds, positions and ids, shape (40, 40, 40)."""
    ids = np.arange(40)
    return np.array([[uniform_noise(seed, stream, at, ids) for at in range(40)] for seed in range(40)])


def cells(values: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    return (values * size).astype(np.int64)


def even(codes: NDArray[np.int64], size: int) -> float:
    counts = dict(enumerate(np.bincount(codes.ravel(), minlength=size).tolist()))
    return chi_square_p(counts, dict.fromkeys(range(size), 1 / size))


def test_noise_is_uniform() -> None:
    grid = noise_grid()
    assert np.all((grid > 0.0) & (grid < 1.0))
    assert np.unique(grid).size == grid.size
    assert even(cells(grid, 64), 64) > UNLIKELY
    # The lowest bits too.
    assert even(cells(grid * 2.0**40 % 1.0, 64), 64) > UNLIKELY


@pytest.mark.parametrize("axis", [0, 1, 2], ids=["seed", "position", "id"])
def test_neighbours_are_independent(axis: int) -> None:
    grid = cells(noise_grid(), 8)
    first, second = np.take(grid, range(39), axis), np.take(grid, range(1, 40), axis)
    assert even(first * 8 + second, 64) > UNLIKELY


def test_streams_are_independent() -> None:
    grids = [cells(noise_grid(stream), 8) for stream in Stream]
    for index, first in enumerate(grids):
        for second in grids[index + 1 :]:
            assert even(first * 8 + second, 64) > UNLIKELY


def test_large_seeds_positions_and_ids_are_as_good() -> None:
    ids = np.arange(250_000)
    noise = uniform_noise(2**64 - 1, Stream.RECOVERY, 1_000_000, ids)
    assert even(cells(noise, 64), 64) > UNLIKELY
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.01


def unmixed(h: int) -> int:
    """The inverse of the finaliser of SplitMix64."""
    mask = 2**64 - 1

    def unshifted(value: int, shift: int) -> int:
        result = value
        for _ in range(64 // shift + 1):
            result = value ^ (result >> shift)
        return result

    h = unshifted(h, 31) * pow(0x94D049BB133111EB, -1, 2**64) & mask
    h = unshifted(h, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    return unshifted(h, 30)


def mixed(h: int) -> int:
    mask = 2**64 - 1
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & mask
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB & mask
    return h ^ (h >> 31)


@pytest.mark.parametrize("bits", [0, 2**64 - 1])
def test_noise_is_strictly_between_zero_and_one_even_for_the_last_bit_pattern(bits: int) -> None:
    golden, mask, seed, position = 0x9E3779B97F4A7C15, 2**64 - 1, 5, 9
    key = mixed(mixed((seed + golden) & mask) + (position + 1) * golden & mask)
    token = (unmixed(unmixed(bits) ^ key) - key) * pow(golden, -1, 2**64) & mask
    ids = np.array([token], dtype=np.uint64).astype(np.int64)
    noise = float(uniform_noise(seed, Stream.TARGET, position, ids)[0])
    # Else the hash has changed and this test finds its extremes no more.
    assert min(noise, 1.0 - noise) < 1e-15
    assert 0.0 < noise < 1.0


def test_the_chi_square_itself() -> None:
    # Tabulated 5 % points.
    for freedom, point in ((1, 3.841), (2, 5.991), (5, 11.070), (10, 18.307), (63, 82.529)):
        assert upper_tail(point, freedom) == pytest.approx(0.05, abs=1e-4)
    assert chi_square_p({"a": 500, "b": 500}, {"a": 0.5, "b": 0.5}) == 1.0
    assert chi_square_p({"a": 600, "b": 400}, {"a": 0.5, "b": 0.5}) < 1e-8
    assert chi_square_p({"a": 999, "never": 1}, {"a": 1.0}) == 0.0
