"""An MLX model as the heart's LanguageModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from forespeak.engines.mlx.caches import NO_ROLLBACK, is_trimmable, new_cache, trim, window, window_words
from forespeak.engines.mlx.runtime import mx, nn
from forespeak.engines.mlx.vocabulary import MlxVocabulary
from forespeak.speculation.language_model import EvaluationError, Logits, check_batch

_TIDY_TOKENS = 256
"""MLX keeps freed buffers for the next evaluation, of every size that there has been; it gives them back so often."""
_FEW = 16
"""Tokens without scores that are evaluated together with those that have some."""
_TRIED = 5


class MlxModel:
    """One network with one cache.

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
        self._cache: list[Any] = new_cache(network, cache_bits)
        self._window = window(self._cache)
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
        scores = self.network(scored, cache=self._cache)[0, first : first + outputs].astype(mx.float32)
        # Arrays that another thread would have to compute raise there: nothing lazy leaves this call.
        mx.eval(scores)
        rows = np.array(scores)
        if filler and not trim(self._cache, filler):
            raise RuntimeError("the cache cannot be cut back")
        return rows

    def truncate(self, length: int) -> None:
        excess = len(self._tokens) - max(length, 0)
        if excess <= 0:
            return
        if length > 0 and trim(self._cache, excess):
            del self._tokens[length:]
        else:
            # The caller evaluates what is missing.
            self._begin_anew()

    def shorten_context(self, length: int) -> None:
        """Hold no more than `length` tokens. The cache must hold fewer."""
        self._context_length = min(self._context_length, length)

    def try_rollback(self) -> None:
        """Take tokens back once and see whether the scores are as before; if not, `no_rollback` says so from now on.

        Networks come with caches of their own, and what such a cache claims is not always so. Costs three short
        evaluations; the cache must be empty, and is so afterwards.
        """
        if self.no_rollback is not None or (self.rollback_limit is not None and self.rollback_limit[0] < _TRIED):
            return
        text = [(17 + 29 * place) % self._vocabulary.size for place in range(_TRIED)]
        self.evaluate(text[:2], 1)
        before = self.evaluate(text[2:], _TRIED - 2)
        self.truncate(2)
        if len(self._tokens) != 2 or not np.allclose(before, self.evaluate(text[2:], _TRIED - 2), rtol=0.01, atol=0.01):
            self.no_rollback = NO_ROLLBACK
        self.truncate(0)

    def close(self) -> None:
        self._cache.clear()
        self._tokens.clear()
        del self.network
        mx.clear_cache()

    def _begin_anew(self) -> None:
        self._tokens.clear()
        self._cache = new_cache(self.network, self.cache_bits)
