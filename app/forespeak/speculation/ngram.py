"""Draft sources without a model: they look the next tokens up in the text so far. Here: what they share, and two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forespeak.speculation.draft import EMPTY_DRAFT, Draft, Evaluation
from forespeak.speculation.language_model import common_prefix_length
from forespeak.speculation.occurrences import Gram, Occurrences
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramSimpleSettings, PromptLookupSettings
from forespeak.speculation.trace import Source


class TextSource(ABC):
    """A source that needs the text alone, and its index: both follow edits, branches and regenerations of the chat.

    What a new text shares with the former one stays indexed, the rest is undone and indexed anew.
    """

    def __init__(self) -> None:
        self._text: list[int] = []

    @property
    def blocked(self) -> str | None:
        return None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        kept = common_prefix_length(self._text, tokens)
        if kept < len(self._text):
            self._cut(kept)
            del self._text[kept:]
        self._text += tokens[kept:]
        self._follow()

    def observe(self, evaluation: Evaluation) -> None:  # noqa: B027 (meant to be empty)
        """The text alone matters."""

    @abstractmethod
    def propose(self, limit: int) -> Draft: ...

    def accept(self, tokens: Sequence[int]) -> None:
        self._text += tokens
        self._follow()

    @abstractmethod
    def _follow(self) -> None:
        """The text has grown: index what is new."""

    @abstractmethod
    def _cut(self, length: int) -> None:
        """The text, still whole, is about to be cut to `length`: undo what was indexed beyond."""


LONGEST_SUPPORT = 32


def support(text: list[int], start: int, known: int, length: int) -> tuple[int, ...]:
    """For each of `length` tokens copied from `start` on: how many tokens before it agree, LONGEST_SUPPORT at most.

    The `known` tokens before `start` are those at the end of the text.
    """
    agree = known
    while agree < LONGEST_SUPPORT and agree < start and text[start - 1 - agree] == text[-1 - agree]:
        agree += 1
    return tuple(range(agree, agree + length))


def continuation(text: list[int], start: int, length: int) -> Gram:
    """The `length` tokens from `start` on.

    A match that reaches the end of the text makes the text periodic: what follows is the match again.
    """
    found = text[start : start + length]
    period = len(found)
    while len(found) < length:
        found += found[: min(period, length - len(found))]
    return tuple(found)


class PromptLookup(TextSource):
    """Proposes what followed the newest earlier occurrence of the last few tokens.

    Longer matches are tried first. After Saxena, "Prompt Lookup Decoding" (2023), with the newest match in place of
    the first: a text repeats what it said last. A proposal costs a few look-ups however long the chat is.
    """

    def __init__(self, settings: PromptLookupSettings = PromptLookupSettings()) -> None:
        super().__init__()
        self._most = settings.num_pred_tokens
        sizes = range(settings.max_ngram_size, settings.min_ngram_size - 1, -1)
        self._indexes = [Occurrences(size) for size in sizes]

    def propose(self, limit: int) -> Draft:
        for index in self._indexes:
            start = index.newest(index.gram(self._text))
            if start is not None and limit > 0:
                tokens = continuation(self._text, start, min(limit, self._most))
                agreeing = support(self._text, start, index.size, len(tokens))
                return Draft(tokens, Source.PROMPT_LOOKUP, support=agreeing)
        return EMPTY_DRAFT

    def _follow(self) -> None:
        for index in self._indexes:
            index.follow(self._text)

    def _cut(self, length: int) -> None:
        for index in self._indexes:
            index.cut(self._text, length)


class NgramSimple(TextSource):
    """Proposes what followed the newest earlier occurrence of a long n-gram: few matches, but sure ones.

    llama.cpp's `ngram-simple` (common/ngram-map.cpp), with an index in place of its search from the end. Where the
    match is less than an n-gram away that one drafts nothing; here such a repetition goes on.
    """

    def __init__(self, settings: NgramSimpleSettings = NgramSimpleSettings()) -> None:
        super().__init__()
        self._settings = settings
        self._index = Occurrences(settings.size_n)

    def propose(self, limit: int) -> Draft:
        start = self._index.newest(self._index.gram(self._text))
        if start is None or limit < 1:
            return EMPTY_DRAFT
        tokens = continuation(self._text, start, min(limit, self._settings.size_m))
        agreeing = support(self._text, start, self._settings.size_n, len(tokens))
        return Draft(tokens, Source.NGRAM_SIMPLE, support=agreeing)

    def _follow(self) -> None:
        self._index.follow(self._text)

    def _cut(self, length: int) -> None:
        self._index.cut(self._text, length)
