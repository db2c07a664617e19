"""Verdicts: what they say, the reason that they find, and what they advise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forespeak.compare.costs import TokenCosts
from forespeak.compare.statistics import Estimate, Interval
from forespeak.compare.verdicts import Circumstances, Reason, VerdictKind, verdict_of
from forespeak.speculation.trace import Source

MODEL = (Source.DRAFT_MODEL,)
ALONE = TokenCosts(0.100, 0.0, 0.100, 0.0, 0)


def ratio(value: float, low: float, high: float, coverage: float = 0.95) -> Estimate:
    return Estimate(value, 12, Interval(low, high, coverage))


SLOWER = ratio(0.8, 0.75, 0.85)


def costs(drafting: float, checking: float, wasted: float, tested: int = 100) -> TokenCosts:
    return TokenCosts(drafting + checking, drafting, checking, wasted, tested)


@pytest.mark.parametrize(
    ("estimate", "kind", "words"),
    [
        (ratio(1.5, 1.4, 1.6), VerdictKind.FASTER, "Faster, 1.50× (1.40–1.60)."),
        (ratio(1.5, 1.4, 1.6, 0.75), VerdictKind.FASTER, "Faster in all 12 runs, 1.50× (1.40–1.60)."),
        (ratio(1.0, 0.98, 1.02), VerdictKind.NO_DIFFERENCE, "No difference, 1.00× (0.98–1.02)."),
        (ratio(1.0, 0.9, 1.1), VerdictKind.UNCLEAR, "No clear difference, 1.00× (0.90–1.10)."),
        (ratio(1.0, 0.98, 1.02, 0.75), VerdictKind.UNCLEAR, "No clear difference, 1.00× (0.98–1.02)."),
        (Estimate(1.5, 1), VerdictKind.UNCLEAR, "1.50× in one run, which is too few to tell."),
        (None, VerdictKind.NOTHING, "Nothing could be compared."),
    ],
)
def test_what_the_interval_means(estimate: Estimate | None, kind: VerdictKind, words: str) -> None:
    found = verdict_of(estimate, Circumstances(None, None, sources=MODEL))
    assert (found.kind, found.words, found.reason) == (kind, words, None)


@pytest.mark.parametrize(
    ("circumstances", "reason", "words", "advice"),
    [
        (
            Circumstances(costs(0.06, 0.07, 0.01), ALONE, 0.9, MODEL),
            Reason.DRAFT_DEAR,
            "because drafting takes 60 % of the time that the target alone needs for a token",
            "smaller draft model",
        ),
        (
            Circumstances(costs(0.03, 0.09, 0.05), ALONE, 0.21, MODEL),
            Reason.FEW_ACCEPTED,
            "because only 21 % of the drafted tokens were accepted",
            "the target's own family",
        ),
        (
            Circumstances(costs(0.0, 0.12, 0.05), ALONE, 0.1, (Source.PROMPT_LOOKUP,), auto=False),
            Reason.FEW_ACCEPTED,
            "only 10 %",
            "Let the length be chosen automatically.",
        ),
        (
            Circumstances(costs(0.0005, 0.0055, 0.0), TokenCosts(0.005, 0.0, 0.005, 0.0, 0), 0.95, MODEL),
            Reason.TARGET_FAST,
            "because the target alone is fast already, with 200 tokens a second",
            "larger target",
        ),
        (
            Circumstances(costs(0.01, 0.15, 0.02), ALONE, 0.8, MODEL),
            Reason.CHECKS_DEAR,
            "because checking several tokens at once takes this machine about as long as writing them",
            "GPU",
        ),
        (
            Circumstances(costs(0.05, 0.07, 0.01), ALONE, 0.9, MODEL, moved_to_cpu=True),
            Reason.MEMORY_ON_CPU,
            "no longer fits into the GPU's memory",
            "smaller draft model",
        ),
        (
            Circumstances(costs(0.0, 0.105, 0.0, tested=0), ALONE, None, MODEL),
            Reason.NEVER_DRAFTED,
            "because nothing was drafted, since drafts do not pay here",
            "smaller draft",
        ),
    ],
)
def test_why_a_lane_is_slower(circumstances: Circumstances, reason: Reason, words: str, advice: str) -> None:
    found = verdict_of(SLOWER, circumstances)
    assert found.kind is VerdictKind.SLOWER
    assert found.reason is reason
    assert words in found.words
    assert advice in found.full_words


def test_no_difference_has_a_reason_too_and_a_gain_needs_none() -> None:
    dear = Circumstances(costs(0.03, 0.07, 0.01), ALONE, 0.9, MODEL)
    found = verdict_of(ratio(1.0, 0.99, 1.01), dear)
    assert found.words.startswith("No difference, 1.00× (0.99–1.01): drafting takes 30 %")
    assert verdict_of(ratio(1.2, 1.1, 1.3), dear).reason is None
    # An off lane that is slower than off is slower for no reason of ours.
    assert verdict_of(SLOWER, replace(dear, sources=())).reason is None
