"""What is offered for each trouble with the Hub."""

from __future__ import annotations

import pytest

from forespeak.errors import UserFacingError
from forespeak.models.hub_errors import HubError, HubProblem, offline_error
from forespeak.ui.hub_problems import problem_words
from ui.hub_doubles import gated, missing, no_network, rate_limited


@pytest.mark.parametrize(
    ("error", "primary", "secondary"),
    [
        (offline_error(), "Open the settings", "Try again"),
        (no_network(), "Try again", ""),
        (rate_limited(), "Try again", ""),
        (missing("o/M"), "Open the settings", "Try again"),
        (gated("o/M"), "Try again", "Open the page"),
        (UserFacingError("Something else."), "Try again", ""),
    ],
)
def test_the_way_out(error: UserFacingError, primary: str, secondary: str) -> None:
    words = problem_words(error)
    assert (words.primary, words.secondary) == (primary, secondary)
    assert words.title == error.what
    assert error.remedy in words.text


@pytest.mark.parametrize("problem", list(HubProblem))
def test_every_problem_has_a_picture_and_a_way_out(problem: HubProblem) -> None:
    words = problem_words(HubError(problem, "What.", "Why.", "Remedy."))
    assert words.icon
    assert words.primary
    assert words.text == "Why.\nRemedy."
