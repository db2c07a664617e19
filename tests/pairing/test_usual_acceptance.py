from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.pairing.machine_speed import MachineSpeed, published_bandwidth
from forespeak.pairing.model_names import Kinship
from forespeak.pairing.model_shape import ModelShape, WeightFormat, estimated_shape
from forespeak.pairing.ranking import predict
from forespeak.pairing.usual_acceptance import (
    KINDS,
    UsualAcceptance,
    known_acceptance,
    lookup_habit,
    usual_acceptance,
)


def shape(weights: float, format_: WeightFormat = WeightFormat.BITS_4) -> ModelShape:
    return ModelShape(format_, weights, weights * format_.bits / 8)


def middle(kin: Kinship, target: ModelShape, draft: ModelShape) -> float:
    return usual_acceptance(kin, target, draft).middle


def test_the_nearer_the_kin_the_more_is_accepted() -> None:
    target, draft = shape(32e9), shape(0.5e9)
    rates = [middle(kin, target, draft) for kin in (Kinship.SAME_FAMILY, Kinship.RELATED, Kinship.OTHER)]
    assert rates == sorted(rates, reverse=True)


def test_a_coarser_copy_is_accepted_less() -> None:
    target = shape(135e6, WeightFormat.F32)
    rates = [middle(Kinship.SAME_WEIGHTS, target, shape(135e6, format_)) for format_ in WeightFormat]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 4.5


def test_a_larger_draft_is_accepted_more() -> None:
    rates = [middle(Kinship.SAME_FAMILY, shape(70e9), shape(weights)) for weights in (0.5e9, 1e9, 8e9)]
    assert rates == sorted(rates)


def test_kinds_shift_the_rate_about_the_mean() -> None:
    usual = UsualAcceptance(math.log(0.8 / 0.2), 0.5)
    assert usual.rate("unknown") == pytest.approx(0.8)
    assert usual.rate("code") > usual.rate("unknown") > usual.rate("prose")
    mean = sum(math.log(usual.rate(kind) / (1 - usual.rate(kind))) for kind in KINDS) / len(KINDS)
    assert mean == pytest.approx(usual.middle, abs=0.05)
    assert usual.rate("code", -1.0) < usual.rate("code") < usual.rate("code", 1.0)


@given(st.integers(0, 500), st.floats(0.0, 1.0))
def test_what_was_seen_takes_over_and_narrows_the_range(tested: int, share: float) -> None:
    usual = UsualAcceptance(math.log(0.8 / 0.2), 0.5)
    known = known_acceptance(tested * share, tested, usual)
    assert known.spread <= usual.spread
    low, high = sorted((0.8, share))
    assert low - 0.01 <= known.rate("unknown") <= max(high, 0.8) + 0.01
    if tested == 500 and 0.1 < share < 0.9:
        assert known.rate("unknown") == pytest.approx(share, abs=0.02)


def test_texts_that_repeat_are_found_more_often() -> None:
    rewrite, prose = lookup_habit("rewrite"), lookup_habit("prose")
    assert rewrite.found > prose.found
    assert rewrite.right > prose.right
    assert lookup_habit("code", -1.0).found < lookup_habit("code").found < lookup_habit("code", 1.0).found
    assert 0.0 < lookup_habit("unknown").found < 1.0


PUBLISHED = [
    ("RTX 3090 Ti", 32.8e9, 19.9e9, 0.49e9, 0.53e9, 2.07),
    ("RTX 3090 Ti", 8.0e9, 4.9e9, 1.24e9, 0.81e9, 1.36),
    ("H200", 70.6e9, 70.6e9, 8.0e9, 8.0e9, 2.23),
]
"""Graphics processor, weights and bytes of target and draft, speed-up. TensorRT-LLM's 2.86 for a 1B beside the same 70B
lies above its range (to 2.7): a check costs less there than is assumed here."""


@pytest.mark.parametrize(("device", "weights", "size", "draft_weights", "draft_size", "speed_up"), PUBLISHED)
def test_published_speed_ups_lie_within_their_ranges(
    device: str, weights: float, size: float, draft_weights: float, draft_size: float, speed_up: float
) -> None:
    """None of these machines was ever ours: a sanity check of costs and acceptance together, and of the ranges."""
    label = "Q8_0" if size >= weights else "Q4_K_M"
    target, draft = (estimated_shape(round(b), label, w) for b, w in ((size, weights), (draft_size, draft_weights)))
    assert target is not None
    assert draft is not None
    machine = MachineSpeed(gpu_bandwidth=published_bandwidth([device]))
    usual = usual_acceptance(Kinship.SAME_FAMILY, target, draft)
    found = predict(machine.costs(target), machine.costs(draft), usual).speed_up
    assert found.low <= speed_up <= found.high
    # A range that holds everything would be no prediction.
    assert found.high / found.low < 2.2
