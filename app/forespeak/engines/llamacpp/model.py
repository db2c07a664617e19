"""A llama.cpp model as the heart's LanguageModel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forespeak.engines.devices import PROCESSOR, ModelSetting
from forespeak.engines.engine import Placement
from forespeak.engines.llamacpp.bindings import NativeContext, NativeError, NativeModel, NativeVocabulary
from forespeak.engines.llamacpp.placement import placement_of
from forespeak.speculation.language_model import EvaluationError, Logits, check_batch

_NO_ROLLBACK = "This target's cache cannot be rolled back, so drafts cannot be checked with it."


class LlamaModel:
    """One model with one context. Owns both, or with `owns_weights` False the context alone.

    Checks everything that would make llama.cpp abort the process, and knows at any time which tokens the cache holds.
    `thread_count` is asked before every evaluation. `least_batch`: evaluations of fewer tokens are filled up to that
    many, which are then forgotten (see `engines.steady`). `setting` is how it was to be loaded, `placement` what became
    of that.
    """

    def __init__(
        self,
        native: NativeModel,
        context: NativeContext,
        output_limit: int,
        thread_count: Callable[[], int],
        *,
        setting: ModelSetting = PROCESSOR,
        owns_weights: bool = True,
    ) -> None:
        self.native = native
        self.thread_count = thread_count
        self.setting = setting
        self._owns_weights = owns_weights
        self._context = context
        self._output_limit = output_limit
        self.least_batch = 1
        self._tokens: list[int] = []

    @property
    def vocabulary(self) -> NativeVocabulary:
        return self.native.vocabulary

    @property
    def chat_template(self) -> str | None:
        return self.native.chat_template

    @property
    def placement(self) -> Placement:
        return placement_of(self.native.told, self._context.told, self.setting, self.thread_count())

    @property
    def no_rollback(self) -> str | None:
        return None if self.native.can_roll_back else _NO_ROLLBACK

    @property
    def rollback_limit(self) -> None:
        return None

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def context_length(self) -> int:
        return self._context.length

    @property
    def batch_limit(self) -> int:
        return self._context.batch

    @property
    def output_limit(self) -> int:
        return self._output_limit

    def evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        check_batch(self, tokens, outputs)
        count = len(tokens)
        self._context.use_threads(self.thread_count())
        length = len(self._tokens) + count
        # At the very end of the context there is no room to fill up.
        filler = max(0, min(self.least_batch - count, self.context_length - length))
        try:
            # What is behind the last layer's attention is computed for rows with scores alone, and a GPU's kernels
            # change with their number too.
            logits = self._context.decode(
                tokens, len(self._tokens), outputs, filler, score_filler=self.setting.on_gpu and outputs > 0
            )
            if filler and not self._context.remove_from(length):
                raise NativeError("the cache cannot be cut back")
        except NativeError as error:
            # What a failed call left in the cache is not known to us.
            self._forget_from(len(self._tokens))
            raise EvaluationError(str(error)) from error
        self._tokens += tokens
        return logits

    def truncate(self, length: int) -> None:
        if length < len(self._tokens):
            self._forget_from(length)

    def close(self) -> None:
        self._context.close()
        if self._owns_weights:
            self.native.close()

    def _forget_from(self, length: int) -> None:
        if self._context.remove_from(length):
            del self._tokens[length:]
        else:
            # A cache that cannot roll back (recurrent states) starts again; the caller evaluates what is missing.
            self._context.clear()
            self._tokens.clear()
