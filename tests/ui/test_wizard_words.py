from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.engine import NumberFormat
from forespeak.models.good_pairs import GoodModel
from forespeak.models.memory import Fit
from forespeak.pairing.candidates import Candidate, CandidateKind, Candidates, RoughMemory
from forespeak.pairing.making import made_path
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.offers import Making, Offer, Place, from_good, from_hub
from forespeak.pairing.ranking import Measurement, Prediction, Range
from forespeak.pairing.verdict import Verdict, VerdictKind
from forespeak.ui.badge import BadgeTone
from forespeak.ui.wizard_finder import Found
from forespeak.ui.wizard_words import (
    Outcome,
    day_words,
    key_of,
    line_of,
    outcome_of,
    outcome_words,
    usual_name,
    work_words,
)
from ui.wizard_doubles import FREE, differs, hub_group, plan, same

RANGE = Range(1.5, 1.3, 1.7)
PREDICTION = Prediction(Range(50.0, 45.0, 55.0), Range(75.0, 65.0, 85.0), RANGE, 1.5, ())
TARGET = Offer("Big", Place.HERE, parse_name("Big"), 8_500_000_000, "Q8_0", path=Path("/models/big.gguf"))
DRAFT = Offer("Small", Place.HERE, parse_name("Small"), 800_000_000, "Q4_0", path=Path("/models/small.gguf"))
FOUND = Found(TARGET, Candidates((), None), 50.0, True, FREE)


def candidate(verdict: Verdict | None = None, **more: object) -> Candidate:
    plain = Candidate(CandidateKind.DRAFT_MODEL, "Small", DRAFT, verdict=verdict or same())
    return replace(plain, **more)  # type: ignore[arg-type]


def measured(value: float, low: float, high: float, acceptance: float | None = 0.7) -> Measurement:
    when = "2026-11-30T10:00:00+00:00"
    return Measurement(50.0, 50.0 * value, Range(value, low, high), acceptance, 300, (), when, "llama", "1")


def test_a_row_says_what_it_is_takes_and_brings() -> None:
    line = line_of(candidate(memory=plan(8_500_000_000, 800_000_000), prediction=PREDICTION), FOUND)
    assert (line.name, line.place) == ("Small · Q4_0", "on disk · 800 MB")
    assert (line.badge, line.tone, line.reason) == ("same vocabulary", BadgeTone.GOOD, "128,256 tokens, all equal")
    assert (line.memory, line.memory_note) == ("10.2 of 22.1 GB", "both, 8k context")
    assert (line.gain, line.gain_note) == ("1.3 – 1.7×", "predicted")
    assert line.is_here
    assert line.problem == ""
    assert "65 to 85 tokens/s with drafts, 50 without" in line.details


def test_a_measurement_takes_the_place_of_the_prediction() -> None:
    line = line_of(candidate(prediction=PREDICTION, measurement=measured(1.43, 1.3, 1.6)), FOUND)
    assert line.gain == "1.43×"
    assert line.gain_note.startswith("measured 30")
    assert "Predicted" not in line.details


@pytest.mark.parametrize(
    ("verdict", "badge", "tone"),
    [
        (Verdict(VerdictKind.SAME_PADDED, True, "", {"padding": 128}), "same but padded", BadgeTone.GOOD),
        (Verdict(VerdictKind.DIFFERS, True, "", {"differences": 2}), "nearly the same", BadgeTone.GOOD),
        (Verdict(VerdictKind.OTHER_TOKENIZER, False, "Another kind."), "other tokenizer", BadgeTone.CAUTION),
        (Verdict(VerdictKind.CANNOT, False, "It is a projector."), "cannot", BadgeTone.BAD),
    ],
)
def test_verdicts_as_badges(verdict: Verdict, badge: str, tone: BadgeTone) -> None:
    excluded = None if verdict.usable else verdict.reason
    line = line_of(candidate(verdict, excluded=excluded), FOUND)
    assert (line.badge, line.tone) == (badge, tone)


def test_the_first_difference_is_told_with_both_texts() -> None:
    verdict = differs()
    line = line_of(candidate(verdict, excluded=verdict.reason), FOUND)
    assert line.reason == "token 0: “!” in the target, “<|begin_of_text|>” in the draft"
    assert line.problem == f"{verdict.reason}\nThe target has 128,256 tokens, the draft 151,936."


def test_what_keeps_an_equal_vocabulary_out_is_named() -> None:
    large = candidate(memory=RoughMemory(Fit.TOO_LARGE, "Both need 30 GB."), excluded="Both need 30 GB.")
    assert line_of(large, FOUND).badge == "too large"
    slow = candidate(prediction=PREDICTION, excluded="It is as slow as the target itself.")
    assert line_of(slow, FOUND).badge == "too slow"
    head = Candidate(CandidateKind.DRAFT_HEAD, "Head", DRAFT, excluded="Draft heads are not supported here yet.")
    assert line_of(head, FOUND).badge == "not possible yet"
    problem = "The target is as coarse as that already (Q4_K_M): a copy would be no faster."
    line = line_of(candidate(kind=CandidateKind.REQUANTISED, excluded=problem), FOUND)
    assert (line.badge, line.problem) == ("cannot be made", problem)


def test_what_is_to_be_made_and_what_was_made_say_so() -> None:
    to = made_path(Path("/models"), Path("/models/big.gguf"), NumberFormat.Q2_K)
    making = Making(Path("/models/big.gguf"), to, NumberFormat.Q2_K)
    offer = replace(DRAFT, name="Made from Big · Q2_K", label="Q2_K", path=None, place=Place.MADE, making=making)
    line = line_of(candidate(kind=CandidateKind.REQUANTISED, name=offer.name, offer=offer), FOUND)
    assert (line.name, line.place) == ("Made from Big · Q2_K", "to be made, about 800 MB")
    assert line.makes
    assert not line.is_here
    assert "written anew" in line.details
    there = line_of(candidate(offer=replace(DRAFT, path=to)), FOUND)
    assert there.place == "made from the target · 800 MB"
    assert there.is_here
    assert not there.makes


def test_what_is_on_the_hub_has_one_key_however_much_is_known_of_it() -> None:
    group = hub_group()
    good = GoodModel("Llama 3.2 3B Instruct", group.repo, group.files[0].path, "Q5_K_M", 3.2, 2_020_000_000)
    by_name, by_files = candidate(offer=from_good(good), verdict=None), candidate(offer=from_hub(group))
    assert key_of(by_name) == key_of(by_files) == f"{group.repo}/{group.files[0].path}"
    line = line_of(replace(by_name, verdict=None), FOUND)
    assert not line.is_here
    assert line.badge == "not compared yet"
    assert group.repo in line.place


@pytest.mark.parametrize(
    ("result", "outcome", "why"),
    [
        (measured(1.6, 1.4, 1.8), Outcome.WORTH_IT, "70 % of the drafted tokens"),
        (measured(0.8, 0.7, 0.9, 0.3), Outcome.SLOWER, "Only 30 %"),
        (measured(0.8, 0.7, 0.9, 0.8), Outcome.SLOWER, "drafting them took longer"),
        (measured(1.02, 0.97, 1.07), Outcome.NO_DIFFERENCE, "about what drafting and testing them cost"),
        (measured(1.3, 0.9, 1.9), Outcome.NO_DIFFERENCE, "The prompts differed much"),
        (measured(1.0, 0.9, 1.1, None), Outcome.NO_DIFFERENCE, "Drafting pauses: it does not pay."),
    ],
)
def test_a_result_in_words(result: Measurement, outcome: Outcome, why: str) -> None:
    assert outcome_of(result) is outcome
    head, because = outcome_words(result, ("Drafting pauses: it does not pay.",))
    assert why in because
    assert f"{result.speed_up.value:.2f}× as fast" in head


def test_looking_up_what_does_not_repeat() -> None:
    _, why = outcome_words(measured(1.0, 0.9, 1.1, None), looks_up=True)
    assert "nothing to look up" in why


def test_names_and_days() -> None:
    assert usual_name("Big", "Small") == "Big + Small"
    assert usual_name("Big", None) == "Big + n-grams"
    assert "2019" in day_words("2019-03-04T10:00:00+00:00")
    assert work_words("code") == "Code"
