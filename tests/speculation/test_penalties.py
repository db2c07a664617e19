"""DRY against its definition, at its limits, and in the settings."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forespeak.speculation.constraint import NoTokenLeftError
from forespeak.speculation.penalties import Dry, GrowingDry, tokens_with
from forespeak.speculation.sampling import Sampler, distribution
from forespeak.speculation.settings import SamplingSettings
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


class SearchesAll:
    """DRY as a search through all of the window, every time, in a few passes over it."""

    def __init__(
        self, multiplier: float, base: float, allowed: int, last_n: int, breakers: list[tuple[int, ...]]
    ) -> None:
        self._multiplier, self._base, self._allowed, self._last_n = multiplier, base, allowed, last_n
        self._longest = math.inf if base <= 1.0 else 80.0 / math.log(base)
        self._tails: dict[int, list[tuple[int, ...]]] = {}
        for head, *tail in breakers:
            self._tails.setdefault(head, []).append(tuple(tail))

    def penalties(self, recent: Sequence[int]) -> dict[int, float]:
        backwards = list(recent if self._last_n < 0 else recent[max(0, len(recent) - self._last_n) :])
        backwards.reverse()
        if len(backwards) < 2 or backwards[0] not in backwards[1:]:
            return {}
        limit = self._reach(backwards)
        if limit < self._allowed:
            return {}
        repeats: dict[int, int] = {}
        for follower, length in _repeats(backwards):
            if length >= self._allowed:
                repeats[follower] = max(min(length, limit), repeats.get(follower, 0))
        return {
            token: self._multiplier * self._base ** min(length - self._allowed, self._longest)
            for token, length in repeats.items()
            if () not in self._tails.get(token, ())
        }

    def _reach(self, backwards: Sequence[int]) -> int:
        if self._tails:
            for place, token in enumerate(backwards):
                tails = self._tails.get(token)
                if tails is not None:
                    behind = tuple(reversed(backwards[:place]))
                    whole = [len(tail) for tail in tails if behind[: len(tail)] == tail]
                    if whole:
                        return place - max(whole)
        return len(backwards)


def _repeats(backwards: list[int]) -> Iterable[tuple[int, int]]:
    """For each earlier place that ends like the text: the token that followed there, and for how many tokens.

    The Z-algorithm (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.4) over the reversed text.
    """
    size, newest = len(backwards), backwards[0]
    lengths: dict[int, int] = {}
    left = right = place = 0
    while True:
        try:
            place = backwards.index(newest, place + 1)
        except ValueError:
            return
        length = min(lengths[place - left], right - place) if place < right else 0
        if place + length >= right:
            while place + length < size and backwards[length] == backwards[place + length]:
                length += 1
            left, right = place, place + length
        lengths[place] = length
        yield backwards[place - 1], length


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
    assert found == SearchesAll(0.8, 1.75, allowed, last_n, breakers).penalties(recent)


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


@settings(max_examples=400, deadline=None)
@given(data=st.data(), base=st.sampled_from([1.0, 1.75, 1e30]), allowed=st.integers(1, 4), last_n=st.integers(-1, 30))
def test_a_growing_text_is_penalised_as_one_that_is_read_anew(
    data: st.DataObject, base: float, allowed: int, last_n: int
) -> None:
    """Drafts come, grow, are cut and change; two lists of the text take turns; now and then it is another text."""
    breakers = data.draw(st.lists(st.lists(tokens, min_size=1, max_size=3).map(tuple), max_size=2))
    dry = GrowingDry(Dry(0.8, base, allowed, last_n, breakers))
    anew = SearchesAll(0.8, base, allowed, last_n, breakers)
    texts = [[], []]  # type: list[list[int]]
    for step in data.draw(st.lists(st.sampled_from(["grow", "grow", "grow", "copy", "other"]), min_size=3, max_size=8)):
        if step == "other":
            other = data.draw(st.lists(tokens, max_size=12))
            texts = [list(other), list(other)]
        else:
            more = data.draw(st.lists(tokens, max_size=5))
            for text in texts:
                text.extend(more)
        for draft in data.draw(st.lists(st.lists(tokens, max_size=4), max_size=3)):
            for text in texts:
                for end in range(len(draft) + 1):
                    given_text = tuple(text) if step == "copy" else text
                    found = dry.penalties(given_text, draft[:end])
                    assert found == anew.penalties([*text, *draft[:end]])


@pytest.mark.parametrize("text", [[5] * 20_000, [1, 2, 3, 4] * 5_000, [1] * 10_000 + [2] + [1] * 10_000])
def test_dry_takes_time_proportional_to_the_window(text: list[int]) -> None:
    dry = Dry(0.8, 1.75, 2, -1, [(99,)])
    started = time.perf_counter()
    found = dry.penalties(text)
    # Some 20 ms on an idle core; a comparison of every place with every other takes minutes.
    assert time.perf_counter() - started < 2.0
    assert found == SearchesAll(0.8, 1.75, 2, -1, [(99,)]).penalties(text)


class CountedReads(list[int]):
    """A list that counts how many of its tokens were read."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.reads += len(found) if isinstance(key, slice) else 1
        return found

    def __iter__(self) -> Iterator[int]:
        for token in super().__iter__():
            self.reads += 1
            yield token


def test_only_what_is_new_is_read_of_a_text_that_grows() -> None:
    text = CountedReads(token % 1_000 for token in range(30_000))
    sampler = Sampler(replace(OFF, dry_multiplier=1.0, presence_penalty=0.1, penalty_window=64))
    logits = np.zeros(1_000, dtype=np.float32)
    sampler.after(logits, text, [])
    text.reads = 0
    for token in range(10):
        assert sampler.after(logits, text, [token]).probability((token + 1) % 1_000) < 1e-12
        text.append(token)
    assert 0 < text.reads < 2_000


def test_dry_looks_at_the_drafted_tokens_too() -> None:
    sampler = Sampler(replace(OFF, dry_multiplier=3.0, dry_penalty_last_n=5))
    logits = np.zeros(4, dtype=np.float32)
    text = [0, 1, 2, 0]
    assert sampler.after(logits, text, []).probability(1) == pytest.approx(0.25), "one token is no repetition yet"
    repeated = sampler.after(logits, text, [1])
    assert repeated.probability(2) == pytest.approx(math.exp(-3) / (3 + math.exp(-3)))
    assert sampler.after(logits, [9, *text, 1], []).probability(2) == repeated.probability(2)
    assert sampler.after(logits, [*text, 1, 3, 3], []).probability(2) == pytest.approx(0.25)


@pytest.mark.parametrize(("last_n", "window"), [(-1, 2), (5, 2), (4, 3), (2, 5)])
def test_each_penalty_has_a_window_of_its_own(last_n: int, window: int) -> None:
    chosen = replace(OFF, dry_multiplier=2.0, dry_penalty_last_n=last_n, presence_penalty=0.5, penalty_window=window)
    text, draft = [7, 1, 2, 3, 4, 1], [2]
    logits = np.zeros(8, dtype=np.float32)
    expected = -0.5 * np.isin(np.arange(8), [*text, *draft][-window:])
    # 1, 2 stood at the beginning too: within the window or not.
    expected[3] -= 2.0 if last_n == -1 else 0.0
    weights = np.exp(expected)
    for choices in (Sampler(chosen).after(logits, text, draft), distribution(logits, chosen, [*text, *draft])):
        found = [choices.probability(token) for token in range(8)]
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-6)


def test_nothing_changes_when_dry_is_off() -> None:
    logits = np.zeros(3, dtype=np.float32)
    for chosen in (OFF, replace(OFF, dry_multiplier=1.0, dry_penalty_last_n=0)):
        assert not chosen.adjusts
        assert Sampler(chosen).after(logits, [1, 2, 1, 2], [1]).probability(2) == pytest.approx(1 / 3)


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
