"""A draft source without a model: counts of what followed each short n-gram."""

from __future__ import annotations

from dataclasses import dataclass, field

from forespeak.speculation.draft import EMPTY_DRAFT, Draft
from forespeak.speculation.ngram import TextSource
from forespeak.speculation.occurrences import Gram
from forespeak.speculation.settings import NgramCacheSettings
from forespeak.speculation.trace import Source


@dataclass(slots=True)
class _Counts:
    favourite: int
    total: int = 1
    of: dict[int, int] = field(default_factory=dict)


class FollowerCounts:
    """How often each token followed each n-gram. Among equals the favourite is the one that got there last."""

    def __init__(self) -> None:
        self._followers: dict[Gram, int | _Counts] = {}
        """Most n-grams occur once: for those, the follower alone saves nine tenths of the memory."""

    def __len__(self) -> int:
        return len(self._followers)

    def add(self, gram: Gram, token: int) -> int:
        """Returns the favourite before, which `undo` needs; -1 if there was none."""
        counts = self._followers.get(gram)
        if counts is None:
            self._followers[gram] = token
            return -1
        if isinstance(counts, int):
            counts = _Counts(counts, 1, {counts: 1})
            self._followers[gram] = counts
        before = counts.favourite
        counts.total += 1
        counts.of[token] = counts.of.get(token, 0) + 1
        if counts.of[token] >= counts.of[before]:
            counts.favourite = token
        return before

    def undo(self, gram: Gram, token: int, before: int) -> None:
        """Take the newest `add` back."""
        counts = self._followers[gram]
        if isinstance(counts, int):
            del self._followers[gram]
        elif counts.total == 2:
            self._followers[gram] = before
        else:
            counts.total -= 1
            counts.favourite = before
            counts.of[token] -= 1
            if not counts.of[token]:
                del counts.of[token]

    def favourite(self, gram: Gram) -> tuple[int, int, int] | None:
        """The token that followed most often, how often, and how often anything did."""
        counts = self._followers.get(gram)
        if counts is None:
            return None
        if isinstance(counts, int):
            return counts, 1, 1
        return counts.favourite, counts.of[counts.favourite], counts.total


class NgramCache(TextSource):
    """Proposes, token by token, what most often followed the longest n-gram at the end that is sure enough.

    llama.cpp's `ngram-cache` (common/ngram-cache.cpp; the idea is of its `lookup` example) without its static part,
    a file made of a large corpus. The counts of the text itself are asked first. `shared` adds the dynamic ones, of
    which more is demanded: what was said in texts that are gone, a regenerated reply or another chat.
    """

    def __init__(
        self,
        settings: NgramCacheSettings = NgramCacheSettings(),
        *,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._longest = len(settings.context_min_samples)
        self._shared = shared
        self._context = FollowerCounts()
        self._dynamic = FollowerCounts()
        self._counted = 1
        """The index of the first token not yet counted as a follower."""
        self._log: list[int] = []
        """The favourites before each `add`, for undoing."""

    def propose(self, limit: int) -> Draft:
        tail = self._text[-self._longest :]
        drafted: list[int] = []
        agreeing: list[int] = []
        while len(drafted) < min(limit, self._settings.n_max):
            found = self._next_of(tail)
            if found is None:
                break
            token, size = found
            drafted.append(token)
            agreeing.append(size)
            tail = [*tail, token][-self._longest :]
        return Draft(tuple(drafted), Source.NGRAM_CACHE, support=tuple(agreeing)) if drafted else EMPTY_DRAFT

    def _next_of(self, tail: list[int]) -> tuple[int, int] | None:
        """The token that is sure enough to follow, and the size of the n-gram that says so."""
        settings = self._settings
        grams = [tuple(tail[-size:]) for size in range(len(tail), 0, -1)]
        for counts, min_samples, min_percent in (
            (self._context, settings.context_min_samples, settings.context_min_percent),
            (self._dynamic, settings.dynamic_min_samples, settings.dynamic_min_percent),
        ):
            for gram in grams:
                found = counts.favourite(gram)
                if found is None:
                    continue
                token, count, total = found
                place = len(gram) - 1
                if total >= min_samples[place] and 100 * count >= min_percent[place] * total:
                    return token, len(gram)
        return None

    def _follow(self) -> None:
        text, add, log = self._text, self._context.add, self._log
        for end in range(self._counted, len(text)):
            for size in range(1, min(self._longest, end) + 1):
                log.append(add(tuple(text[end - size : end]), text[end]))
        self._counted = max(self._counted, len(text))

    def _cut(self, length: int) -> None:
        text = self._text
        for end in range(self._counted - 1, max(length, 1) - 1, -1):
            for size in range(min(self._longest, end), 0, -1):
                gram = tuple(text[end - size : end])
                self._context.undo(gram, text[end], self._log.pop())
                if self._shared:
                    self._dynamic.add(gram, text[end])
        self._counted = max(length, 1)
        if len(self._dynamic) > self._settings.dynamic_limit:
            self._dynamic = FollowerCounts()
