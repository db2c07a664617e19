from __future__ import annotations

from dataclasses import replace

from forespeak.engines.parity_result import (
    DifferenceKind,
    FirstDifference,
    ParityCase,
    ParityResult,
    TokenScores,
)
from forespeak.pairing.parity_words import day, explanation, headline, remark
from forespeak.speculation.trace import Source
from parity_ties import TIE

FAULT = FirstDifference(
    "4 tokens", 0, "A", "\n", TokenScores(-0.1, None), TokenScores(-0.1, None), 0.0, 1e-3, DifferenceKind.FAULT
)


def result_with(*differences: tuple[FirstDifference, ...], planned: int | None = None) -> ParityResult:
    cases = tuple(ParityCase(f"p{at}", 0.0, 48, 20, 15, found) for at, found in enumerate(differences))
    return ParityResult(
        cases,
        len(cases) if planned is None else planned,
        (Source.DRAFT_MODEL,),
        2e-5,
        30.0,
        "2026-11-29T21:00:00+00:00",
        "llama.cpp 1",
        "0.1",
    )


def test_equal_replies_need_no_remark() -> None:
    result = result_with((), ())
    assert headline(result) == "Same words with and without speculation: 2 of 2."
    assert remark(result) == ""
    assert day(result) == "29 November 2026"


def test_faults_and_ties_are_told_apart() -> None:
    result = result_with((), (TIE,), (TIE, FAULT))
    assert headline(result).endswith("1 of 3.")
    assert remark(result) == "1 reply differs, which is a fault. 1 reply differs by a numeric tie, as shown."
    assert result.first_difference is FAULT


def test_what_shows_nothing_says_so() -> None:
    result = result_with(())
    untested = replace(result, cases=(replace(result.cases[0], tested=0),))
    assert "shows nothing" in remark(untested)
    assert "nothing is known" in remark(replace(result, cases=(), planned=24))
    assert "stopped before the other 23" in headline(replace(result, planned=24))


def test_a_tie_is_explained_with_its_scores() -> None:
    words = explanation(TIE)
    assert words.startswith(
        "At token 7 the plain reply has “ the”, the one with as many drafted tokens as pay has “ a”."
    )
    assert "they score −0.6931 and −0.6934, the first ahead by 0.00025" in words
    assert "they score −0.6934 and −0.6932, the second ahead by 0.00025" in words
    assert "a numeric tie" in words
    assert "may move by 0.001." in words


def test_a_fault_is_called_one() -> None:
    words = explanation(FAULT)
    assert "with drafts of 4 tokens has “⏎”." in words
    assert "left out by the filters" in words
    assert words.endswith("That is a fault.")
    assert "more than the 0.001" in explanation(replace(FAULT, moved=0.5))


def test_a_reply_that_ended_is_explained() -> None:
    nothing = TokenScores(None, None)
    words = explanation(replace(FAULT, drafted_text="", alone=nothing, batched=nothing))
    assert "has nothing. One of the two ended" in words
