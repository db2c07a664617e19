"""What the heart needs of a model. Engines implement it; a scripted toy in the tests does too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
"""Raw scores, shape (rows, vocabulary size)."""


class EvaluationError(Exception):
    """The engine could not evaluate; the text says what it said. What is in the cache is what `tokens` tells."""


class Vocabulary(Protocol):
    """Token ids and the bytes they stand for."""

    @property
    def size(self) -> int: ...

    def piece(self, token: int) -> bytes:
        """The bytes a token adds to the text; empty for control tokens. A character may be split over tokens."""
        ...

    def ends_generation(self, token: int) -> bool:
        """Whether a reply ends at this token (end of sequence, end of turn, ...)."""
        ...


class LanguageModel(Protocol):
    """A model with one growing sequence in its KV cache."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens whose keys and values are in the cache now, in order."""
        ...

    @property
    def context_length(self) -> int:
        """The most tokens that the cache can hold."""
        ...

    @property
    def batch_limit(self) -> int:
        """The most tokens of one `evaluate`, and so what a cancel may have to wait for."""
        ...

    @property
    def output_limit(self) -> int:
        """The most rows of scores that one `evaluate` may return."""
        ...

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        """Append `tokens` to the cache and return the scores that follow each of the last `outputs` of them.

        The rows, shape (outputs, vocabulary size), stay valid until the next call. Raises ValueError if the tokens
        are too many, too few or out of range, and then nothing has changed; EvaluationError if the engine fails.
        """
        ...

    def truncate(self, length: int) -> None:
        """Keep at most the first `length` tokens in the cache: fewer, down to none, if it cannot be cut there."""
        ...


def check_batch(model: LanguageModel, tokens: Sequence[int], outputs: int) -> None:
    """Raises ValueError for what a model's `evaluate` does not take."""
    count = len(tokens)
    if not 1 <= count <= min(model.batch_limit, model.context_length - len(model.tokens)):
        raise ValueError(f"a batch of {count} tokens does not fit behind {len(model.tokens)}")
    if not 0 <= outputs <= min(count, model.output_limit):
        raise ValueError(f"{outputs} rows of scores for {count} tokens")
    if not 0 <= min(tokens) <= max(tokens) < model.vocabulary.size:
        raise ValueError("a token id lies outside of the vocabulary")


def common_prefix_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))
