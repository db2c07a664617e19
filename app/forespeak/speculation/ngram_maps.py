"""Draft sources without a model that learn how far each of their keys can be trusted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from forespeak.speculation.draft import EMPTY_DRAFT, Draft
from forespeak.speculation.language_model import common_prefix_length
from forespeak.speculation.ngram import TextSource, continuation, support
from forespeak.speculation.occurrences import Gram, Occurrences
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import MOST_OCCURRENCES, NgramMapSettings
from forespeak.speculation.trace import Source

MOST_CONTINUATIONS = 4


class DraftCaps:
    """How long a draft from each key may be: what its last draft has shown.

    The cap starts at `most` and becomes the number accepted last time; it doubles when all was accepted, for then
    nobody knows yet how much further the key could be trusted. What a cut text has taught is taken back.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._caps: dict[Gram, int] = {}
        self._log: list[tuple[int, Gram, int]] = []
        """For each lesson, oldest first: the length of text that it took, its key, and the cap before."""

    def __getitem__(self, key: Gram) -> int:
        return self._caps.get(key, self._most)

    def learn(self, key: Gram, drafted: int, agreed: int, length: int) -> None:
        """`agreed` of `drafted` tokens came true, as a text of `length` tokens shows."""
        before = self[key]
        cap = agreed if agreed < drafted else min(self._most, max(before, 2 * drafted))
        if cap != before:
            self._log.append((length, key, before))
            self._caps[key] = cap

    def cut(self, length: int) -> None:
        while self._log and self._log[-1][0] > length:
            _, key, before = self._log.pop()
            self._caps[key] = before


@dataclass(frozen=True, slots=True)
class _Guess:
    """What is to be judged by the next tokens: a draft, or the first token of one that was not proposed."""

    key: Gram
    tokens: Gram
    start: int
    """Where in the text the first of them would stand."""


class NgramMap(TextSource):
    """Keys of the text with a cap each. A subclass says what a key promises.

    A key with a cap of 0 is silent until it occurs again and is followed by what it would have drafted.
    """

    SOURCE: Source

    def __init__(self, settings: NgramMapSettings = NgramMapSettings()) -> None:
        super().__init__()
        self._settings = settings
        self._index = Occurrences(settings.size_n)
        self._caps = DraftCaps(settings.size_m)
        self._guess: _Guess | None = None

    @abstractmethod
    def _promise(self, gram: Gram, limit: int) -> tuple[Gram, Gram]:
        """The key whose cap counts, and what follows `gram`: 0 to `limit` tokens."""

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._guess = None
        super().begin(tokens, sampler)

    def propose(self, limit: int) -> Draft:
        self._guess = None
        gram = self._index.gram(self._text)
        hits = self._settings.min_hits
        if limit < 1 or len(list(islice(self._index.all(gram), hits))) < hits:
            return EMPTY_DRAFT
        key, promised = self._promise(gram, min(limit, self._settings.size_m))
        if not promised:
            return EMPTY_DRAFT
        cap = self._caps[key]
        self._guess = _Guess(key, promised[: max(cap, 1)], len(self._text))
        if not cap:
            return EMPTY_DRAFT
        tokens = promised[:cap]
        newest = self._index.newest(gram)
        assert newest is not None
        return Draft(tokens, self.SOURCE, support=support(self._text, newest, len(gram), len(tokens)))

    def accept(self, tokens: Sequence[int]) -> None:
        guess, self._guess = self._guess, None
        if guess is not None:
            agreed = common_prefix_length(guess.tokens, tokens)
            # Where the tokens end before the guess does and all came true, the reply ended: nothing was shown.
            if agreed == len(guess.tokens) or agreed < len(tokens):
                shown = min(agreed + 1, len(guess.tokens))
                self._caps.learn(guess.key, len(guess.tokens), agreed, guess.start + shown)
        super().accept(tokens)

    def _follow(self) -> None:
        self._index.follow(self._text)

    def _cut(self, length: int) -> None:
        self._index.cut(self._text, length)
        self._caps.cut(length)


class NgramMapK(NgramMap):
    """Proposes what followed the newest earlier occurrence of the key, as far as the key may go.

    llama.cpp's `ngram-map-k` (common/ngram-map.cpp), which keeps the first occurrence and lets a cap only fall.
    """

    SOURCE = Source.NGRAM_MAP_K

    def _promise(self, gram: Gram, limit: int) -> tuple[Gram, Gram]:
        start = self._index.newest(gram)
        return gram, () if start is None else continuation(self._text, start, limit)


class NgramMapK4V(NgramMap):
    """Proposes what most often followed the key, as far as that is clear and may go.

    Up to four different continuations of a key are counted, those of the newest occurrences; one dominates if it was
    seen at least twice as often as the others together. Each has a cap of its own, known by its first token.

    llama.cpp's `ngram-map-k4v` (common/ngram-map.cpp) drafts nothing if two continuations of 48 tokens differ in the
    last; here continuations that begin alike are drafted up to where they part.
    """

    SOURCE = Source.NGRAM_MAP_K4V

    def _promise(self, gram: Gram, limit: int) -> tuple[Gram, Gram]:
        counts: dict[Gram, int] = {}
        for start in islice(self._index.all(gram), MOST_OCCURRENCES):
            found = continuation(self._text, start, limit)
            if found in counts:
                counts[found] += 1
            elif len(counts) < MOST_CONTINUATIONS:
                counts[found] = 1
        promised: list[int] = []
        while len(promised) < limit:
            if len(counts) == 1:
                promised += next(iter(counts))[len(promised) :]
                break
            followers: dict[int, int] = {}
            for found, count in counts.items():
                token = found[len(promised)]
                followers[token] = followers.get(token, 0) + count
            best = max(followers, key=followers.__getitem__)
            if followers[best] < 2 * (sum(followers.values()) - followers[best]):
                break
            counts = {found: count for found, count in counts.items() if found[len(promised)] == best}
            promised.append(best)
        return (*gram, *promised[:1]), tuple(promised)
