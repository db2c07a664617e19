"""What is taken from single tokens' scores by rule: DRY, which keeps a text from repeating its own passages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from forespeak.speculation.language_model import Vocabulary, common_prefix_length
from forespeak.speculation.occurrences import Occurrences

_LARGEST_EXPONENT = 80.0
"""e^80, times any multiplier that the settings allow, still is a float32."""


class Dry:
    """Don't repeat yourself: a token that would continue a repetition is penalised the more, the longer that is.

    If the newest tokens, as many as `r`, have stood in the window before, the token that followed them there loses
    multiplier * base^(r - allowed_length), for r >= allowed_length. Matches do not reach beyond the newest breaker,
    and single tokens that are breakers are never penalised. After llama.cpp's `dry` sampler, which follows
    text-generation-webui's. `base` is 1 or more, `last_n` -1 for all of the text.
    """

    def __init__(
        self,
        multiplier: float,
        base: float,
        allowed_length: int,
        last_n: int,
        breakers: Iterable[Sequence[int]],
    ) -> None:
        self._multiplier = multiplier
        self._base = base
        self.allowed_length = allowed_length
        self._last_n = last_n
        self._most = _LARGEST_EXPONENT / math.log(base) if base > 1.0 else 0.0
        """The exponent grows no further."""
        self._tails: dict[int, list[list[int]]] = {}
        """First token of a breaker -> what follows it in each breaker that begins so, the longest first."""
        for head, *tail in breakers:
            self._tails.setdefault(head, []).append(tail)
        for tails in self._tails.values():
            tails.sort(key=len, reverse=True)
        self._longest_tail = max((len(tails[0]) for tails in self._tails.values()), default=0)

    def penalties(self, text: Sequence[int]) -> dict[int, float]:
        """What each token loses behind `text`, the newest last; tokens that lose nothing are not named."""
        text = list(text)
        index = Occurrences(self.allowed_length)
        index.follow(text)
        return self.indexed_penalties(text, index)

    def indexed_penalties(self, text: list[int], index: Occurrences) -> dict[int, float]:
        """The same, with the places of `text` where `allowed_length` tokens stood before already known.

        Takes time proportional to the number of places where the newest ones did, not to the length of the text.
        """
        start = 0 if self._last_n < 0 else max(0, len(text) - self._last_n)
        repeats = self._repeats(text, start, index)
        if not repeats:
            return {}
        reach = self._reach(text, start, max(repeats.values()))
        if reach < self.allowed_length:
            return {}
        return {
            token: self._multiplier * self._base ** min(min(length, reach) - self.allowed_length, self._most)
            for token, length in repeats.items()
            if [] not in self._tails.get(token, ())
        }

    def _repeats(self, text: list[int], start: int, index: Occurrences) -> dict[int, int]:
        """The tokens that followed the newest ones before, with how many of those stood there at most.

        No more are counted than matter.
        """
        shortest, size = self.allowed_length, len(text)
        longest = shortest + math.ceil(self._most)
        repeats: dict[int, int] = {}
        for place in index.all(index.gram(text)):
            if place - shortest < start:
                break
            follower = text[place]
            length = repeats.get(follower, shortest)
            if follower in repeats:
                # Can it be longer than the longest so far? One token tells most often.
                further = length + 1
                if length >= longest or place - length <= start or text[place - further] != text[size - further]:
                    continue
                if text[place - length : place] != text[size - length :]:
                    continue
            while length < longest and place - length > start and text[place - length - 1] == text[size - length - 1]:
                length += 1
            repeats[follower] = length
        return repeats

    def _reach(self, text: list[int], start: int, most: int) -> int:
        """How many tokens stand behind the newest complete breaker; all of them, or `most`, if there are more."""
        if self._tails:
            for head in range(len(text) - 1, max(start, len(text) - most - self._longest_tail - 1) - 1, -1):
                for tail in self._tails.get(text[head], ()):
                    end = head + 1 + len(tail)
                    if text[head + 1 : end] == tail:
                        return min(len(text) - end, most)
        return min(len(text) - start, most)


class GrowingDry:
    """DRY for one text that grows and the drafts behind it.

    What is new costs time in the number of places where the newest tokens stood before, not in the text's length.
    """

    def __init__(self, dry: Dry) -> None:
        self._dry = dry
        self._index = Occurrences(dry.allowed_length)
        self._text: list[int] = []
        """The text and a draft, indexed."""
        self._length = 0
        """How much of that is text."""
        self._grown: list[list[int]] = []
        self._found: dict[tuple[int, ...], dict[int, float]] = {}
        """By the draft behind the text: the target asks what its draft model has asked."""

    def penalties(self, tokens: Sequence[int], drafted: Sequence[int]) -> Mapping[int, float]:
        """What each token loses behind `tokens` and `drafted`.

        A list that has been given as `tokens` before is taken to have grown at its end only, and by the same tokens as
        another: the target and a draft model each have one of the same text. Anything else is compared with the text
        so far, token by token.
        """
        kept, draft = self._length, tuple(drafted)
        if len(tokens) < kept or not any(tokens is grown for grown in self._grown):
            self._found.clear()
            kept = common_prefix_length(self._text[:kept], tokens)
            others = self._grown[-1:] if kept == self._length else []
            self._grown = [*others, tokens] if isinstance(tokens, list) else others
        elif len(tokens) > kept:
            self._found.clear()
        elif draft in self._found:
            return self._found[draft]
        wanted = [*tokens[kept:], *drafted]
        same = common_prefix_length(self._text[kept:], wanted)
        self._index.cut(self._text, kept + same)
        self._text[kept + same :] = wanted[same:]
        self._length = len(tokens)
        self._index.follow(self._text)
        self._found[draft] = self._dry.indexed_penalties(self._text, self._index)
        return self._found[draft]


def tokens_with(vocabulary: Vocabulary, texts: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Every token in which one of `texts` occurs, as breakers for DRY. For texts of one byte there are no others."""
    wanted = [text.encode() for text in texts]
    return tuple(
        (token,) for token in range(vocabulary.size) if any(text in vocabulary.piece(token) for text in wanted)
    )
