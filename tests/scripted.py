"""Toy models for tests: their scores are a function of the tokens, and every contract of a real model is enforced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.draft import Draft, DraftSource, DraftSourceError, Evaluation
from forespeak.speculation.events import Finished, PromptProgress
from forespeak.speculation.language_model import Logits
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import FinishReason, GenerationStats, Source, SpeculationState, Step, Token

Row = NDArray[np.float32]
Scores = Callable[[tuple[int, ...]], Row]
"""The row of scores that follows a text, shape (vocabulary size,)."""


class ScriptedVocabulary:
    """Pieces given by the test; `ends` are the end-of-generation ids."""

    def __init__(self, pieces: Sequence[bytes], ends: Collection[int] = ()) -> None:
        self._pieces = tuple(pieces)
        self._ends = frozenset(ends)

    @property
    def size(self) -> int:
        return len(self._pieces)

    def piece(self, token: int) -> bytes:
        self._check(token)
        return self._pieces[token]

    def ends_generation(self, token: int) -> bool:
        self._check(token)
        return token in self._ends

    def _check(self, token: int) -> None:
        # A real engine's process dies of such an id.
        if not 0 <= token < self.size:
            raise ValueError(f"token {token} is not one of {self.size}")


class ScriptedSource:
    """A draft source that guesses `guess`, the whole text with its prompt, wherever it is asked.

    In the verb named by `breaks` it raises DraftSourceError from the `after`-th call on.
    """

    def __init__(self, guess: Sequence[int], *, breaks: str | None = None, after: int = 0) -> None:
        self._guess = tuple(guess)
        self._breaks = breaks
        self._patience = after
        self.text: list[int] = []
        self.calls: list[str] = []

    @property
    def blocked(self) -> str | None:
        return None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._called("begin")
        self.text = list(tokens)

    def observe(self, evaluation: Evaluation) -> None:
        self._called("observe")

    def propose(self, limit: int) -> Draft:
        self._called("propose")
        return Draft(self._guess[len(self.text) : len(self.text) + limit], Source.PROMPT_LOOKUP)

    def accept(self, tokens: Sequence[int]) -> None:
        self._called("accept")
        self.text += tokens

    def _called(self, verb: str) -> None:
        self.calls.append(verb)
        if verb == self._breaks:
            self._patience -= 1
            if self._patience < 0:
                raise DraftSourceError(f"It broke in {verb}.")


def letters(size: int, ends: Collection[int] = ()) -> ScriptedVocabulary:
    """Token i is the i-th letter from "a"; past "z" come the code points behind it."""
    return ScriptedVocabulary([chr(ord("a") + token).encode() for token in range(size)], ends)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One call of `evaluate`: what was in the cache, what went in, and how many rows were asked for."""

    cached: tuple[int, ...]
    tokens: tuple[int, ...]
    outputs: int


class ScriptedModel:
    """A language model made of a function. It records every evaluation in `evaluated`.

    Rows that were handed out become NaN at the next evaluation, as a real engine would overwrite them. Without
    `can_roll_back` a cut empties the cache, as recurrent models do.
    """

    def __init__(
        self,
        scores: Scores,
        vocabulary: ScriptedVocabulary,
        *,
        context_length: int = 1000,
        batch_limit: int = 1000,
        output_limit: int = 1000,
        can_roll_back: bool = True,
    ) -> None:
        self.scores = scores
        self.evaluated: list[Evaluated] = []
        self._can_roll_back = can_roll_back
        self._vocabulary = vocabulary
        self._context_length = context_length
        self._batch_limit = batch_limit
        self._output_limit = output_limit
        self._tokens: list[int] = []
        self._rows = np.zeros((0, vocabulary.size), dtype=np.float32)

    @property
    def vocabulary(self) -> ScriptedVocabulary:
        return self._vocabulary

    @property
    def tokens(self) -> Sequence[int]:
        return tuple(self._tokens)

    @property
    def context_length(self) -> int:
        return self._context_length

    @property
    def batch_limit(self) -> int:
        return self._batch_limit

    @property
    def output_limit(self) -> int:
        return self._output_limit

    @property
    def evaluated_count(self) -> int:
        """Tokens evaluated so far, all calls together."""
        return sum(len(call.tokens) for call in self.evaluated)

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        if not 1 <= len(tokens) <= self._batch_limit:
            raise ValueError(f"{len(tokens)} tokens do not make a batch of 1 to {self._batch_limit}")
        if not 0 <= outputs <= min(len(tokens), self._output_limit):
            raise ValueError(f"{outputs} rows of {len(tokens)} tokens, at most {self._output_limit}")
        if len(self._tokens) + len(tokens) > self._context_length:
            raise ValueError(f"{len(self._tokens)} + {len(tokens)} tokens overflow {self._context_length}")
        if not all(0 <= token < self._vocabulary.size for token in tokens):
            raise ValueError(f"a token of {tokens} is not one of {self._vocabulary.size}")
        self.evaluated.append(Evaluated(tuple(self._tokens), tuple(tokens), outputs))
        self._tokens += tokens
        self._rows.fill(np.nan)
        self._rows = np.empty((outputs, self._vocabulary.size), dtype=np.float32)
        end = len(self._tokens)
        for row in range(outputs):
            self._rows[row] = self.scores(tuple(self._tokens[: end - outputs + row + 1]))
        return self._rows

    def truncate(self, length: int) -> None:
        if length < 0:
            raise ValueError(f"{len(self._tokens)} tokens cannot be cut to {length}")
        if length < len(self._tokens) and not self._can_roll_back:
            length = 0
        del self._tokens[length:]


def random_scores(size: int, seed: int, *, order: int = 2, spread: float = 2.0) -> Scores:
    """Normal scores of standard deviation `spread`, drawn anew for each different last `order` tokens."""
    rows: dict[tuple[int, ...], Row] = {}

    def scores(prefix: tuple[int, ...]) -> Row:
        key = prefix[-order:]
        if key not in rows:
            generator = np.random.default_rng([seed, len(key), *key])
            rows[key] = (generator.standard_normal(size) * spread).astype(np.float32)
        return rows[key]

    return scores


def blended(first: Scores, second: Scores, weight: float) -> Scores:
    """`weight` of the first's scores and the rest of the second's: a draft that overlaps with its target in part."""

    def scores(prefix: tuple[int, ...]) -> Row:
        return (weight * first(prefix) + (1.0 - weight) * second(prefix)).astype(np.float32)

    return scores


def agreeing(target: Scores, probability: float, seed: int, *, order: int = 3) -> Scores:
    """The target's very scores after a fraction `probability` of all texts, and their mirror image after the others."""
    draws: dict[tuple[int, ...], bool] = {}

    def scores(prefix: tuple[int, ...]) -> Row:
        key = prefix[-order:]
        if key not in draws:
            draws[key] = np.random.default_rng([seed, len(key), *key]).random() < probability
        return target(prefix) if draws[key] else -target(prefix)

    return scores


def reciting(reply: Sequence[int], start: int, size: int, *, then: int = 0) -> Scores:
    """The model that says `reply` after a prompt of `start` tokens, and `then` ever after, almost surely."""

    def scores(prefix: tuple[int, ...]) -> Row:
        place = len(prefix) - start
        row = np.full(size, -20.0, dtype=np.float32)
        row[reply[place] if 0 <= place < len(reply) else then] = 20.0
        return row

    return scores


GREEDY = Sampler(SamplingSettings(temperature=0.0))


@dataclass(frozen=True, slots=True)
class Reply:
    """The events of a whole generation, by kind."""

    steps: tuple[Step, ...]
    states: tuple[SpeculationState, ...]
    progress: tuple[PromptProgress, ...]
    finish: FinishReason
    stats: GenerationStats

    @property
    def tokens(self) -> list[Token]:
        return [token for step in self.steps for token in step.emitted]

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)


def reply_of(
    target: ScriptedModel,
    source: DraftSource | None,
    sampler: Sampler = GREEDY,
    prompt: Sequence[int] = (0, 1, 2, 3, 0, 1, 2),
    length: int = 4,
    cancelled: Callable[[], bool] = lambda: False,
    **chosen: object,
) -> Reply:
    """Everything that one generation gives out; `chosen` are its DecodeSettings."""
    events = list(
        generate(
            target,
            source,
            prompt,
            sampler,
            FixedDraftLength(length),
            DecodeSettings(**chosen),  # type: ignore[arg-type]
            cancelled,
        )
    )
    last = events[-1]
    assert isinstance(last, Finished)
    assert not any(isinstance(event, Finished) for event in events[:-1])
    return Reply(
        tuple(event for event in events if isinstance(event, Step)),
        tuple(event for event in events if isinstance(event, SpeculationState)),
        tuple(event for event in events if isinstance(event, PromptProgress)),
        last.reason,
        last.stats,
    )
