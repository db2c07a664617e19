from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Progress
from forespeak.engines.parity_result import DifferenceKind, FirstDifference, ParityCase, ParityResult
from forespeak.speculation.trace import Source
from forespeak.ui.parity_card import ParityCard
from forespeak.ui.parity_controller import ParityState, ParityStatus
from forespeak.ui.theme import DARK
from parity_ties import TIE

CASES = tuple(ParityCase(f"prompt {number}", 0.0, 48, 20, 15) for number in range(24))
RESULT = ParityResult(
    CASES, 24, (Source.DRAFT_MODEL,), 2e-5, 30.0, "2025-11-29T12:00:00+00:00", "toy 1", "0.1", ("auto", "4 tokens")
)


def with_difference(difference: FirstDifference) -> ParityResult:
    return replace(RESULT, cases=(*CASES[:-1], replace(CASES[-1], differences=(difference,))))


@pytest.fixture
def card(qtbot: QtBot) -> ParityCard:
    made = ParityCard()
    qtbot.addWidget(made)
    made.resize(284, 300)
    made.show()
    return made


def test_it_hides_without_a_pair(card: ParityCard) -> None:
    card.show_status(ParityStatus(ParityState.IDLE))
    assert card.isVisible()
    card.show_status(ParityStatus(ParityState.UNAVAILABLE))
    assert not card.isVisible()


def test_a_new_pair_can_be_checked(card: ParityCard, qtbot: QtBot) -> None:
    card.show_status(ParityStatus(ParityState.IDLE))
    assert card._headline.text() == "Not checked yet"
    assert card._button.text() == "Check now"
    with qtbot.waitSignal(card.checkRequested):
        card._button.click()


def test_a_running_check_shows_how_far_it_is(card: ParityCard, qtbot: QtBot) -> None:
    status = ParityStatus(ParityState.RUNNING, None, Progress(0.25, "code, greedy"), 100.0)
    card.show_status(status)
    assert card._bar.isVisible()
    assert card._bar.value() == 25
    assert card._note.text() == "code, greedy\nabout 2 min left"
    with qtbot.waitSignal(card.stopRequested):
        card._button.click()
    card.show_status(replace(status, stopping=True, seconds_left=5.0))
    assert not card._button.isEnabled()
    assert "less than a minute" in card._note.text()


def test_a_result_is_counted_and_dated(card: ParityCard) -> None:
    card.show_status(ParityStatus(ParityState.IDLE, RESULT))
    assert card._headline.text() == "24 of 24 replies"
    assert card._note.text() == "Checked on 29 November 2025."
    assert card._button.text() == "Check again"
    assert not card._why_button.isVisible()
    assert not card._bar.isVisible()


def test_a_tie_is_explained_when_asked(card: ParityCard, qtbot: QtBot) -> None:
    card.show_status(ParityStatus(ParityState.IDLE, with_difference(TIE)))
    assert card._headline.text().startswith("23 of 24")
    assert "numeric ties" in card._note.text()
    assert not card._why.isVisible()
    card._why_button.click()
    assert card._why.isVisible()
    assert "“ the”" in card._why.text()
    card._why_button.click()
    assert not card._why.isVisible()


def test_a_fault_stands_out(card: ParityCard) -> None:
    card.set_theme(DARK)
    card.show_status(ParityStatus(ParityState.IDLE, with_difference(replace(TIE, kind=DifferenceKind.FAULT))))
    assert DARK.danger in card._headline.styleSheet()
    assert "a fault of Forespeak" in card._note.text()
    card.show_status(ParityStatus(ParityState.IDLE, RESULT))
    assert DARK.ink in card._headline.styleSheet()


def test_what_was_stopped_or_shows_nothing_says_so(card: ParityCard) -> None:
    few = replace(RESULT, cases=tuple(replace(case, tested=0) for case in CASES[:5]))
    card.show_status(ParityStatus(ParityState.IDLE, few, problem="The engine stopped."))
    words = card._note.text()
    assert words.startswith("The engine stopped.\nStopped before the other 19.")
    assert "shows nothing" in words
