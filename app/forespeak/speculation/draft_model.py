"""A second, smaller language model as a draft source.

Its confidence in a token that it drafts is what its gate judges by. Under the coupled rule, and at temperature 0, the
target takes the same token unless its scores differ from the draft's by more than the draft prefers that token to the
next best one, noise included: with a lead of d nats the confidence is 1 - exp(-d). The noise is the same for both, so
an unlikely token may be a sure guess, and a likely one a doubtful one. Under the rejection rule the two draw apart from
each other, and the confidence is the draft's probability q of the token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from forespeak.speculation.constraint import NoTokenLeftError
from forespeak.speculation.controller import DraftGate
from forespeak.speculation.draft import EMPTY_DRAFT, Draft, DraftSourceError, Evaluation
from forespeak.speculation.language_model import EvaluationError, LanguageModel, Logits, common_prefix_length
from forespeak.speculation.sampling import Distribution, GreedyDistribution, Sampler, Stream
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source


class DraftModel:
    """Drafts with a model whose token ids mean the same as the target's.

    Its KV cache is kept from draft to draft: what was accepted stays, what was rejected is cut off, and only the
    tokens it has not seen (one, or two after a fully accepted draft) are evaluated before the next proposal. Where it
    has missed many, because drafting was paused, the gate may have it begin anew with the last few: its cache then
    holds the text from some place on.

    Under the coupled rule it guesses with the target's own noise; under the rejection rule it samples with noise of
    its own. `gate` decides while drafting how far to go and how much of it to have tested; without one, every draft has
    the length that the loop asks for. `reads_prompt`: evaluate a new prompt at once, rather than with the first draft.

    Ids that only the draft knows (padding of its embedding) are never proposed; one that only the target knows
    ends drafting for this text.
    """

    def __init__(
        self,
        model: LanguageModel,
        target_vocabulary_size: int,
        rule: Rule,
        cancelled: Callable[[], bool],
        *,
        gate: DraftGate | None = None,
        reads_prompt: bool = True,
    ) -> None:
        self._model = model
        self._shared_size = min(target_vocabulary_size, model.vocabulary.size)
        self._stream = Stream.TARGET if rule is Rule.COUPLED else Stream.DRAFT
        self._cancelled = cancelled
        self._gate = gate
        self._reads_prompt = reads_prompt
        self._tokens: list[int] = []
        self._start = 0
        """The place in the text where the model's cache begins."""
        self._unknown: int | None = None
        """A token of the text that the draft's vocabulary does not have."""
        self._sampler: Sampler | None = None

    @property
    def blocked(self) -> str | None:
        if self._unknown is not None:
            return f"The draft model does not know token {self._unknown} of this text."
        if len(self._tokens) - self._start >= self._model.context_length:
            return f"The draft model's context of {self._model.context_length} tokens is full."
        return None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._tokens = list(tokens)
        self._unknown = self._first_unknown(tokens)
        self._sampler = sampler
        self._start = 0
        self._model.truncate(min(common_prefix_length(self._model.tokens, tokens), len(tokens) - 1))
        if self.blocked is None and self._reads_prompt:
            self._read_up_to(len(tokens) - 1)

    def observe(self, evaluation: Evaluation) -> None:
        """Needs nothing of the target's insides."""

    def propose(self, limit: int) -> Draft:
        if limit < 1 or self.blocked is not None or self._sampler is None:
            return EMPTY_DRAFT
        self._forgo_what_is_too_much()
        # The last drafted token is not evaluated here, so a draft of k tokens takes k - 1 places beyond the text's.
        limit = min(limit, self._model.context_length - (len(self._tokens) - self._start) + 1)
        if self._read_length < len(self._tokens) - self._model.batch_limit:
            self._read_up_to(len(self._tokens) - 1)
            if self._cancelled():
                return EMPTY_DRAFT
        unseen = self._tokens[self._read_length :]
        drafted: list[int] = []
        distributions: list[Distribution] = []
        confidences: list[float] = []
        while True:
            logits = self._evaluate(unseen, 1)[0, : self._shared_size]
            try:
                choices = self._sampler.after(logits, self._tokens, drafted)
            except NoTokenLeftError:
                break  # What may follow is known to the target alone.
            token, lead = self._sampler.choose_with_lead(choices, len(self._tokens) + len(drafted), self._stream)
            drafted.append(token)
            distributions.append(choices)
            if self._stream is Stream.TARGET or isinstance(choices, GreedyDistribution):
                confidences.append(-math.expm1(-lead))
            else:
                confidences.append(choices.probability(token))
            if len(drafted) == limit or self._model.vocabulary.ends_generation(token):
                break
            if self._gate is not None and not self._gate.worth_another(confidences):
                break
            unseen = [token]
        keep = len(drafted) if self._gate is None else self._gate.worth_testing(confidences)
        if not drafted:
            return EMPTY_DRAFT
        return Draft(tuple(drafted[:keep]), Source.DRAFT_MODEL, tuple(distributions), tuple(drafted[keep:]))

    def accept(self, tokens: Sequence[int]) -> None:
        before = len(self._tokens)
        self._tokens += tokens
        if self._unknown is None:
            self._unknown = self._first_unknown(tokens)
        if (drafted := self._read_length - before) > 0:
            held = self._model.tokens
            agreed = common_prefix_length(held[len(held) - drafted :], tokens)
            # One token stays to be evaluated: its scores are the next proposal's first.
            self._model.truncate(min(before + agreed, len(self._tokens) - 1) - self._start)

    @property
    def _read_length(self) -> int:
        """The text up to there is read."""
        return self._start + len(self._model.tokens)

    def _forgo_what_is_too_much(self) -> None:
        unread = len(self._tokens) - self._read_length - 1
        if self._gate is not None and (readable := self._gate.may_read(unread)) < unread:
            self._model.truncate(0)
            self._start = len(self._tokens) - 1 - readable

    def _first_unknown(self, tokens: Sequence[int]) -> int | None:
        size = self._model.vocabulary.size
        return next((token for token in tokens if token >= size), None)

    def _read_up_to(self, length: int) -> None:
        while self._read_length < length and not self._cancelled():
            start = self._read_length
            self._evaluate(self._tokens[start : min(length, start + self._model.batch_limit)], 0)

    def _evaluate(self, tokens: Sequence[int], outputs: int) -> Logits:
        try:
            return self._model.evaluate(tokens, outputs)
        except EvaluationError as error:
            raise DraftSourceError(f"The draft model failed ({error}); the target goes on without it.") from error
