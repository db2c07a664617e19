"""Where a lane's words part from those of the target alone, and what is known of the cause."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forespeak.compare.lanes import Plan
from forespeak.compare.runner import Run, visit_of
from forespeak.compare.statistics import Visited
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Token

TIE_NATS = 0.1
"""How far apart two log-probabilities may lie that look like a tie: batches move a score by less on usual weights."""


@dataclass(frozen=True, slots=True)
class WordDifference:
    """A run whose tokens are not those of the target alone, from token `at` on, counted from 0.

    The texts are those tokens', empty where a reply had ended. `looks_like_tie`: both were about equally probable,
    each in its own reply; None where that says nothing (above temperature 0, or without a recording).
    """

    run: Run
    at: int
    base_text: str
    text: str
    looks_like_tie: bool | None
    words: str


def differences_of(plan: Plan, runs: Sequence[Run], bases: Mapping[Visited, Run]) -> tuple[WordDifference, ...]:
    """One for each run that parts from its base."""
    return tuple(
        _difference(plan, bases[visit_of(run)], run, run.differs_at)
        for run in runs
        if run.differs_at is not None and visit_of(run) in bases
    )


def _difference(plan: Plan, base: Run, run: Run, at: int) -> WordDifference:
    ours, theirs = _token(run, at), _token(base, at)
    tie = _looks_like_tie(ours, theirs) if run.task.temperature == 0.0 else None
    return WordDifference(
        run, at, theirs.text if theirs else "", ours.text if ours else "", tie, _words(plan, at, ours, theirs, tie)
    )


def _token(run: Run, at: int) -> Token | None:
    tokens = [token for recorded in run.recording for token in recorded.step.emitted]
    return tokens[at] if at < len(tokens) else None


def _looks_like_tie(ours: Token | None, theirs: Token | None) -> bool | None:
    """Each reply chose its most probable token: if scores only moved a little, both were about equally probable."""
    if ours is None or theirs is None or not ours.probability or not theirs.probability:
        return None
    # Two tokens cannot both have more than half.
    close = abs(math.log(ours.probability) - math.log(theirs.probability)) <= TIE_NATS
    return close and min(ours.probability, theirs.probability) <= 0.5 * math.exp(TIE_NATS)


def _words(plan: Plan, at: int, ours: Token | None, theirs: Token | None, tie: bool | None) -> str:
    where = f"Differs from token {at + 1} on"
    if plan.rule is Rule.REJECTION:
        return f"{where}: under the rejection rule the words vary with the draft."
    if tie and ours is not None and theirs is not None:
        return (
            f"{where}, in what looks like a numeric tie: both tokens were about equally probable "
            f"({_percent(theirs)} and {_percent(ours)}), and scores move a little when several are computed at once. "
            "A parity check of the pair would show it."
        )
    if plan.load_settings.reproducible:
        return f"{where}. In the reproducible setting this should not happen."
    return f"{where}. A parity check of the pair can tell a numeric tie from a fault."


def _percent(token: Token) -> str:
    return f"{(token.probability or 0.0) * 100:.1f} %"
