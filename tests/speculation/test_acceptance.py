from __future__ import annotations

import pytest

from forespeak.speculation.acceptance import Acceptance
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token


def observe(acceptance: Acceptance, accepted: list[float], rejected: float | None = None) -> None:
    """A step in whose accepted tokens, and in the first rejected one if any was, the draft had these confidences."""
    emitted = [Token(1, "x", Origin.ACCEPTED, Source.DRAFT_MODEL) for _ in accepted]
    own = Token(1, "x", Origin.BONUS if rejected is None else Origin.CORRECTED)
    lost = () if rejected is None else (DraftedToken(2, "y"), DraftedToken(2, "y"))
    acceptance.observe(Step(1, (*emitted, own), lost), accepted if rejected is None else [*accepted, rejected, 0.9])


def test_nothing_known_is_hopeful() -> None:
    acceptance = Acceptance(prior=0.8)
    assert acceptance.mean == 0.8
    assert acceptance.hopeful > 0.85


def test_only_the_first_rejected_token_of_a_step_counts() -> None:
    acceptance = Acceptance(prior=0.8)
    observe(acceptance, [0.9, 0.9], 0.3)
    assert acceptance.mean == pytest.approx((2 + 4 * 0.8) / (3 + 4))


def test_it_learns_what_a_confidence_is_worth() -> None:
    acceptance = Acceptance()
    for _ in range(40):
        observe(acceptance, [0.95])
        observe(acceptance, [], 0.2)
    assert acceptance.given(0.95) > 0.9
    assert acceptance.given(0.2) < 0.15
    assert acceptance.chances([0.95, 0.2, 0.95])[2] < 0.15


def test_it_learns_what_a_place_is_worth() -> None:
    """The third token is always wrong, whatever its confidence; the others never are."""
    acceptance = Acceptance()
    for _ in range(60):
        observe(acceptance, [0.9, 0.9], 0.9)
    assert acceptance.given(0.9, 0) > 0.7
    assert acceptance.given(0.9, 2) < 0.3 * acceptance.given(0.9, 0)
    one, two, three = acceptance.chances([0.9, 0.9, 0.9])
    assert two > 0.5 * one
    assert three < 0.3 * two
    other = Acceptance()
    other.recall(acceptance.learned())
    assert other.chances([0.9] * 5) == acceptance.chances([0.9] * 5)


def test_where_all_places_are_alike_none_is_worth_more() -> None:
    acceptance = Acceptance()
    for _ in range(200):
        observe(acceptance, [0.9, 0.9, 0.9])
        observe(acceptance, [0.9], 0.9)
        observe(acceptance, [], 0.9)
    # Of the first tokens two thirds are accepted, of the second ones half, of the third ones all.
    assert acceptance.given(0.9, 0) == pytest.approx(2 / 3, abs=0.08)
    assert acceptance.given(0.9, 1) == pytest.approx(1 / 2, abs=0.08)
    assert acceptance.given(0.9) == pytest.approx(4 / 6, abs=0.08)


def test_what_is_certain_is_not_hoped_for() -> None:
    acceptance = Acceptance()
    for _ in range(300):
        observe(acceptance, [], 0.5)
    assert acceptance.hopeful - acceptance.mean < 0.02


@pytest.mark.parametrize("mean", [0.3, 0.8, 0.98])
def test_before_a_confidence_was_met_more_of_it_promises_more(mean: float) -> None:
    acceptance = Acceptance(prior=mean)
    promised = [acceptance.given(confidence / 10.0) for confidence in range(11)]
    assert promised == sorted(promised)
    assert promised[0] < mean < promised[-1] <= 0.99


def test_what_was_not_found_worth_a_test_counts_as_it_would_probably_have_gone() -> None:
    acceptance = Acceptance(prior=0.8)
    acceptance.observe(Step(1, (Token(1, "x", Origin.TARGET),), ignored=(DraftedToken(2, "y"),)), [0.0])
    assert acceptance.mean < 0.8
    assert acceptance.given(0.95) > 0.8


def test_old_counts_fade() -> None:
    acceptance = Acceptance()
    for _ in range(2000):
        observe(acceptance, [0.9])
    for _ in range(400):
        observe(acceptance, [], 0.9)
    assert acceptance.mean < 0.4
