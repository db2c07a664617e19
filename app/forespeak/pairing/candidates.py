"""Everything that could draft for a target: models here, known good ones, the Hub's, and ways without a second model.

Pure functions over listings that others fetch. Each candidate carries what is known of it, and where it is out of the
question the reason why, so that no list is ever empty without an explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from forespeak.models.gguf import GgufKind
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import Fit, fit_of
from forespeak.models.sizes import size_words
from forespeak.pairing.advice import Advice, draft_advice, target_advice
from forespeak.pairing.compatibility import Verdict
from forespeak.pairing.machine_speed import MachineSpeed, ModelCosts
from forespeak.pairing.model_names import kinship
from forespeak.pairing.offers import Offer, Place, same_thing
from forespeak.pairing.ranking import (
    Measurement,
    Prediction,
    predict,
    predict_lookup,
    rank_key,
)
from forespeak.pairing.usual_acceptance import KINDS, UsualAcceptance, known_acceptance, usual_acceptance
from forespeak.speculation.trace import Source


class CandidateKind(Enum):
    """What drafts."""

    DRAFT_MODEL = "draft model"
    LOOKUP = "looked-up text"
    REQUANTISED = "a draft made from the target"
    MTP = "the target's own prediction layers (MTP)"
    DRAFT_HEAD = "draft head (EAGLE-3)"


class MemoryFit(Protocol):
    """What is asked of a memory plan (`models.memory.MemoryPlan`, or a `RoughMemory`) for target and draft together."""

    @property
    def fit(self) -> Fit: ...

    @property
    def sentence(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RoughMemory:
    """From sizes alone, where a header is not known yet."""

    fit: Fit
    sentence: str


def rough_memory(target_bytes: int, draft_bytes: int, machine: Machine) -> RoughMemory:
    """Whether two files would fit on this machine together."""
    fit = fit_of(target_bytes + draft_bytes, machine)
    needed = size_words(target_bytes + draft_bytes)
    how = {Fit.FITS: "fit", Fit.TIGHT: "fit only just", Fit.TOO_LARGE: "do not fit"}[fit]
    return RoughMemory(fit, f"Both files together have {needed} and {how} into this computer's memory.")


@dataclass(frozen=True, slots=True)
class Candidate:
    """`offer` is None for ways without a second model. `excluded`: why it is out of the question, in words; else None.

    `verdict` None: not known until its header is read, or nothing to compare. `measurement` replaces `prediction`.
    `costs`: the draft model's, where its size is known.
    """

    kind: CandidateKind
    name: str
    offer: Offer | None = None
    sources: tuple[Source, ...] = ()
    verdict: Verdict | None = None
    memory: MemoryFit | None = None
    prediction: Prediction | None = None
    measurement: Measurement | None = None
    excluded: str | None = None
    advice: tuple[Advice, ...] = ()
    costs: ModelCosts | None = None

    @property
    def speed_up(self) -> float | None:
        """Measured if it was, else predicted."""
        if self.measurement is not None:
            return self.measurement.speed_up.value
        return None if self.prediction is None else self.prediction.speed_up.value


@dataclass(frozen=True, slots=True)
class AdviceBasis:
    """The target and its costs, and the speed-up that looking text up brings or should bring."""

    target: Offer
    costs: ModelCosts
    lookup: float | None


@dataclass(frozen=True, slots=True)
class Candidates:
    """For one target: what could draft, best first, then what is out of the question. `advice` is about the target.

    `basis`: what advice rests on, None where the target's size is not known.
    """

    listed: tuple[Candidate, ...]
    advice: Advice | None
    basis: AdviceBasis | None = None

    @property
    def usable(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.listed if candidate.excluded is None)

    @property
    def excluded(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.listed if candidate.excluded is not None)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is asked of others about a draft for the target at hand; an answer None means that it is not known.

    `target_problem`: why nothing at all can draft for the target, in words. `learned`: (accepted, tested) drafted
    tokens of the pair's replies. `memory` and `measurement` of None: of the target with looked-up text.
    """

    target_problem: str | None = None
    verdict: Callable[[Offer], Verdict | None] = lambda _: None
    memory: Callable[[Offer | None], MemoryFit | None] = lambda _: None
    measurement: Callable[[Offer | None], Measurement | None] = lambda _: None
    learned: Callable[[Offer], tuple[float, float] | None] = lambda _: None


LOOKUP_SOURCES = (Source.PROMPT_LOOKUP, Source.NGRAM_CACHE)
"""What drafts where no second model does."""
_WITH_A_MODEL = (CandidateKind.DRAFT_MODEL, CandidateKind.REQUANTISED)
_DEAREST = 0.95
"""Of a step of the target: nobody would draft with a model that costs more, so it is not offered."""
_NO_MTP = "Drafting with the target's own prediction layers is not supported here yet."
_NO_HEADS = "Draft heads such as EAGLE-3 are not supported here yet."


def find_candidates(
    target: Offer,
    offers: Sequence[Offer],
    machine: MachineSpeed,
    knowledge: Knowledge | None = None,
    kinds: Sequence[str] = KINDS,
) -> Candidates:
    """All candidates for a target; what is here comes before the same thing elsewhere.

    `kinds` are the kinds of text that the person writes, for which speeds are predicted.
    """
    known = knowledge or Knowledge()
    costs = machine.costs(target.shape, target.path) if target.shape is not None else None
    lookup = _lookup(costs, known, kinds)
    basis = None if costs is None else AdviceBasis(target, costs, lookup.speed_up)
    found = [lookup, *_not_yet(target)]
    here = {same_thing(offer) for offer in offers if offer.place is Place.HERE and not _is_itself(offer, target)}
    paths = {offer.path for offer in offers}
    seen: set[tuple[object, ...]] = set()
    for offer in sorted(offers, key=lambda offer: list(Place).index(offer.place)):
        thing = same_thing(offer)
        made = offer.making is not None
        if (thing in seen and not made) or (offer.place is not Place.HERE and thing in here):
            continue
        if offer.place is not Place.HERE:
            seen.add(thing)
        if _is_itself(offer, target) or (offer.making is not None and offer.making.destination in paths):
            continue
        found.append(_judged(target, basis, offer, machine, known, kinds))
    found.sort(key=order_of, reverse=True)
    return Candidates(tuple(found), _about_target(basis, found), basis)


def with_measurements(found: Candidates, measured: Callable[[Candidate], Measurement | None]) -> Candidates:
    """With what has been measured since, in the same order; advice is what it would have been with that known."""
    listed = [
        each if each.excluded is not None else replace(each, measurement=measured(each) or each.measurement)
        for each in found.listed
    ]
    basis = found.basis
    if basis is None:
        return replace(found, listed=tuple(listed))
    lookup = next((each.speed_up for each in listed if each.kind is CandidateKind.LOOKUP), basis.lookup)
    basis = replace(basis, lookup=lookup)
    listed = [replace(each, advice=_advice(basis, each)) for each in listed]
    return Candidates(tuple(listed), _about_target(basis, listed), basis)


def _about_target(basis: AdviceBasis | None, found: Sequence[Candidate]) -> Advice | None:
    if basis is None or basis.target.shape is None:
        return None
    gains = [
        gain
        for each in found
        if each.kind in _WITH_A_MODEL and each.excluded is None and (gain := each.speed_up) is not None
    ]
    return target_advice(basis.target.name, basis.target.shape, basis.costs, gains)


def _advice(basis: AdviceBasis, candidate: Candidate) -> tuple[Advice, ...]:
    """None where a size is not known."""
    of_target, of_draft = basis.target.shape, None if candidate.offer is None else candidate.offer.shape
    costs, prediction = candidate.costs, candidate.prediction
    if of_target is None or of_draft is None or costs is None or prediction is None:
        return ()
    return draft_advice(of_target, basis.costs, of_draft, costs, prediction, basis.lookup, candidate.measurement)


def order_of(candidate: Candidate) -> tuple[bool, bool, tuple[float, float], str]:
    """For sorting, greatest first: what can be used, then what is known to bring most."""
    usable = candidate.excluded is None
    known = candidate.speed_up is not None
    return usable, known, rank_key(candidate.prediction, candidate.measurement), candidate.name


def _lookup(costs: ModelCosts | None, known: Knowledge, kinds: Sequence[str]) -> Candidate:
    prediction = None if costs is None else predict_lookup(costs, kinds)
    return Candidate(
        CandidateKind.LOOKUP,
        "Look words up in the text",
        sources=LOOKUP_SOURCES,
        memory=known.memory(None),
        prediction=prediction,
        measurement=known.measurement(None),
        excluded=known.target_problem,
    )


def _not_yet(target: Offer) -> list[Candidate]:
    """What the target itself would offer, if we could use it."""
    found = []
    if target.mtp_layers:
        found.append(Candidate(CandidateKind.MTP, "The target's own prediction layers (MTP)", excluded=_NO_MTP))
    return found


def _is_itself(offer: Offer, target: Offer) -> bool:
    return target.path is not None and offer.path == target.path


def _judged(
    target: Offer,
    basis: AdviceBasis | None,
    offer: Offer,
    machine: MachineSpeed,
    known: Knowledge,
    kinds: Sequence[str],
) -> Candidate:
    is_head = offer.kind is GgufKind.DRAFT_HEAD
    kind = CandidateKind.DRAFT_HEAD if is_head else CandidateKind.DRAFT_MODEL
    if offer.making is not None:
        kind = CandidateKind.REQUANTISED
    verdict = known.verdict(offer)
    candidate = Candidate(kind, offer.name, offer, () if is_head else (Source.DRAFT_MODEL,), verdict)
    # A verdict says more exactly what is wrong than the listing does.
    if verdict is not None and not verdict.usable:
        return replace(candidate, excluded=verdict.reason)
    problem = known.target_problem or (_NO_HEADS if is_head else offer.problem)
    if problem is not None:
        return replace(candidate, excluded=problem)
    memory = known.memory(offer)
    candidate = replace(candidate, memory=memory, measurement=known.measurement(offer))
    if basis is not None and offer.shape is not None:
        draft = machine.costs(offer.shape, offer.path)
        prediction = predict(basis.costs, draft, acceptance_of(target, offer, known.learned(offer)), kinds)
        candidate = replace(candidate, prediction=prediction, costs=draft)
        candidate = replace(candidate, advice=_advice(basis, candidate))
        if candidate.measurement is None and draft.seconds(1) >= _DEAREST * basis.costs.seconds(1):
            slower = (
                "It is as slow as the target itself: a drafted token would cost as much as one of the target's own."
            )
            candidate = replace(candidate, excluded=slower)
    if memory is not None and memory.fit is Fit.TOO_LARGE:
        return replace(candidate, excluded=memory.sentence)
    return candidate


def acceptance_of(target: Offer, draft: Offer, learned: tuple[float, float] | None = None) -> UsualAcceptance:
    """What to expect of a pair whose sizes are known, corrected by what its own replies have shown."""
    assert target.shape is not None
    assert draft.shape is not None
    weights = None if target.shape.is_estimate or draft.shape.is_estimate else target.shape.parameters
    kin = kinship(target.model_name, draft.model_name, weights, draft.shape.parameters if weights else None)
    usual = usual_acceptance(kin, target.shape, draft.shape)
    return usual if learned is None else known_acceptance(*learned, usual)
