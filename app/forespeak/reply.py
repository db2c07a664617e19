"""A finished generation: counted in a line, recorded as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from forespeak.engines.collect import Reply
from forespeak.engines.engine import Loaded
from forespeak.engines.load_record import placement_record
from forespeak.speculation.trace import DraftedToken, FinishReason, Source, Step

STATS = (
    "prompt_tokens",
    "time_to_first_token_seconds",
    "prompt_tokens_per_second",
    "generated_tokens",
    "tokens_per_second",
    "verify_steps",
    "total_draft_tokens_count",
    "accepted_draft_tokens_count",
    "rejected_draft_tokens_count",
    "ignored_draft_tokens_count",
    "acceptance_rate",
    "mean_acceptance_length",
    "acceptance_rate_per_position",
    "draft_time_share",
    "peak_memory_bytes",
)
"""The fields of GenerationStats in the JSON, by their names there."""


def counts(reply: Reply, *, speculating: bool) -> str:
    """What a reply cost and what speculation did, in one line. `speculating`: whether it was asked for."""
    stats = reply.stats
    parts = [f"{stats.tokens_per_second:.1f} tokens/s"]
    if stats.acceptance_rate is not None and stats.mean_acceptance_length is not None:
        tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
        accepted = f"{stats.acceptance_rate:.0%}".replace("%", " %")
        parts.append(f"{accepted} of drafts accepted ({stats.accepted_draft_tokens_count} of {tested})")
        parts.append(f"{stats.mean_acceptance_length:.1f} tokens per check")
    if stats.ignored_draft_tokens_count:
        parts.append(f"{stats.ignored_draft_tokens_count} drafted but not needed")
    parts.append(f"first token after {stats.time_to_first_token_seconds:.2f} s")
    parts.append("1 token" if stats.generated_tokens == 1 else f"{stats.generated_tokens} tokens")
    if not speculating:
        parts.append("without speculation")
    elif stats.speculation is not None and not stats.speculation.active:
        parts.append(f"no speculation: {stats.speculation.reason}")
    return " · ".join(parts)


def ending(reason: FinishReason) -> str | None:
    """Why a reply ends early, in a sentence; None where the model simply finished."""
    match reason:
        case FinishReason.STOP:
            return None
        case FinishReason.LENGTH:
            return "Stopped at the limit of tokens."
        case FinishReason.CONTEXT_FULL:
            return "Stopped: the model's context is full."
        case FinishReason.CANCELLED:
            return "Stopped."


def problems_of(loaded: Loaded) -> list[str]:
    """What a loaded pair lacks, in sentences."""
    problems = []
    if loaded.draft_problem:
        problems.append(f"There is no draft: {loaded.draft_problem}")
    if loaded.template_problem:
        problems.append(loaded.template_problem)
    return problems


def record(reply: Reply, loaded: Loaded) -> dict[str, Any]:
    """The JSON of a reply. `p` is the target's probability of a token, `q` the draft's."""
    state = reply.stats.speculation
    stats: dict[str, Any] = {name: getattr(reply.stats, name) for name in STATS}
    stats["speculation"] = {
        "active": state is not None and state.active,
        "reason": loaded.draft_problem or (state.reason if state else None),
        "draft_length": state.draft_length if state else 0,
        "chosen_lengths": [list(pair) for pair in state.chosen_lengths] if state else [],
        "costs": asdict(state.costs) if state and state.costs else None,
    }
    stats["accepted_by_source"] = dict(reply.stats.accepted_by_source)
    return {
        "text": reply.text,
        "finish_reason": reply.reason.value,
        "tokens": [
            {
                "id": token.id,
                "text": token.text,
                "origin": token.origin.value,
                "source": _name(token.source),
                "p": token.probability,
                "q": token.draft_probability,
            }
            for step in reply.steps
            for token in step.emitted
        ],
        "steps": [_step_record(step) for step in reply.steps],
        "stats": stats,
        "placement": placement_record(loaded.placement),
        "draft_placement": placement_record(loaded.draft_placement),
        "notices": [*problems_of(loaded), *reply.notices],
    }


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "index": step.index,
        "emitted": len(step.emitted),
        "drafted": step.tested_count + len(step.ignored),
        "accepted": step.accepted_count,
        "rejected": [_drafted_record(token) for token in step.rejected],
        "ignored": [_drafted_record(token) for token in step.ignored],
        "draft_seconds": step.draft_seconds,
        "target_seconds": step.target_seconds,
        "cache_length": step.cache_length,
        "source": _name(step.source),
    }


def _drafted_record(token: DraftedToken) -> dict[str, Any]:
    return {"id": token.id, "text": token.text, "p": token.probability, "q": token.draft_probability}


def _name(source: Source | None) -> str | None:
    return source.value if source else None
