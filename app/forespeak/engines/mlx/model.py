"""An MLX model as the heart's LanguageModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forespeak.engines.engine import CacheType
from forespeak.engines.mlx.caches import (
    NO_ROLLBACK,
    cache_type,
    is_trimmable,
    new_cache,
    restore,
    snapshot,
    trim,
    window,
    window_words,
)
from forespeak.engines.mlx.runtime import give_memory_back, mx, nn
from forespeak.engines.mlx.vocabulary import MlxVocabulary
from forespeak.speculation.language_model import EvaluationError, Logits, check_batch

_TIDY_TOKENS = 256
"""MLX keeps freed buffers for the next evaluation, of every size that there has been; it gives them back so often."""
_FEW = 16
"""Tokens without scores that are evaluated together with those that have some."""
_TRIED = 5


@dataclass(frozen=True, slots=True)
class _Begun:
    """The evaluation of one token that is not known yet. `token`: where to write it, shape (1, 1), in MLX's memory."""

    token: NDArray[np.int32]
    scores: Any
    before: list[tuple[Any, dict[str, Any]]]


class MlxModel:
    """One network with one cache.

    Putting an evaluation together takes Python as long as small models take to compute one. So while the device
    computes what follows a token, the evaluation of the next one is put together, where another single one is likely.

    Checks what would crash MLX, and knows at any time which tokens the cache holds: where cutting it fails, it begins
    anew. `config` is the folder's config.json. `cache_bits`: bits of a value of a quantised cache, None for values as
    the network computes them.
    `least_batch`: evaluations of fewer tokens are filled up to that many, which are then forgotten.
    """

    def __init__(
        self,
        network: nn.Module,
        vocabulary: MlxVocabulary,
        *,
        context_length: int,
        batch_limit: int,
        output_limit: int,
        chat_template: str | None = None,
        cache_bits: int | None = None,
        config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.network = network
        self.config = config
        self._vocabulary = vocabulary
        self._context_length = context_length
        self.batch_limit = batch_limit
        self.output_limit = min(output_limit, batch_limit)
        self.chat_template = chat_template
        self.cache_bits = cache_bits
        self.least_batch = 1
        self._tokens: list[int] = []
        self._since_tidied = 0
        self._begins = True
        self._begun: _Begun | None = None
        self._run_length = self._last_run_length = 0
        """Evaluations with one row of scores behind each other, each but the first of one token: now, and last time."""
        self._cache: list[Any] = new_cache(network, cache_bits)
        self._window = window(self._cache)
        self.cache_type = CacheType.F16
        """In which numbers the cache keeps the text; known once the model was tried out."""
        self.no_rollback: str | None = None if is_trimmable(self._cache) else NO_ROLLBACK
        """Why nothing can be taken back, in a sentence; None if it can, up to the window's length."""

    @property
    def vocabulary(self) -> MlxVocabulary:
        return self._vocabulary

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def context_length(self) -> int:
        return self._context_length

    @property
    def rollback_limit(self) -> tuple[int, str] | None:
        return None if self._window is None else (self._window - 1, window_words(self._window))

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        check_batch(self, tokens, outputs)
        if len(tokens) > 1 or outputs != 1:
            self._end_run()
        self._run_length += outputs == 1
        try:
            rows = self._run(tokens, outputs)
        except (RuntimeError, ValueError, TypeError, MemoryError) as error:
            # What a failed call left in the cache is not known to us.
            self._begin_anew()
            raise EvaluationError(str(error) or type(error).__name__) from error
        self._tokens += tokens
        self._since_tidied += len(tokens)
        if self._since_tidied >= _TIDY_TOKENS or outputs == 0:
            mx.clear_cache()
            self._since_tidied = 0
        return rows

    def _run(self, tokens: Sequence[int], outputs: int) -> Logits:
        if self._begun is not None:
            begun, self._begun = self._begun, None
            begun.token[0, 0] = tokens[0]
            return self._read(begun.scores, len(tokens))
        unscored = len(tokens) - outputs
        # A few rows too many cost less than a second reading of all weights.
        ahead = unscored if unscored > _FEW or not outputs else 0
        if ahead:
            self.network(mx.array(tokens[:ahead])[None], cache=self._cache)
            # MLX computes what is asked for: without its scores, the largest matrix of a small model is left out.
            mx.eval([part.state for part in self._cache])
        if not outputs:
            return np.empty((0, self._vocabulary.size), dtype=np.float32)
        room = self._context_length - len(self._tokens) - len(tokens)
        filler = max(0, min(self.least_batch - (len(tokens) - ahead), room))
        scored = mx.array([*tokens[ahead:], *[0] * filler])[None]
        first = unscored - ahead
        scores = self._scores(scored, first, outputs)
        if outputs == 1 and not filler:
            return self._read(scores, len(tokens))
        # Arrays that another thread would have to compute raise there.
        mx.eval(scores)
        rows = np.array(scores)
        if filler and not trim(self._cache, filler):
            raise RuntimeError("the cache cannot be cut back")
        return rows

    def _scores(self, tokens: Any, first: int, count: int) -> Any:  # noqa: ANN401 -- arrays of MLX
        return self.network(tokens, cache=self._cache)[0, first : first + count].astype(mx.float32)

    def _read(self, scores: Any, count: int) -> Logits:  # noqa: ANN401 -- an array of MLX
        """The row of scores behind `count` more tokens; meanwhile the next evaluation is begun."""
        mx.async_eval(scores)
        # Drafts of one length break off at the same place again and again.
        expected = self._run_length != self._last_run_length and self.least_batch == 1
        if self._begins and expected and len(self._tokens) + count < self._context_length:
            self._begun = self._begin()
        mx.eval(scores)
        return np.array(scores)

    def _begin(self) -> _Begun:
        before = snapshot(self._cache)
        token = mx.array([[0]])
        # A view of an array's own bytes: what is written there before the evaluation starts is what it reads.
        return _Begun(np.array(token, copy=False), self._scores(token, 0, 1), before)

    def _end_run(self) -> None:
        """Something else follows than was expected."""
        if self._run_length:
            self._last_run_length, self._run_length = self._run_length, 0
        if self._begun is not None:
            restore(self._begun.before)
            self._begun = None

    def truncate(self, length: int) -> None:
        excess = len(self._tokens) - max(length, 0)
        if excess <= 0:
            return
        self._end_run()
        if length > 0 and trim(self._cache, excess):
            del self._tokens[length:]
        else:
            # The caller evaluates what is missing.
            self._begin_anew()

    def shorten_context(self, length: int) -> None:
        """Hold no more than `length` tokens. The cache must hold fewer."""
        self._context_length = min(self._context_length, length)

    def try_out(self) -> None:
        """Try what networks with caches of their own may do in another way; from now on it is known what works.

        Taking tokens back: if scores are not as before, `no_rollback` says so. Beginning an evaluation before its
        token is known: a network that computes something at once must be left alone. Costs a few short evaluations;
        the cache must be empty, and is so afterwards.
        """
        text = [(17 + 29 * place) % self._vocabulary.size for place in range(_TRIED)]
        if self.no_rollback is None and (self.rollback_limit is None or self.rollback_limit[0] >= _TRIED):
            self.evaluate(text[:2], 1)
            before = self.evaluate(text[2:], _TRIED - 2)
            self.truncate(2)
            if len(self._tokens) != 2 or not _equal(before, self.evaluate(text[2:], _TRIED - 2)):
                self.no_rollback = NO_ROLLBACK
        found = []
        for self._begins in (False, True):
            self.truncate(0)
            self._last_run_length = 0
            found.append([self.evaluate([token], 1) for token in text[:3]][-1])
        self._begins = _equal(*found)
        self.cache_type = cache_type(self._cache)
        self.truncate(0)

    def close(self) -> None:
        self._begun = None
        self._cache.clear()
        self._tokens.clear()
        del self.network
        give_memory_back()

    def _begin_anew(self) -> None:
        self._begun = None
        self._tokens.clear()
        self._cache = new_cache(self.network, self.cache_bits)


def _equal(rows: Logits, others: Logits) -> bool:
    return np.allclose(rows, others, rtol=0.01, atol=0.01)
