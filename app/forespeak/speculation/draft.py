"""A draft and the four verbs of whatever makes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from forespeak.speculation.language_model import Logits
from forespeak.speculation.sampling import Distribution, Sampler
from forespeak.speculation.trace import Source


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed to follow the text so far.

    `dropped` were drafted behind `tokens` and then not found worth testing. `distributions` holds, for a source that
    has them, what each token was chosen from, the dropped ones included, after the same filters that the target
    applies; empty for a source that simply guesses. `support` holds, for one that looks the text up, how many tokens
    before each token agree with those before the place that it was taken from.
    """

    tokens: tuple[int, ...] = ()
    source: Source | None = None
    distributions: tuple[Distribution, ...] = ()
    dropped: tuple[int, ...] = ()
    support: tuple[int, ...] = ()

    @property
    def drafted(self) -> tuple[int, ...]:
        """All tokens that were drafted: those to be tested, then the dropped ones."""
        return self.tokens + self.dropped

    def probability(self, position: int) -> float | None:
        """The draft's own q of its drafted token at `position`, or None if the source has no probabilities."""
        if not self.distributions:
            return None
        return self.distributions[position].probability(self.drafted[position])


EMPTY_DRAFT = Draft()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One target evaluation, as a draft source may watch it: the tokens that went in, the rows that came out."""

    tokens: tuple[int, ...]
    logits: Logits


class DraftSourceError(Exception):
    """A draft source broke. The generation goes on without it; the text says why, in a sentence."""


class DraftSource(Protocol):
    """Guesses the next tokens. Driven by the loop in `decode`, in this order:

    `observe` after every target evaluation, the prompt's first; `begin` once, when the prompt is evaluated; then
    `propose` before a step and `accept` after it. Each may raise DraftSourceError.
    """

    @property
    def blocked(self) -> str | None:
        """Why nothing can be proposed any more, in a sentence; None while drafting is possible."""
        ...

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        """A generation starts after `tokens`; `sampler` is the target's own, to guess what it will choose."""
        ...

    def observe(self, evaluation: Evaluation) -> None: ...

    def propose(self, limit: int) -> Draft:
        """At most `limit` (>= 1) tokens to follow everything begun with and accepted so far."""
        ...

    def accept(self, tokens: Sequence[int]) -> None:
        """`tokens` were emitted: accepted draft tokens first, then the target's own."""
        ...
