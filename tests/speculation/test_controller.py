"""Draft lengths."""

from __future__ import annotations

import pytest

from forespeak.speculation.controller import DEFAULT_DRAFT_LENGTH, FixedDraftLength
from forespeak.speculation.trace import Step


def test_a_fixed_length_stays_whatever_happens() -> None:
    controller = FixedDraftLength(3)
    for index in range(4):
        assert controller.next_length() == 3
        controller.observe(Step(index, ()))
    assert controller.state.active
    assert controller.state.draft_length == 3
    assert "3 tokens" in controller.state.reason


def test_one_token_is_not_called_tokens() -> None:
    assert "1 token " in FixedDraftLength(1).state.reason


def test_zero_is_off_and_says_so() -> None:
    controller = FixedDraftLength(0)
    assert controller.next_length() == 0
    assert not controller.state.active
    assert "zero" in controller.state.reason


def test_the_default_and_the_bounds() -> None:
    assert FixedDraftLength().next_length() == DEFAULT_DRAFT_LENGTH
    with pytest.raises(ValueError, match="-1"):
        FixedDraftLength(-1)
