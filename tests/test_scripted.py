"""The toy model must be as strict as a real engine, or the tests that lean on it prove nothing."""

from __future__ import annotations

import numpy as np
import pytest

from scripted import Evaluated, ScriptedModel, agreeing, letters, random_scores, reciting


def model() -> ScriptedModel:
    return ScriptedModel(random_scores(5, 1), letters(5), context_length=6, batch_limit=4, output_limit=2)


@pytest.mark.parametrize(
    ("tokens", "outputs"),
    [([], 0), ([0] * 5, 0), ([0] * 3, 3), ([0], 2), ([0], -1), ([5], 1), ([-1], 1)],
    ids=["none", "batch limit", "output limit", "more rows than tokens", "negative", "too large an id", "negative id"],
)
def test_what_a_real_engine_would_die_of_is_refused(tokens: list[int], outputs: int) -> None:
    toy = model()
    with pytest.raises(ValueError, match="token"):
        toy.evaluate(tokens, outputs)
    assert (toy.tokens, toy.evaluated) == ((), [])


def test_the_context_cannot_overflow() -> None:
    toy = model()
    toy.evaluate([0, 1, 2, 3], 0)
    with pytest.raises(ValueError, match="overflow"):
        toy.evaluate([0, 1, 2], 0)
    assert toy.evaluate([0, 1], 2).shape == (2, 5)
    assert toy.evaluated == [Evaluated((), (0, 1, 2, 3), 0), Evaluated((0, 1, 2, 3), (0, 1), 2)]
    assert toy.evaluated_count == 6


def test_rows_are_those_of_the_text_and_last_until_the_next_evaluation() -> None:
    toy = model()
    rows = toy.evaluate([3, 1, 4], 2)
    np.testing.assert_array_equal(rows, [toy.scores((3, 1)), toy.scores((3, 1, 4))])
    toy.evaluate([0], 0)
    assert np.isnan(rows).all()


def test_cutting() -> None:
    toy = model()
    toy.evaluate([3, 1, 4], 0)
    toy.truncate(5)
    assert list(toy.tokens) == [3, 1, 4]
    toy.truncate(2)
    assert list(toy.tokens) == [3, 1]
    stubborn = ScriptedModel(random_scores(5, 1), letters(5), can_roll_back=False)
    stubborn.evaluate([3, 1, 4], 0)
    stubborn.truncate(3)
    assert len(stubborn.tokens) == 3
    stubborn.truncate(2)
    assert len(stubborn.tokens) == 0


def test_scores_of_each_kind() -> None:
    scores = random_scores(5, 1, order=2)
    np.testing.assert_array_equal(scores((0, 3, 4)), scores((9, 3, 4)))
    assert not np.array_equal(scores((3, 4)), scores((4, 3)))
    same = [
        np.array_equal(agreeing(scores, 0.7, 2)((a, b, c)), scores((b, c)))
        for a in range(9)
        for b in range(9)
        for c in range(9)
    ]
    assert 0.6 < np.mean(same) < 0.8
    told = reciting([2, 4], 3, 5, then=1)
    assert [int(np.argmax(told((0,) * length))) for length in (3, 4, 5)] == [2, 4, 1]
