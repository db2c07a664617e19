"""Where a lane's time goes, per token that it wrote: what its verdict's reason is found from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forespeak.compare.runner import Run


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """Seconds for each token that was written, the first one and the prompt aside.

    `whole` is all of it, `drafting` and `checking` the parts in the draft source and in the target. `wasted`: what
    would have been saved if the target had accepted every token that it was asked about.
    """

    whole: float
    drafting: float
    checking: float
    wasted: float
    tested: int


def token_costs(runs: Sequence[Run]) -> TokenCosts | None:
    """Of all runs together; None if they wrote nothing to judge by."""
    good = [run for run in runs if run.failure is None and run.stats.decode_seconds > 0]
    steps = [step for run in good for step in run.steps[1:]]
    tokens = sum(step.emitted for step in steps)
    if not tokens:
        return None
    seconds = sum(run.stats.decode_seconds for run in good)
    tested = sum(step.tested for step in steps)
    # Each step would have brought its whole draft and one token more.
    possible = max(tokens, tested + len(steps))
    return TokenCosts(
        whole=seconds / tokens,
        drafting=sum(step.draft_seconds for step in steps) / tokens,
        checking=sum(step.target_seconds for step in steps) / tokens,
        wasted=seconds / tokens - seconds / possible,
        tested=tested,
    )
