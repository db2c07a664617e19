"""What a run showed, step by step, so that it can be shown again at the speed at which it went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forespeak.speculation.trace import DraftedToken, GenerationStats, Origin, Source, Step, Token

_ORIGINS = {Origin.TARGET: "t", Origin.ACCEPTED: "a", Origin.CORRECTED: "c", Origin.BONUS: "b", Origin.UNKNOWN: "u"}
_ORIGIN_OF = {letter: origin for origin, letter in _ORIGINS.items()}


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step and when it was there, in seconds since the request. Alternatives and the drafts' q are not kept."""

    at: float
    step: Step


def recording_of(steps: Sequence[Step], stats: GenerationStats) -> tuple[RecordedStep, ...]:
    """When the steps were there, by what the engine itself has measured.

    Not by when they arrived: an engine in another process sends them in bundles. What a reply took beside its steps
    is shared out among them, so that the last one stands where the reply ended.
    """
    if not steps:
        return ()
    # The first step is the prompt's evaluation.
    spent = [step.draft_seconds + step.target_seconds for step in steps[1:]]
    total = sum(spent)
    stretch = stats.decode_seconds / total if total > 0 else 0.0
    at = stats.time_to_first_token_seconds
    recorded = [RecordedStep(at, steps[0])]
    for step, seconds in zip(steps[1:], spent, strict=True):
        at += seconds * stretch if total > 0 else stats.decode_seconds / len(spent)
        recorded.append(RecordedStep(at, step))
    return tuple(recorded)


def to_plain(recording: Sequence[RecordedStep]) -> list[list[Any]]:
    """As JSON values, short ones: [at, draft and target microseconds, source, emitted, rejected, ignored] each.

    Emitted tokens are [id, text, letter of the origin, p], the others [id, text].
    """
    return [
        [
            round(recorded.at * 1e6),
            round(step.draft_seconds * 1e6),
            round(step.target_seconds * 1e6),
            step.source.value if step.source else None,
            [[token.id, token.text, _ORIGINS[token.origin], _short(token.probability)] for token in step.emitted],
            [[token.id, token.text] for token in step.rejected],
            [[token.id, token.text] for token in step.ignored],
        ]
        for recorded in recording
        for step in (recorded.step,)
    ]


def _short(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 5)


def from_plain(plain: Sequence[Sequence[Any]]) -> tuple[RecordedStep, ...]:
    """What `to_plain` made. Raises ValueError, TypeError or KeyError for anything else."""
    return tuple(_recorded(plain))


def _recorded(plain: Sequence[Sequence[Any]]) -> Iterator[RecordedStep]:
    for index, (at, drafting, target, name, emitted, rejected, ignored) in enumerate(plain):
        source = None if name is None else Source(name)
        tokens = tuple(
            Token(number, text, origin, source if origin is Origin.ACCEPTED else None, probability)
            for number, text, letter, probability in emitted
            for origin in (_ORIGIN_OF[letter],)
        )
        step = Step(
            index,
            tokens,
            tuple(DraftedToken(number, text) for number, text in rejected),
            tuple(DraftedToken(number, text) for number, text in ignored),
            source,
            drafting / 1e6,
            target / 1e6,
        )
        yield RecordedStep(at / 1e6, step)
