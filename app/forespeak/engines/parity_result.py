"""What is asked of a parity check and what it found: nouns that cross the border to an engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from forespeak.speculation.trace import Source


class DifferenceKind(Enum):
    """Why two replies that should be equal part."""

    TIE = "numeric tie"
    """The target itself chooses the other token when it evaluates several at once, because scores move a little."""
    FAULT = "difference"
    """Nothing that the target computes explains it."""


@dataclass(frozen=True, slots=True)
class ParityRequest:
    """Check on the loaded pair that speculation leaves the words as they are, in the reproducible setting.

    Each of the first `prompts` prompts (all, if None) is answered greedily and sampled, `tokens` long: without
    speculation, with `sources` drafting as many tokens as pay, and with `draft_length` of them.
    """

    sources: tuple[Source, ...]
    tokens: int = 48
    draft_length: int = 4
    prompts: int | None = None


@dataclass(frozen=True, slots=True)
class TokenScores:
    """log p + g of two tokens at one place, g being the seed's noise; at temperature 0 log p alone.

    None: the filters (top-k, top-p, min-p) leave the token out.
    """

    plain: float | None
    drafted: float | None

    @property
    def distance(self) -> float | None:
        """How far the plain reply's token is ahead."""
        return None if self.plain is None or self.drafted is None else self.plain - self.drafted


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where a reply with speculation parts from the plain one.

    `place` counts the reply's tokens from 0; the two texts are empty where a reply had ended. `alone` are the scores
    when the target reads the reply token by token, `batched` when it reads it in the batches of the speculated reply.
    `moved` is the most that a score of a token in question differs between the two, before temperature, and `limit`
    the most that batches may move one.
    """

    way: str
    place: int
    plain_text: str
    drafted_text: str
    alone: TokenScores
    batched: TokenScores
    moved: float
    limit: float
    kind: DifferenceKind


@dataclass(frozen=True, slots=True)
class ParityCase:
    """One prompt at one temperature. `tested` counts the drafted tokens that the target judged."""

    prompt: str
    temperature: float
    tokens: int
    tested: int
    accepted: int
    differences: tuple[FirstDifference, ...] = ()

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def faulty(self) -> bool:
        return any(difference.kind is DifferenceKind.FAULT for difference in self.differences)


@dataclass(frozen=True, slots=True)
class ParityResult:
    """What a parity check found. It was stopped early if there are fewer cases than were `planned`.

    `moved`: how far evaluating several tokens at once moves this target's scores, as measured before the first prompt.
    `checked_at` is a time in ISO 8601, `engine` the name and version of what computed.
    """

    cases: tuple[ParityCase, ...]
    planned: int
    sources: tuple[Source, ...]
    moved: float
    seconds: float
    checked_at: str
    engine: str
    version: str
    ways: tuple[str, ...] = ()

    @property
    def equal(self) -> int:
        return sum(case.equal for case in self.cases)

    @property
    def faults(self) -> int:
        return sum(case.faulty for case in self.cases)

    @property
    def ties(self) -> int:
        """Cases that differ in numeric ties only."""
        return len(self.cases) - self.equal - self.faults

    @property
    def tested(self) -> int:
        """Drafted tokens that the target judged. None at all: the check shows nothing."""
        return sum(case.tested for case in self.cases)

    @property
    def complete(self) -> bool:
        return len(self.cases) == self.planned

    @property
    def first_difference(self) -> FirstDifference | None:
        """The first fault, or else the first tie."""
        found = [difference for case in self.cases for difference in case.differences]
        return next((each for each in found if each.kind is DifferenceKind.FAULT), found[0] if found else None)
