"""Draft sources without a model: they look the next tokens up in the text so far."""

from __future__ import annotations

from collections.abc import Sequence

from forespeak.speculation.draft import EMPTY_DRAFT, Draft, Evaluation
from forespeak.speculation.language_model import common_prefix_length
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.trace import Source


class PromptLookup:
    """Proposes what followed the newest earlier occurrence of the last few tokens.

    Longer matches are tried first. After Saxena, "Prompt Lookup Decoding" (2023), with the newest match in place of
    the first: a text repeats what it said last. The index grows with the text, so a proposal costs a few look-ups
    however long the chat is; it is made anew when a chat was edited or branched.
    """

    def __init__(self, longest: int = 3, shortest: int = 2) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"n-grams from {shortest} to {longest} tokens are not a range")
        self._sizes = range(longest, shortest - 1, -1)
        self._tokens: list[int] = []
        self._follower: dict[tuple[int, ...], int] = {}
        """n-gram -> index of the token behind its newest occurrence that has one."""

    @property
    def blocked(self) -> str | None:
        return None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        known = len(self._tokens)
        if common_prefix_length(self._tokens, tokens) < known:
            self._tokens, self._follower, known = [], {}, 0
        self._extend(tokens[known:])

    def observe(self, evaluation: Evaluation) -> None:
        """The text alone matters."""

    def propose(self, limit: int) -> Draft:
        for size in self._sizes:
            start = self._follower.get(tuple(self._tokens[-size:]))
            if start is not None:
                found = self._tokens[start : start + limit]
                # A match that reaches the end of the text makes the text periodic: what follows is the match again.
                period = len(self._tokens) - start
                drafted = tuple(found[place % period] for place in range(limit)) if len(found) < limit else tuple(found)
                return Draft(drafted, Source.PROMPT_LOOKUP)
        return EMPTY_DRAFT

    def accept(self, tokens: Sequence[int]) -> None:
        self._extend(tokens)

    def _extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            end = len(self._tokens)
            for size in self._sizes:
                if size <= end:
                    self._follower[tuple(self._tokens[end - size : end])] = end
            self._tokens.append(token)
