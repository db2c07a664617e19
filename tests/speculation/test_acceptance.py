from __future__ import annotations

import pytest

from forespeak.speculation.acceptance import Acceptance
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token


def step(accepted: list[float | None], rejected: float | None = None, *, loses: bool = False) -> Step:
    """A step whose accepted tokens, and the first rejected one, had these probabilities in the draft."""
    emitted = [Token(1, "x", Origin.ACCEPTED, Source.DRAFT_MODEL, 0.5, q) for q in accepted]
    own = Token(1, "x", Origin.CORRECTED if loses else Origin.BONUS)
    lost = (DraftedToken(2, "y", draft_probability=rejected), DraftedToken(2, "y", draft_probability=0.9))
    return Step(1, (*emitted, own), lost if loses else ())


def test_nothing_known_is_hopeful() -> None:
    acceptance = Acceptance(prior=0.8)
    assert acceptance.mean == 0.8
    assert acceptance.hopeful > 0.85


def test_only_the_first_rejected_token_of_a_step_counts() -> None:
    acceptance = Acceptance(prior=0.8)
    acceptance.observe(step([0.9, 0.9], 0.3, loses=True))
    assert acceptance.mean == pytest.approx((2 + 4 * 0.8) / (3 + 4))


def test_it_learns_what_a_confidence_is_worth() -> None:
    acceptance = Acceptance()
    for _ in range(40):
        acceptance.observe(step([0.95]))
        acceptance.observe(step([], 0.2, loses=True))
    assert acceptance.given(0.95) > 0.9
    assert acceptance.given(0.2) < 0.15
    assert acceptance.chances([0.95, 0.2, 0.95])[2] < 0.15


def test_it_learns_what_a_place_is_worth() -> None:
    """The third token is always wrong, whatever its confidence; the others never are."""
    acceptance = Acceptance()
    for _ in range(60):
        acceptance.observe(step([0.9, 0.9], 0.9, loses=True))
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
        acceptance.observe(step([0.9, 0.9, 0.9]))
        acceptance.observe(step([0.9], 0.9, loses=True))
        acceptance.observe(step([], 0.9, loses=True))
    # Of the first tokens two thirds are accepted, of the second ones half, of the third ones all.
    assert acceptance.given(0.9, 0) == pytest.approx(2 / 3, abs=0.08)
    assert acceptance.given(0.9, 1) == pytest.approx(1 / 2, abs=0.08)
    assert acceptance.given(0.9) == pytest.approx(4 / 6, abs=0.08)


def test_what_is_certain_is_not_hoped_for() -> None:
    acceptance = Acceptance()
    for _ in range(300):
        acceptance.observe(step([], 0.5, loses=True))
    assert acceptance.hopeful - acceptance.mean < 0.02


def test_old_counts_fade() -> None:
    acceptance = Acceptance()
    for _ in range(2000):
        acceptance.observe(step([0.9]))
    for _ in range(400):
        acceptance.observe(step([], 0.9, loses=True))
    assert acceptance.mean < 0.4
