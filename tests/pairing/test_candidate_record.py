from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.memory import Fit
from forespeak.pairing.candidate_record import candidate_record, speed_words, verdict_words
from forespeak.pairing.candidates import LOOKUP_SOURCES, Candidate, CandidateKind, RoughMemory
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.offers import Offer, Place
from forespeak.pairing.ranking import KindPrediction, Measurement, Prediction, Range
from forespeak.pairing.verdict import Verdict, VerdictKind
from forespeak.speculation.trace import Source

PREDICTION = Prediction(
    Range(10.0, 9.0, 11.0), Range(16.0, 12.0, 20.0), Range(1.6, 1.2, 2.0), 1.6, (KindPrediction("code", 1.6, 0.8, 4),)
)
MEASURED = Measurement(
    10.0, 18.0, Range(1.8, 1.7, 1.9), 0.9, 300, (("code", 1.8),), "2030-01-02T03:04:05+00:00", "e", "v"
)
OFFER = Offer("small", Place.HERE, parse_name("Small-1B"), 1000, path=Path("small.gguf"))
SAME = Verdict(VerdictKind.SAME, True, "Both have the same 4 tokens.", {"differences": 0})
DRAFT = Candidate(CandidateKind.DRAFT_MODEL, "small", OFFER, (Source.DRAFT_MODEL,), SAME, prediction=PREDICTION)


def test_all_that_is_known_is_in_the_json() -> None:
    memory = RoughMemory(Fit.FITS, "Both fit.")
    record = candidate_record(replace(DRAFT, memory=memory, measurement=MEASURED))
    assert json.loads(json.dumps(record))
    assert (record["path"], record["verdict"], record["reason"]) == ("small.gguf", "same", SAME.reason)
    assert record["evidence"] == {"differences": 0}
    assert record["memory"] == {"fit": "fits", "sentence": "Both fit."}
    assert record["prediction"]["speed_up"] == {"value": 1.6, "low": 1.2, "high": 2.0}
    assert record["measurement"]["by_kind"] == {"code": 1.8}
    assert record["usable"]
    assert record["excluded"] is None


def test_a_way_without_a_model_has_the_targets_own_tokens() -> None:
    lookup = Candidate(CandidateKind.LOOKUP, "Look words up in the text", sources=LOOKUP_SOURCES)
    record = candidate_record(lookup)
    assert (record["verdict"], record["path"], record["size_bytes"]) == ("same", None, None)
    assert record["sources"] == ["prompt-lookup", "ngram-cache"]
    assert candidate_record(replace(lookup, excluded="No."))["verdict"] == "cannot"


def test_what_could_not_be_read_cannot() -> None:
    record = candidate_record(replace(DRAFT, verdict=None))
    assert (record["verdict"], record["reason"]) == ("cannot", "Its header could not be read.")
    assert candidate_record(replace(DRAFT, verdict=None, excluded="Not supported."))["reason"] == "Not supported."


@pytest.mark.parametrize("kind", list(VerdictKind))
@pytest.mark.parametrize("usable", [True, False])
def test_every_verdict_has_words(kind: VerdictKind, usable: bool) -> None:
    assert verdict_words(replace(DRAFT, verdict=replace(SAME, kind=kind, usable=usable)))


def test_a_measurement_comes_before_a_prediction() -> None:
    assert speed_words(DRAFT) == "1.60× (1.20 to 2.00), predicted"
    assert speed_words(replace(DRAFT, measurement=MEASURED)) == "1.80× (1.70 to 1.90), measured"
    assert speed_words(replace(DRAFT, prediction=None)) == ""
