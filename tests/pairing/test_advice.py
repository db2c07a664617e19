from __future__ import annotations

import pytest

from forespeak.pairing.advice import AdviceKind, draft_advice, target_advice
from forespeak.pairing.machine_speed import Basis, ModelCosts
from forespeak.pairing.model_shape import ModelShape, WeightFormat
from forespeak.pairing.ranking import Measurement, Range, predict
from forespeak.pairing.usual_acceptance import UsualAcceptance

BIG = ModelShape(WeightFormat.BITS_4, 32e9, 18e9)
TINY = ModelShape(WeightFormat.BITS_8, 0.5e9, 0.5e9)
GOOD = UsualAcceptance(1.5, 0.5)


def costs(first: float, growth: float = 0.02, basis: Basis = Basis.THIS_FILE) -> ModelCosts:
    return ModelCosts(tuple((n, first * (1 + growth * (n - 1))) for n in (1, 2, 5, 17)), 0.1, basis)


def measured(speed_up: float) -> Measurement:
    ups = Range(speed_up, speed_up, speed_up)
    return Measurement(10.0, 10.0 * speed_up, ups, 0.7, 500, (), "2026-11-30T10:00:00+00:00", "llama", "1")


def kinds(
    draft: ModelShape = TINY,
    *,
    target: ModelCosts | None = None,
    seconds: float = 0.001,
    acceptance: UsualAcceptance = GOOD,
    lookup: float | None = None,
    measurement: Measurement | None = None,
) -> list[AdviceKind]:
    of_target = target or costs(0.03)
    of_draft = costs(seconds)
    found = predict(of_target, of_draft, acceptance)
    return [each.kind for each in draft_advice(BIG, of_target, draft, of_draft, found, lookup, measurement)]


def test_a_good_draft_needs_no_advice() -> None:
    assert kinds() == []


def test_a_draft_that_costs_half_a_step_is_too_dear() -> None:
    assert kinds(seconds=0.024)[0] is AdviceKind.TOO_DEAR


def test_a_third_of_the_target_is_a_large_share() -> None:
    third = ModelShape(WeightFormat.BITS_4, 10e9, 6e9)
    assert AdviceKind.LARGE_SHARE in kinds(third, seconds=0.012)
    same = ModelShape(WeightFormat.BITS_2, 32e9, 10e9)
    assert AdviceKind.LARGE_SHARE not in kinds(same, seconds=0.010)


def test_where_looking_up_brings_more_it_says_so() -> None:
    poor = UsualAcceptance(-0.5, 0.5)
    assert AdviceKind.WORSE_THAN_LOOKUP in kinds(acceptance=poor, lookup=3.0)
    assert AdviceKind.WORSE_THAN_LOOKUP not in kinds(acceptance=poor)
    assert AdviceKind.WORSE_THAN_LOOKUP not in kinds(acceptance=poor, lookup=3.0, measurement=measured(4.0))


def test_a_format_whose_checks_are_dear_is_named() -> None:
    assert AdviceKind.DEAR_CHECK in kinds(target=costs(0.03, 0.4), seconds=0.008)


def test_what_may_be_slower_or_faster_wants_a_test_unless_it_had_one() -> None:
    unsure = UsualAcceptance(0.3, 1.5)
    assert AdviceKind.UNSURE in kinds(seconds=0.009, acceptance=unsure)
    assert AdviceKind.UNSURE not in kinds(seconds=0.009, acceptance=unsure, measurement=measured(1.05))


def test_words_have_their_figures() -> None:
    of_target, of_draft = costs(0.03), costs(0.024)
    found = predict(of_target, of_draft, GOOD)
    words = draft_advice(BIG, of_target, TINY, of_draft, found, None)[0].words
    assert words == "A drafted token costs 80 % of a step of the target: even good drafts gain little."


@pytest.mark.parametrize(
    ("weights", "seconds", "best", "kind"),
    [
        (8e9, 0.010, 1.2, AdviceKind.SMALL_TARGET),
        (8e9, 0.010, 1.8, None),
        (8e9, 0.200, 1.2, None),
        (8e9, 0.200, 1.05, AdviceKind.LITTLE_GAIN),
        (70e9, 0.010, 1.2, None),
        (70e9, 0.500, 1.0, AdviceKind.LITTLE_GAIN),
    ],
)
def test_what_a_target_hears(weights: float, seconds: float, best: float, kind: AdviceKind | None) -> None:
    shape = ModelShape(WeightFormat.BITS_4, weights, weights / 2)
    found = target_advice("it", shape, costs(seconds), [best, 0.9])
    assert (found.kind if found else None) is kind


def test_a_target_s_words() -> None:
    shape = ModelShape(WeightFormat.BITS_4, 8e9, 4e9)
    found = target_advice("Llama 8B", shape, costs(0.01, basis=Basis.BANDWIDTH), [1.2])
    assert found is not None
    assert found.words == (
        "“Llama 8B” has 8 billion weights and writes about 100 tokens a second here already: "
        "at this size and speed a draft model gains little."
    )
    experts = ModelShape(WeightFormat.BITS_4, 1e9, 5e8, 29e9, 15e9, 2.0 / 29.0)
    found = target_advice("30B", experts, costs(0.01), [])
    assert found is not None
    assert "reads only 3 billion weights" in found.words
    assert target_advice("it", BIG, costs(0.5), [0.99]) is not None
