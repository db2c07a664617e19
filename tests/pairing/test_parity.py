"""The parity check over toy models: all equal, a broken draft path found, a tie shown as one and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forespeak.engines.engine import Progress
from forespeak.engines.parity_result import DifferenceKind, ParityRequest
from forespeak.pairing.parity import REPRODUCIBLE_LIMIT, batch_movement, check, context_needed
from forespeak.pairing.parity_prompts import PROMPTS
from forespeak.speculation.trace import Source, Step
from parity_bench import SIZE, Bench, Shaky, accepted_changed, shaky_bench
from scripted import letters, random_scores

QUICK = ParityRequest((Source.DRAFT_MODEL,), tokens=20, prompts=3)


def test_an_honest_pair_is_equal_everywhere() -> None:
    told: list[Progress] = []
    bench = Bench()
    result = check(bench, ParityRequest((Source.DRAFT_MODEL,), tokens=24), told.append)
    assert (result.equal, result.planned, result.ties, result.faults) == (24, 24, 0, 0)
    assert result.complete
    assert result.first_difference is None
    assert result.moved == 0.0
    assert all(case.tokens == 24 and case.tested > 0 for case in result.cases)
    assert result.engine == "toy 1"
    assert [step.fraction for step in told] == sorted(step.fraction for step in told)
    # Each prompt greedy and sampled; plain, as many as pay, four.
    assert len(bench.asked) == len(PROMPTS) * 2 * 3
    assert {(request.sources, request.draft_length) for request in bench.asked} == {
        ((), None),
        ((Source.DRAFT_MODEL,), None),
        ((Source.DRAFT_MODEL,), 4),
    }
    assert {request.sampling.temperature for request in bench.asked} == {0.0, 0.8}


def test_a_broken_draft_path_is_found_and_is_no_tie() -> None:
    bench = Bench(change=accepted_changed)
    result = check(bench, QUICK)
    assert result.faults == len(result.cases) == 6
    difference = result.first_difference
    assert difference is not None
    assert difference.kind is DifferenceKind.FAULT
    assert difference.way == "auto"
    assert difference.plain_text != difference.drafted_text
    assert difference.alone == difference.batched
    assert difference.alone.plain is not None
    assert difference.alone.distance is None or difference.alone.distance > 0


def test_the_scores_are_those_of_the_place() -> None:
    """Greedy, the plain token's score is its log-probability and the other's is lower by the logits' distance."""
    bench = Bench(change=accepted_changed)
    difference = check(bench, replace(QUICK, prompts=1)).cases[0].differences[0]
    prompt = bench.prompt(bench.asked[0])
    text = list(prompt)
    bench.target.truncate(0)
    for _ in range(difference.place):
        text.append(int(np.argmax(bench.target.scores(tuple(text)))))
    row = bench.target.scores(tuple(text)).astype(np.float64)
    best = int(np.argmax(row))
    assert difference.plain_text == chr(ord("a") + best)
    expected = row[best] - np.log(np.exp(row).sum())
    assert difference.alone.plain == pytest.approx(expected, abs=1e-5)
    other = ord(difference.drafted_text) - ord("a")
    assert difference.alone.distance == pytest.approx(row[best] - row[other], abs=1e-5)


def test_a_tie_that_batches_turn_is_shown_as_one() -> None:
    result = check(shaky_bench(0.0002, 0.0003), QUICK)
    assert result.ties > 0
    assert result.faults == 0
    assert result.moved == pytest.approx(0.0002, abs=1e-5)
    greedy = next(case for case in result.cases if case.temperature == 0.0 and not case.equal)
    difference = greedy.differences[0]
    assert difference.kind is DifferenceKind.TIE
    assert difference.limit == REPRODUCIBLE_LIMIT
    assert difference.moved == pytest.approx(0.0002, abs=1e-5)
    assert difference.alone.distance == pytest.approx(0.0003, abs=1e-5)
    # Each score moves, in opposite directions, and so the distance turns.
    assert difference.batched.distance == pytest.approx(-0.0001, abs=1e-5)


def test_scores_that_move_too_far_are_a_fault() -> None:
    result = check(shaky_bench(6.0, 0.5), QUICK)
    assert result.faults > 0
    assert result.ties == 0
    first = result.first_difference
    assert first is not None
    assert first.moved == pytest.approx(6.0, abs=1e-4)
    assert first.moved > first.limit


def test_a_near_miss_that_the_batches_do_not_explain_is_a_fault() -> None:
    """The two tokens are close enough, but the target chooses the plain one both ways."""

    def neighbour(step: Step) -> Step:
        if not step.accepted_count:
            return step
        first = step.emitted[0]
        return replace(step, emitted=(replace(first, id=first.id ^ 1), *step.emitted[1:]))

    bench = shaky_bench(0.0, 0.0003)
    bench.change = neighbour
    result = check(bench, QUICK)
    assert result.faults == len(result.cases)
    difference = result.first_difference
    assert difference is not None
    assert difference.alone.distance is not None
    assert difference.alone.distance < 1.0


def test_a_reply_that_ends_early_is_a_fault() -> None:
    def cut(step: Step) -> Step:
        accepted = step.accepted_count
        return replace(step, emitted=step.emitted[:-1]) if accepted and len(step.emitted) > 1 else step

    bench = Bench()
    full = check(bench, replace(QUICK, prompts=1)).cases[0]
    assert full.equal
    bench.change = cut
    assert check(bench, replace(QUICK, prompts=1)).faults == 2


def test_a_token_that_the_filters_leave_out_has_no_score() -> None:
    def unlikely(step: Step) -> Step:
        if not step.accepted_count:
            return step
        first = step.emitted[0]
        return replace(step, emitted=(replace(first, id=worst), *step.emitted[1:]))

    bench = Bench()
    result = check(bench, replace(QUICK, prompts=1))
    prompt = bench.prompt(bench.asked[0])
    worst = int(np.argmin(bench.target.scores(tuple(prompt))))
    bench.change = unlikely
    sampled = check(bench, replace(QUICK, prompts=1)).cases[1]
    assert result.faults == 0
    scores = [difference.alone for difference in sampled.differences]
    assert any(each.drafted is None and each.distance is None for each in scores)


def test_a_cancel_keeps_what_is_done() -> None:
    told: list[Progress] = []
    result = check(Bench(), QUICK, told.append, lambda: len(told) > 3)
    assert len(result.cases) == 2
    assert not result.complete
    assert result.planned == 6
    assert result.equal == 2


def test_a_pair_without_a_draft_shows_that_nothing_was_tested() -> None:
    result = check(Bench(), replace(QUICK, sources=()))
    assert result.equal == 6
    assert result.tested == 0


def test_batch_movement_is_what_batches_do() -> None:
    target = Shaky(random_scores(SIZE, 1), letters(SIZE))
    target.by = 0.125
    assert batch_movement(target, [1, 2, 3, 4, 5, 6, 7]) == pytest.approx(0.125, abs=1e-5)
    assert target.tokens == ()
    target.by = 0.0
    assert batch_movement(target, [1, 2, 3]) == 0.0


def test_the_context_holds_prompts_and_replies() -> None:
    assert context_needed(ParityRequest((), tokens=300)) >= 800
