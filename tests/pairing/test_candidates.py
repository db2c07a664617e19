from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from forespeak.models.gguf import GgufKind
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import Fit
from forespeak.pairing.advice import AdviceKind
from forespeak.pairing.candidates import (
    Candidate,
    CandidateKind,
    Knowledge,
    RoughMemory,
    find_candidates,
    rough_memory,
    with_measurements,
)
from forespeak.pairing.machine_speed import MachineSpeed
from forespeak.pairing.model_names import parse_name
from forespeak.pairing.model_shape import estimated_shape
from forespeak.pairing.offers import Offer, Place
from forespeak.pairing.ranking import Measurement, Range
from forespeak.pairing.verdict import Verdict, VerdictKind

FAST = MachineSpeed(gpu_bandwidth=936e9)
GB = 1e9


def offer(name: str, weights: float, label: str = "Q4_K_M", place: Place = Place.HERE, **more: object) -> Offer:
    bits = {"Q4_K_M": 4.9, "Q8_0": 8.5, "F16": 16.0, "F32": 32.0}[label]
    size = round(weights * bits / 8)
    shape = estimated_shape(size, label, weights)
    path = Path(f"/models/{name}-{label}.gguf") if place is Place.HERE else None
    return Offer(name, place, parse_name(name), size, label, shape, path, **more)  # type: ignore[arg-type]


TARGET = offer("Qwen2.5-32B-Instruct", 32.8 * GB)
TINY = offer("Qwen2.5-0.5B-Instruct", 0.49 * GB, "Q8_0")
SMALL = offer("Qwen2.5-7B-Instruct", 7.6 * GB)
FOREIGN = offer("Mistral-7B", 7.2 * GB)


def verdicts(**refused: str) -> Knowledge:
    def verdict(offer: Offer) -> Verdict:
        reason = refused.get(offer.name.split("-")[0].lower())
        if reason:
            return Verdict(VerdictKind.DIFFERS, False, reason)
        return Verdict(VerdictKind.SAME, True, "Both have the same tokens.")

    return Knowledge(verdict=verdict)


def measured(speed_up: float) -> Measurement:
    ups = Range(speed_up, speed_up - 0.1, speed_up + 0.1)
    return Measurement(30.0, 30.0 * speed_up, ups, 0.7, 500, (), "2026-11-30T10:00:00+00:00", "llama", "1")


def names(found: Sequence[Candidate]) -> list[str]:
    return [candidate.name for candidate in found]


def test_the_best_comes_first_and_the_excluded_last_with_their_reasons() -> None:
    found = find_candidates(TARGET, [FOREIGN, SMALL, TINY], FAST, verdicts(mistral="Token 7 is “a” in the target."))
    assert names(found.usable)[0] == TINY.name
    assert set(names(found.usable)) == {TINY.name, SMALL.name, "Look words up in the text"}
    assert [(each.name, each.excluded) for each in found.excluded] == [(FOREIGN.name, "Token 7 is “a” in the target.")]
    gains = [each.speed_up for each in found.usable]
    assert gains == sorted(gains, key=lambda gain: gain or 0.0, reverse=True)
    assert found.listed == found.usable + found.excluded


def test_without_any_model_looking_text_up_is_still_there() -> None:
    found = find_candidates(TARGET, [], FAST)
    (only,) = found.listed
    assert only.kind is CandidateKind.LOOKUP
    assert only.offer is None
    assert only.prediction is not None
    assert only.excluded is None


def test_the_target_is_no_candidate_for_itself() -> None:
    assert names(find_candidates(TARGET, [TARGET, TINY], FAST).listed).count(TARGET.name) == 0


def test_a_model_as_slow_as_the_target_is_out_of_the_question() -> None:
    (large,) = find_candidates(TARGET, [offer("Qwen2.5-72B", 72.7 * GB)], FAST).excluded
    assert large.excluded is not None
    assert "as slow as the target" in large.excluded
    assert large.prediction is not None


def test_unless_it_was_measured() -> None:
    known = Knowledge(measurement=lambda offer: measured(1.1) if offer else None)
    found = find_candidates(TARGET, [offer("Qwen2.5-72B", 72.7 * GB)], FAST, known)
    assert not found.excluded


def test_a_measurement_takes_the_place_of_the_prediction() -> None:
    known = Knowledge(
        measurement=lambda offer: measured(2.9) if offer is not None and offer.path == SMALL.path else None
    )
    found = find_candidates(TARGET, [TINY, SMALL], FAST, known)
    assert found.usable[0].name == SMALL.name
    assert found.usable[0].speed_up == 2.9
    assert found.usable[0].prediction is not None
    assert AdviceKind.UNSURE not in {advice.kind for advice in found.usable[0].advice}


def test_what_does_not_fit_into_memory_says_so() -> None:
    known = Knowledge(memory=lambda offer: RoughMemory(Fit.TOO_LARGE if offer else Fit.TIGHT, "Both need 30 GB."))
    found = find_candidates(TARGET, [TINY], FAST, known)
    assert [each.excluded for each in found.excluded] == ["Both need 30 GB."]
    assert found.usable[0].kind is CandidateKind.LOOKUP
    assert found.usable[0].memory is not None


def test_rough_memory_goes_by_sizes() -> None:
    machine = Machine(16_000_000_000, 12_000_000_000)
    assert rough_memory(5_000_000_000, 500_000_000, machine).fit is Fit.FITS
    much = rough_memory(20_000_000_000, 500_000_000, machine)
    assert much.fit is Fit.TOO_LARGE
    assert "20.5 GB" in much.sentence


def test_what_is_not_supported_yet_is_listed_as_such() -> None:
    target = replace(offer("Qwen3-32B", 32 * GB, "F16"), mtp_layers=1)
    head = offer("Qwen3-32B-EAGLE3", 0.5 * GB, kind=GgufKind.DRAFT_HEAD)
    found = find_candidates(target, [head], FAST)
    kinds = {each.kind: each.excluded for each in found.excluded}
    assert set(kinds) == {CandidateKind.MTP, CandidateKind.DRAFT_HEAD}
    assert all(reason and "yet" in reason for reason in kinds.values())


def test_a_verdict_on_a_head_says_more_than_that_heads_are_not_supported() -> None:
    head = offer("Qwen3-32B-EAGLE3", 0.5 * GB, kind=GgufKind.DRAFT_HEAD)
    (only,) = find_candidates(TARGET, [head], FAST, verdicts(qwen3="It was made for another target.")).excluded
    assert only.excluded == "It was made for another target."


def test_where_the_target_takes_no_drafts_all_say_why() -> None:
    known = Knowledge(target_problem="Its state cannot be rolled back.")
    found = find_candidates(TARGET, [TINY], FAST, known)
    assert not found.usable
    assert {each.excluded for each in found.excluded} == {"Its state cannot be rolled back."}


def test_files_that_cannot_be_used_say_why() -> None:
    broken = replace(TINY, problem="Parts 2 and 3 of 4 are missing.")
    (only,) = find_candidates(TARGET, [broken], FAST).excluded
    assert only.excluded == "Parts 2 and 3 of 4 are missing."


def test_what_is_here_is_not_offered_for_download() -> None:
    remote = offer("Qwen2.5-0.5B-Instruct", 0.49 * GB, "Q8_0", Place.HUB)
    other = offer("Qwen2.5-1.5B-Instruct", 1.54 * GB, "Q8_0", Place.HUB)
    known_pair = replace(other, place=Place.KNOWN)
    found = find_candidates(TARGET, [remote, other, known_pair, TINY], FAST)
    places = {each.name: each.offer.place for each in found.usable if each.offer}
    assert places == {TINY.name: Place.HERE, other.name: Place.KNOWN}
    assert len([each for each in found.usable if each.offer]) == 2


def test_of_unknown_size_comes_after_what_can_be_predicted() -> None:
    nameless = replace(TINY, name="unknown", shape=None, path=Path("/models/unknown.gguf"))
    found = find_candidates(TARGET, [nameless, TINY], FAST)
    assert names(found.usable)[-1] == "unknown"
    assert found.usable[-1].prediction is None


def test_what_its_replies_have_shown_counts() -> None:
    def gain(accepted: float) -> float:
        known = Knowledge(learned=lambda _: (accepted, 200.0))
        found = find_candidates(TARGET, [TINY], FAST, known)
        return next(each.speed_up or 0.0 for each in found.usable if each.offer)

    assert gain(190.0) > gain(150.0) > gain(60.0)


def test_a_small_quick_target_gains_little_and_hears_so() -> None:
    target = offer("Llama-3.1-8B-Instruct", 8.0 * GB)
    found = find_candidates(target, [offer("Llama-3.2-3B-Instruct", 3.2 * GB, "Q8_0")], FAST)
    assert found.advice is not None
    assert found.advice.kind is AdviceKind.SMALL_TARGET
    assert "8 billion" in found.advice.words
    assert find_candidates(TARGET, [TINY], FAST).advice is None


@given(st.permutations([TINY, SMALL, FOREIGN, offer("Qwen2.5-1.5B-Instruct", 1.54 * GB, "F16")]))
def test_the_order_of_the_listings_does_not_matter(offers: list[Offer]) -> None:
    assert find_candidates(TARGET, offers, FAST) == find_candidates(TARGET, sorted(offers, key=str), FAST)


def test_what_is_measured_later_counts_as_if_it_had_been_known() -> None:
    offers = [TINY, SMALL, FOREIGN]
    before = find_candidates(TARGET, offers, FAST, verdicts(mistral="Other tokens."))
    new = {TINY.name: measured(1.0), "Look words up in the text": measured(1.6), FOREIGN.name: measured(9.0)}
    assert not next(each for each in before.usable if each.offer is TINY).advice
    after = with_measurements(before, lambda each: new.get(each.name))

    def measurement(offer: Offer | None) -> Measurement | None:
        return new.get("Look words up in the text" if offer is None else offer.name)

    known = find_candidates(TARGET, offers, FAST, replace(verdicts(mistral="Other tokens."), measurement=measurement))
    assert [each.name for each in after.listed] == [each.name for each in before.listed]
    assert {each.name: each for each in after.listed} == {each.name: each for each in known.listed}
    assert after.advice == known.advice
    words = {each.name: [advice.kind for advice in each.advice] for each in after.usable}
    assert AdviceKind.WORSE_THAN_LOOKUP in words[TINY.name]


def test_measurements_where_sizes_are_not_known() -> None:
    unknown = replace(TARGET, shape=None)
    before = find_candidates(unknown, [TINY], FAST, verdicts())
    after = with_measurements(before, lambda each: measured(1.5) if each.offer is TINY else None)
    assert [each.measurement for each in after.listed if each.offer is TINY] == [measured(1.5)]
