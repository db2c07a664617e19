"""How long a plan will take, before it begins."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from forespeak.compare.lanes import Plan
from forespeak.compare.plan import PLAIN, WARM_UP_TOKENS, Prompt, Task, generation_request
from forespeak.compare.runner import Results
from forespeak.engines.collect import collect
from forespeak.engines.engine import Engine, Progress
from forespeak.speculation.trace import FinishReason

_PROMPT_TO_DECODE = 4.0
"""How many times faster than it writes a target reads, at least, where nothing is known."""
_MOST_SPEED_UP = 2.5
_SHORT_SHARE = 0.25
"""Of the longest reply, what one may have that was asked to be short."""


@dataclass(frozen=True, slots=True)
class PlanCosts:
    """What a target is known to do alone: tokens per second while it writes and while it reads, seconds to load."""

    decode_rate: float
    prompt_rate: float | None = None
    load_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class PlanTime:
    """Seconds. `least`: drafts are a great help, and short answers short; `most`: they help nothing."""

    least: float
    most: float


def plan_time(plan: Plan, costs: PlanCosts) -> PlanTime:
    """Everything that a plan does, loading and warming up included; its budget aside."""
    reading = costs.prompt_rate or costs.decode_rate * _PROMPT_TO_DECODE
    least = most = 0.0
    for load in plan.loads:
        warming = min(plan.tokens, WARM_UP_TOKENS) if plan.warm_up else 0
        least += costs.load_seconds + len(load.lanes) * warming / costs.decode_rate
        most += costs.load_seconds + len(load.lanes) * warming / costs.decode_rate
        for lane in load.lanes:
            for prompt in plan.prompts:
                prefill = _tokens_of(prompt) / reading
                whole = plan.tokens / costs.decode_rate
                share = _SHORT_SHARE if prompt.answer == "short" else 1.0
                least += plan.repeats * (prefill + whole * share / (1.0 if lane.is_off else _MOST_SPEED_UP))
                most += plan.repeats * (prefill + whole)
    return PlanTime(least, most)


def costs_of(results: Results) -> PlanCosts | None:
    """What an earlier comparison of the same target has shown; None if it measured nothing."""
    plain = [run for run in results.runs if run.task.way.is_plain and run.failure is None and run.rate]
    if not plain:
        return None
    first = min(results.runs, key=lambda run: run.began)
    return PlanCosts(
        statistics.median(run.rate for run in plain if run.rate),
        statistics.median(run.stats.prompt_tokens_per_second for run in plain) or None,
        first.began,
    )


def calibrate(
    plan: Plan,
    engine: Engine,
    progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
    clock: Callable[[], float] = time.perf_counter,
) -> PlanCosts | None:
    """Load the plan's first pair and let the target write a few tokens. None if stopped. Raises UserFacingError."""
    comparison = plan.comparison()
    began = clock()
    loaded = engine.load(comparison.load_request(comparison.pairs[0]), progress, cancelled)
    if loaded is None:
        return None
    loading = clock() - began
    task = Task(0, plan.prompts[0], comparison.temperatures[0], PLAIN, None)
    reply = collect(engine.generate(generation_request(comparison, task), cancelled))
    if reply.reason is FinishReason.CANCELLED or not reply.stats.tokens_per_second:
        return None
    return PlanCosts(reply.stats.tokens_per_second, reply.stats.prompt_tokens_per_second or None, loading)


def _tokens_of(prompt: Prompt) -> float:
    """About: four letters make a token, and one does in scripts with thousands of them."""
    text = "".join(message.content for message in prompt.conversation)
    wide = sum("\u2e80" <= letter <= "\ufaff" for letter in text)
    return wide + (len(text) - wide) / 4
