"""A candidate as JSON values, and in the few words of a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from forespeak.models.memory import MemoryPlan
from forespeak.pairing.candidates import Candidate, CandidateKind, MemoryFit
from forespeak.pairing.named_pair import measurement_record
from forespeak.pairing.verdict import VerdictKind

_OWN_TOKENS = "It proposes the target's own tokens."

Json = dict[str, Any]


def candidate_record(candidate: Candidate) -> Json:
    """`verdict` is one of the codes of VerdictKind; `excluded` says why a candidate is out of the question, if it is.

    A way without a second model has the target's own vocabulary. Where a header could not be read the verdict is
    `cannot`, with `reason` saying so.
    """
    offer, verdict = candidate.offer, candidate.verdict
    group = None if offer is None else offer.group
    making = None if offer is None else offer.making
    record: Json = {
        "kind": candidate.kind.name.lower(),
        "name": candidate.name,
        "path": None if offer is None or offer.path is None else str(offer.path),
        "place": None if offer is None else offer.place.name.lower(),
        "repo": None if group is None else group.repo,
        "revision": None if group is None else group.revision,
        "files": [] if group is None else [file.path for file in group.files],
        "making": None
        if making is None
        else {"format": making.number_format.value, "destination": str(making.destination)},
        "size_bytes": None if offer is None else offer.size_bytes,
        "sources": [source.value for source in candidate.sources],
        "usable": candidate.excluded is None,
        "excluded": candidate.excluded,
    }
    if verdict is not None:
        record |= {
            "verdict": verdict.kind.code,
            "reason": verdict.reason,
            "evidence": verdict.evidence,
            "obstacle": None if verdict.obstacle is None else verdict.obstacle.name.lower(),
        }
    elif candidate.kind is CandidateKind.LOOKUP and candidate.excluded is None:
        record |= {"verdict": VerdictKind.SAME.code, "reason": _OWN_TOKENS, "evidence": {}, "obstacle": None}
    else:
        reason = candidate.excluded or "Its header could not be read."
        record |= {"verdict": VerdictKind.CANNOT.code, "reason": reason, "evidence": {}, "obstacle": None}
    return {
        **record,
        "memory": None if candidate.memory is None else _memory(candidate.memory),
        "prediction": None if candidate.prediction is None else asdict(candidate.prediction),
        "measurement": None if candidate.measurement is None else measurement_record(candidate.measurement),
        "advice": [advice.words for advice in candidate.advice],
    }


def _memory(plan: MemoryFit) -> Json:
    found: Json = {"fit": plan.fit.value, "sentence": plan.sentence}
    if isinstance(plan, MemoryPlan):
        found |= {"needed_bytes": plan.needed_bytes, "context_length": plan.context_length}
    return found


def verdict_words(candidate: Candidate) -> str:
    """A verdict in two or three words."""
    if candidate.verdict is None:
        return "needs no model" if candidate.kind is CandidateKind.LOOKUP else ""
    if candidate.verdict.kind is VerdictKind.DIFFERS and candidate.verdict.usable:
        return "nearly the same"
    return {
        VerdictKind.SAME: "same",
        VerdictKind.SAME_PADDED: "same, padded",
        VerdictKind.DIFFERS: "differs",
        VerdictKind.OTHER_TOKENIZER: "other tokenizer",
        VerdictKind.CANNOT: "cannot",
    }[candidate.verdict.kind]


def speed_words(candidate: Candidate) -> str:
    """Measured or predicted speed-up with its range, such as `1.62× (1.40 to 1.87), measured`; empty if unknown."""
    if candidate.measurement is not None:
        found, how = candidate.measurement.speed_up, "measured"
    elif candidate.prediction is not None:
        found, how = candidate.prediction.speed_up, "predicted"
    else:
        return ""
    return f"{found.value:.2f}× ({found.low:.2f} to {found.high:.2f}), {how}"
