"""Candidates and tests for the command line: as JSON values, and as a table with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forespeak.models.formats import model_stem
from forespeak.models.sizes import size_words
from forespeak.pairing.candidate_record import candidate_record, speed_words, verdict_words
from forespeak.pairing.candidates import Candidate, Candidates
from forespeak.pairing.offers import Offer
from forespeak.pairing.quick_test import QuickResult


def report_record(path: Path, target: Offer, found: Candidates, results: Sequence[QuickResult]) -> dict[str, Any]:
    return {
        "target": {
            "path": str(path),
            "name": target.name,
            "quantisation": target.label,
            "size_bytes": target.size_bytes,
            "advice": None if found.advice is None else found.advice.words,
        },
        "candidates": [candidate_record(candidate) for candidate in found.listed],
        "tests": [_test_record(result) for result in results],
    }


def _test_record(result: QuickResult) -> dict[str, Any]:
    return {
        "draft": None if result.test.draft is None else str(result.test.draft),
        "kind": result.test.kind,
        "seconds": result.seconds,
        "complete": result.complete,
        "too_short": result.too_short,
        "stopped": result.stopped,
        "plain_tokens_per_second": result.plain_rate,
        "speculative_tokens_per_second": result.speculative_rate,
        "acceptance_rate": result.acceptance,
        "prompts": [
            {
                "name": each.prompt.name,
                "tokens": each.tokens,
                "plain_tokens_per_second": each.plain_rate,
                "speculative_tokens_per_second": each.speculative_rate,
                "acceptance_rate": each.acceptance,
                "same_words": each.same_words,
                "pause": each.pause,
            }
            for each in result.prompts
        ],
    }


def report_lines(target: Offer, found: Candidates, results: Sequence[QuickResult]) -> list[str]:
    """The usable ones in a table, best first; each of the others with its reason; then the tests."""
    lines = [f"What could draft for {target.name}:"]
    if found.usable:
        rows = [("draft", "size", "vocabulary", "speed-up", "memory"), *map(_row, found.usable)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines += [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        lines += [f"{each.name}: {advice.words}" for each in found.usable for advice in each.advice]
    else:
        lines.append("Nothing of what was looked at.")
    if found.advice is not None:
        lines.append(found.advice.words)
    if found.excluded:
        lines += ["", "Out of the question:", *(f"{each.name}: {each.excluded}" for each in found.excluded)]
    for result in results:
        lines += ["", *_test_lines(result)]
    return lines


def _row(candidate: Candidate) -> tuple[str, ...]:
    offer = candidate.offer
    size = "" if offer is None or not offer.size_bytes else size_words(offer.size_bytes)
    if offer is not None and offer.making is not None:
        size = f"about {size}, --make {offer.making.number_format.value}"
    if offer is not None and offer.download_bytes:
        size += " to download"
    fit = "" if candidate.memory is None else candidate.memory.fit.value
    return candidate.name, size, verdict_words(candidate), speed_words(candidate), fit


def _test_lines(result: QuickResult) -> list[str]:
    name = "looked-up text" if result.test.draft is None else model_stem(result.test.draft)
    lines = [f"Test of {name}, {result.test.kind}, {result.seconds:.0f} s:"]
    for each in result.prompts:
        accepted = "" if each.acceptance is None else f", {each.acceptance:.0%} of drafts accepted".replace("%", " %")
        words = "" if each.same_words else "; the words differ, which forespeak parity explains"
        lines.append(
            f"{each.prompt.name}: {each.plain_rate:.1f} tokens/s plain, {each.speculative_rate:.1f} with drafts, "
            f"{each.speed_up:.2f}×{accepted}{words}{'' if each.pause is None else f' ({each.pause})'}"
        )
    if not result.complete:
        lines.append(f"{len(result.prompts)} of {result.planned} prompts: {_why_not_all(result)}.")
    return lines


def _why_not_all(result: QuickResult) -> str:
    reasons = []
    if result.too_short:
        reasons.append(f"the replies to {result.too_short} ended too early to be timed")
    if len(result.prompts) + result.too_short < result.planned:
        reasons.append("it was stopped" if result.stopped else "there was no time for more")
    return ", and ".join(reasons)
