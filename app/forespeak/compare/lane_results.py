"""What a comparison found, lane by lane: figures, ratios to the target alone, verdicts, and where words differ."""

from __future__ import annotations

from dataclasses import dataclass

from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.runner import Results, Run
from forespeak.compare.statistics import Estimate, Figures
from forespeak.compare.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class WordDifference:
    """A run whose tokens are not those of the target alone, from token `at` on, counted from 0.

    The texts are those tokens', empty where a reply had ended. `words` says what is known of the cause.
    """

    run: Run
    at: int
    base_text: str
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class LaneCell:
    """A lane in one category; `category` None: over all, in which categories weigh equally.

    `ratio` is of decoded tokens per second, to the target alone in the same visits; `first_token_ratio` and
    `whole_ratio` (of the whole reply, prompt included) are in `figures`.
    """

    category: str | None
    figures: Figures
    ratio: Estimate | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LaneResult:
    """`base` is the off lane it is compared with, None for that lane itself. `problem`: why nothing was measured."""

    lane: Lane
    base: Lane | None
    overall: LaneCell
    cells: tuple[LaneCell, ...]
    differences: tuple[WordDifference, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """`lanes` are `plan.all_lanes`, in their order; `headline` is the whole in one sentence; `notes` stand below."""

    plan: Plan
    results: Results
    categories: tuple[str, ...]
    lanes: tuple[LaneResult, ...]
    headline: str
    notes: tuple[str, ...]
