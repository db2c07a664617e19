from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.engines import drafting
from forespeak.pairing import ranking
from forespeak.pairing.machine_speed import Basis, ModelCosts
from forespeak.pairing.ranking import Measurement, Range, predict, predict_lookup, rank_key
from forespeak.pairing.usual_acceptance import KINDS, UsualAcceptance, lookup_habit
from forespeak.speculation.adaptive import AdaptiveDraftLength
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token

F32 = ((1, 0.033), (2, 0.043), (3, 0.044), (5, 0.045), (9, 0.056), (17, 0.08))
Q8 = ((1, 0.015), (2, 0.026), (5, 0.035), (9, 0.054))
KIND = "prose of no known kind"


def costs(curve: tuple[tuple[int, float], ...], spread: float = 0.0) -> ModelCosts:
    return ModelCosts(curve, spread, Basis.THIS_FILE)


def one_token(seconds: float, more: float = 0.0, spread: float = 0.0) -> ModelCosts:
    return costs(((1, seconds), (2, seconds + more)), spread)


def odds(rate: float, spread: float = 0.0) -> UsualAcceptance:
    return UsualAcceptance(math.log(rate / (1.0 - rate)), spread)


@pytest.fixture
def no_time_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_OWN_STEP", 0.0)
    monkeypatch.setattr(ranking, "_OWN_TOKEN", 0.0)


@pytest.fixture
def no_confidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft model's own probabilities tell nothing."""
    monkeypatch.setattr(ranking, "_SURE", 0.0)


def test_no_longer_drafts_are_predicted_than_are_made() -> None:
    assert ranking.LONGEST_DRAFT == drafting.LONGEST_MODEL_DRAFT
    assert ranking.LONGEST_LOOKUP == drafting.MAX_DRAFT_LENGTH


@pytest.mark.usefixtures("no_time_of_ours", "no_confidence")
def test_the_best_length_is_found_by_hand() -> None:
    flat = costs(((1, 0.010), (2, 0.020), (17, 0.020)))
    found = predict(flat, one_token(0.002), odds(0.9), [KIND])
    by_hand = {k: sum(0.9**i for i in range(k + 1)) / (0.020 + 0.002 * k) * 0.010 for k in range(1, 17)}
    best = max(by_hand, key=lambda k: by_hand[k])
    assert found.kinds[0].draft_length == best
    assert found.speed_up.value == pytest.approx(by_hand[best])
    assert found.plain.value == pytest.approx(100.0)
    assert found.speculative.value == pytest.approx(100.0 * by_hand[best])
    assert found.unpaused == pytest.approx(by_hand[best])


@pytest.mark.usefixtures("no_time_of_ours", "no_confidence")
@pytest.mark.parametrize("curve", [F32, Q8])
@pytest.mark.parametrize(("draft", "accepted"), [(0.003, 0.95), (0.006, 0.8), (0.004, 0.65)])
def test_a_simulation_with_fixed_lengths_gives_the_same(
    curve: tuple[tuple[int, float], ...], draft: float, accepted: float
) -> None:
    found = predict(costs(curve), one_token(draft, 0.001), odds(accepted), [KIND])
    target = Costs(curve)
    draws = random.Random(5)
    best = 0.0
    for length in range(1, 17):
        tokens, seconds, unread = 0, 0.0, False
        for _ in range(20_000):
            right = next((i for i in range(length) if draws.random() >= accepted), length)
            tokens += right + 1
            seconds += target.target_seconds(length + 1) + length * draft + 0.001 * unread
            unread = right == length
        best = max(best, tokens / seconds * target.target_seconds(1))
    assert found.unpaused == pytest.approx(best, rel=0.02)


@pytest.mark.usefixtures("no_time_of_ours")
@pytest.mark.parametrize("curve", [F32, Q8])
@pytest.mark.parametrize(("draft", "accepted"), [(0.003, 0.9), (0.006, 0.8), (0.006, 0.75)])
def test_drafts_that_end_where_they_are_unsure_are_simulated_alike(
    curve: tuple[tuple[int, float], ...], draft: float, accepted: float
) -> None:
    found = predict(costs(curve), one_token(draft, 0.001), odds(accepted), [KIND])
    target = Costs(curve)
    draws = random.Random(7)
    sure = (accepted - 0.45) / 0.5
    best = 0.0
    for length in range(1, 17):
        tokens, seconds, unread = 0, 0.0, False
        for _ in range(10_000):
            chances: list[float] = []
            while len(chances) < length and (not chances or chances[-1] > 0.5):
                chances.append(0.95 if draws.random() < sure else 0.45)
            right = next((i for i, chance in enumerate(chances) if draws.random() >= chance), len(chances))
            tokens += right + 1
            seconds += target.target_seconds(len(chances) + 1) + len(chances) * draft + 0.001 * unread
            unread = right == len(chances)
        best = max(best, tokens / seconds * target.target_seconds(1))
    assert found.unpaused == pytest.approx(best, rel=0.02)


@pytest.mark.usefixtures("no_time_of_ours", "no_confidence")
@pytest.mark.parametrize(("draft", "accepted"), [(0.003, 0.95), (0.004, 0.65), (0.02, 0.5)])
def test_the_real_controller_comes_out_where_it_was_predicted(draft: float, accepted: float) -> None:
    """Its own drafting on a scripted clock; probes, trials and the plain steps in between cost it a little."""
    found = predict(costs(F32), one_token(draft), odds(accepted), [KIND])
    assert found.speed_up.value == pytest.approx(driven(draft, lambda _: (accepted, accepted)), rel=0.05)


@pytest.mark.usefixtures("no_time_of_ours")
@pytest.mark.parametrize(
    ("draft", "accepted"), [(0.003, 0.9), (0.004, 0.8), (0.006, 0.8), (0.01, 0.75), (0.01, 0.8), (0.02, 0.5)]
)
def test_the_real_controller_uses_the_draft_s_confidence_as_predicted(draft: float, accepted: float) -> None:
    found = predict(costs(F32), one_token(draft), odds(accepted), [KIND])
    sure = (accepted - 0.45) / 0.5

    def token(draws: random.Random) -> tuple[float, float]:
        return (0.975, 0.95) if draws.random() < sure else (0.3, 0.45)

    assert found.speed_up.value == pytest.approx(driven(draft, token), rel=0.08)


def driven(draft: float, token: Callable[[random.Random], tuple[float, float]]) -> float:
    """The controller's speed-up with F32's costs; `token` gives a drafted token's (own probability, real chance)."""
    target = Costs(F32)
    controller = AdaptiveDraftLength(RunningCosts(Costs(F32, draft)), 16)
    draws = random.Random(3)
    tokens, seconds = 0, 0.0
    for index in range(1, 3000):
        limit = controller.next_length()
        drafted: list[tuple[float, float]] = []
        # A draft model that may draft at all drafts its first token unasked.
        while len(drafted) < limit and (not drafted or controller.worth_another([q for q, _ in drafted])):
            drafted.append(token(draws))
        tested = drafted[: controller.worth_testing([q for q, _ in drafted])]
        right = next((i for i, (_, chance) in enumerate(tested) if draws.random() >= chance), len(tested))
        step = scripted_step(index, right, [q for q, _ in drafted], len(tested))
        step = replace(step, draft_seconds=draft * len(drafted), target_seconds=target.target_seconds(1 + len(tested)))
        controller.observe(step)
        tokens += right + 1
        seconds += step.draft_seconds + step.target_seconds
    return tokens / seconds * 0.033


def scripted_step(index: int, right: int, drafted: list[float], tested: int) -> Step:
    """`drafted` are the draft's own probabilities; the first `right` of the first `tested` tokens are accepted."""
    accepted = [Token(1, "", Origin.ACCEPTED, Source.DRAFT_MODEL, 0.5, q) for q in drafted[:right]]
    last = Token(2, "", Origin.CORRECTED if right < tested else Origin.BONUS if tested else Origin.TARGET)
    lost = [DraftedToken(3, "", 0.5, q) for q in drafted[right:]]
    rejected, ignored = lost[: tested - right], lost[tested - right :]
    source = Source.DRAFT_MODEL if drafted else None
    return Step(index, (*accepted, last), tuple(rejected), tuple(ignored), source)


rates = st.floats(0.05, 0.99)
times = st.floats(1e-4, 0.2)
growths = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4)


def curve_of(first: float, growth: list[float]) -> tuple[tuple[int, float], ...]:
    seconds, curve = first, [(1, first)]
    for tokens, more in zip((2, 5, 9, 17), growth, strict=True):
        seconds += more * first
        curve.append((tokens, seconds))
    return tuple(curve)


@given(times, growths, times, st.floats(1.0, 5.0), rates)
def test_a_slower_draft_never_ranks_higher(
    plain: float, growth: list[float], draft: float, slower: float, rate: float
) -> None:
    target = costs(curve_of(plain, growth))
    one = predict(target, one_token(draft), odds(rate))
    other = predict(target, one_token(draft * slower), odds(rate))
    assert rank_key(other) <= rank_key(one)
    assert other.speed_up.value <= one.speed_up.value * (1 + 1e-12)


@given(times, growths, times, rates, st.floats(0.0, 3.0))
def test_a_draft_that_is_accepted_more_often_never_ranks_lower(
    plain: float, growth: list[float], draft: float, rate: float, more: float
) -> None:
    target = costs(curve_of(plain, growth))
    one = predict(target, one_token(draft), odds(rate))
    other = predict(target, one_token(draft), UsualAcceptance(odds(rate).middle + more, 0.0))
    assert rank_key(other) >= rank_key(one)


@given(times, growths, st.floats(0.0, 2.0), times, rates)
def test_a_dearer_check_never_brings_more(
    plain: float, growth: list[float], more: float, draft: float, rate: float
) -> None:
    dearer = [step + more for step in growth]
    one = predict(costs(curve_of(plain, growth)), one_token(draft), odds(rate))
    other = predict(costs(curve_of(plain, dearer)), one_token(draft), odds(rate))
    assert other.unpaused <= one.unpaused * (1 + 1e-12)


@given(times, growths, times, rates, st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_ranges_hold_their_figure_and_grow_with_what_is_not_known(
    plain: float, growth: list[float], draft: float, rate: float, a: float, b: float, c: float
) -> None:
    def found(share: float) -> Range:
        target, drafting = costs(curve_of(plain, growth), share * a), one_token(draft, spread=share * b)
        return predict(target, drafting, odds(rate, share * c)).speed_up

    nothing, some, all_ = found(0.0), found(0.5), found(1.0)
    assert nothing.low == pytest.approx(nothing.value) == pytest.approx(nothing.high)
    for narrow, wide in ((nothing, some), (some, all_)):
        assert wide.value == pytest.approx(narrow.value)
        assert wide.low <= narrow.low * (1 + 1e-9)
        assert wide.high >= narrow.high * (1 - 1e-9)


@given(times, growths, times, rates, st.floats(0.1, 100.0))
def test_a_machine_that_is_slower_at_everything_gains_the_same(
    plain: float, growth: list[float], draft: float, rate: float, factor: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_OWN_STEP", 0.0)
        patch.setattr(ranking, "_OWN_TOKEN", 0.0)
        target, drafting = costs(curve_of(plain, growth)), one_token(draft, draft / 3)
        one = predict(target, drafting, odds(rate))
        other = predict(target.scaled(factor), drafting.scaled(factor), odds(rate))
    assert other.speed_up.value == pytest.approx(one.speed_up.value)
    assert other.plain.value == pytest.approx(one.plain.value / factor)


def test_a_draft_that_cannot_pay_costs_next_to_nothing_and_says_so() -> None:
    found = predict(costs(Q8), one_token(0.015), odds(0.9))
    assert 0.97 <= found.speed_up.value < 1.0
    assert not found.pays
    assert found.unpaused < found.speed_up.value
    assert {kind.draft_length for kind in found.kinds} == {0}


def test_two_drafts_that_do_not_pay_are_told_apart() -> None:
    bad, worse = (predict(costs(Q8), one_token(seconds), odds(0.6)) for seconds in (0.014, 0.030))
    assert bad.speed_up.value == worse.speed_up.value
    assert rank_key(bad) > rank_key(worse)


def test_each_kind_of_text_has_its_own_figure() -> None:
    found = predict(costs(F32), one_token(0.005), odds(0.8), ["code", "prose"])
    code, prose = found.kinds
    assert code.speed_up > prose.speed_up
    assert code.acceptance > prose.acceptance
    assert code.draft_length >= prose.draft_length
    assert found.speed_up.value == pytest.approx(math.sqrt(code.speed_up * prose.speed_up))


def test_a_prediction_is_for_some_kind_of_text() -> None:
    with pytest.raises(ValueError, match="kind"):
        predict(costs(F32), one_token(0.005), odds(0.8), [])


def test_looking_up_pays_where_texts_repeat_and_checks_are_cheap() -> None:
    flat = costs(((1, 0.030), (2, 0.031), (17, 0.036)))
    rewriting, prose = (predict_lookup(flat, [kind]) for kind in ("rewrite", "prose"))
    assert rewriting.speed_up.value > 1.3
    assert 0.98 < prose.speed_up.value < rewriting.speed_up.value
    assert predict_lookup(costs(Q8), ["rewrite"]).speed_up.value < rewriting.speed_up.value


@pytest.mark.usefixtures("no_time_of_ours")
def test_looking_up_agrees_with_a_simulation() -> None:
    curve = ((1, 0.030), (2, 0.033), (17, 0.046), (49, 0.080))
    found = predict_lookup(costs(curve), ["rewrite"])
    habit, target, draws = lookup_habit("rewrite"), Costs(curve), random.Random(9)
    best = 0.0
    for length in (*range(1, 17), 24, 32, 48):
        tokens, seconds = 0, 0.0
        for _ in range(20_000):
            drafted = length if draws.random() < habit.found else 0
            tokens += 1 + next((i for i in range(drafted) if draws.random() >= habit.right), drafted)
            seconds += target.target_seconds(1 + drafted)
        best = max(best, tokens / seconds * 0.030)
    assert found.speed_up.value == pytest.approx(best, rel=0.015)


def test_what_was_measured_decides() -> None:
    poor, good = (predict(costs(F32), one_token(0.005), odds(rate)) for rate in (0.5, 0.85))
    measured = Measurement(
        30.0, 60.0, Range(2.0, 1.9, 2.1), 0.9, 900, (("code", 2.0),), "2026-11-30T00:00:00+00:00", "llama", "1"
    )
    assert rank_key(poor, measured) > rank_key(good)
    assert rank_key(poor, measured)[0] == 2.0
    assert rank_key(None) < rank_key(poor)


def test_the_kinds_that_are_predicted_are_those_of_the_suite() -> None:
    from forespeak.compare.prompts import CATEGORIES

    assert KINDS == CATEGORIES
