"""The line of counts under a reply, and its record."""

from __future__ import annotations

from forespeak.engines.collect import Reply
from forespeak.reply import counts, ending
from forespeak.speculation.trace import FinishReason, GenerationStats, SpeculationState

_STATS = GenerationStats(
    time_to_first_token_seconds=0.214,
    generated_tokens=160,
    tokens_per_second=68.44,
    accepted_draft_tokens_count=293,
    rejected_draft_tokens_count=119,
    ignored_draft_tokens_count=2,
    acceptance_rate=293 / 412,
    mean_acceptance_length=4.12,
    speculation=SpeculationState(True, "Drafting.", 4),
)


def reply(stats: GenerationStats) -> Reply:
    return Reply((), (), FinishReason.STOP, stats)


def test_counts_are_one_line() -> None:
    assert counts(reply(_STATS), speculating=True) == (
        "68.4 tokens/s · 71 % of drafts accepted (293 of 412) · 4.1 tokens per check · "
        "2 drafted but not needed · first token after 0.21 s · 160 tokens"
    )


def test_counts_say_why_nothing_was_drafted() -> None:
    paused = GenerationStats(generated_tokens=1, speculation=SpeculationState(False, "It does not pay."))
    assert counts(reply(paused), speculating=True).endswith("1 token · no speculation: It does not pay.")
    assert counts(reply(paused), speculating=False).endswith("1 token · without speculation")


def test_an_ordinary_end_needs_no_words() -> None:
    assert ending(FinishReason.STOP) is None
    assert all(ending(reason) for reason in FinishReason if reason is not FinishReason.STOP)
