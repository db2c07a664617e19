"""What is taken from single tokens' scores by rule: DRY, which keeps a text from repeating its own passages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from forespeak.speculation.language_model import Vocabulary

_LARGEST_EXPONENT = 80.0
"""e^80, times any multiplier that the settings allow, still is a float32."""


class Dry:
    """Don't repeat yourself: a token that would continue a repetition is penalised the more, the longer that is.

    If the newest tokens, as many as `r`, have stood in the window before, the token that followed them there loses
    multiplier * base^(r - allowed_length), for r >= allowed_length. Matches do not reach beyond the newest breaker,
    and single tokens that are breakers are never penalised. After llama.cpp's `dry` sampler, which follows
    text-generation-webui's.
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
        self._allowed_length = allowed_length
        self._last_n = last_n
        self._longest = math.inf if base <= 1.0 else _LARGEST_EXPONENT / math.log(base)
        self._tails: dict[int, list[tuple[int, ...]]] = {}
        """First token of a breaker -> what follows it in each breaker that begins so."""
        for head, *tail in breakers:
            self._tails.setdefault(head, []).append(tuple(tail))

    def penalties(self, recent: Sequence[int]) -> dict[int, float]:
        """What each token loses behind `recent`, the newest last; tokens that lose nothing are not named.

        Takes time proportional to the window.
        """
        backwards = list(recent if self._last_n < 0 else recent[max(0, len(recent) - self._last_n) :])
        backwards.reverse()
        if len(backwards) < 2 or backwards[0] not in backwards[1:]:
            return {}
        limit = self._reach(backwards)
        if limit < self._allowed_length:
            return {}
        repeats: dict[int, int] = {}
        for follower, length in _repeats(backwards):
            if length >= self._allowed_length:
                repeats[follower] = max(min(length, limit), repeats.get(follower, 0))
        return {
            token: self._multiplier * self._base ** min(length - self._allowed_length, self._longest)
            for token, length in repeats.items()
            if () not in self._tails.get(token, ())
        }

    def _reach(self, backwards: Sequence[int]) -> int:
        """How many tokens stand behind the newest complete breaker; all of them, if there is none."""
        if self._tails:
            for place, token in enumerate(backwards):
                tails = self._tails.get(token)
                if tails is not None:
                    behind = tuple(reversed(backwards[:place]))
                    whole = [len(tail) for tail in tails if behind[: len(tail)] == tail]
                    if whole:
                        return place - max(whole)
        return len(backwards)


def _repeats(backwards: list[int]) -> Iterable[tuple[int, int]]:
    """For each earlier place that ends like the text: the token that followed there, and for how many tokens.

    The Z-algorithm (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.4) over the reversed text, visiting
    only the places at which the newest token stands: all others match in no token.
    """
    size, newest = len(backwards), backwards[0]
    lengths: dict[int, int] = {}
    left = right = place = 0
    while True:
        try:
            place = backwards.index(newest, place + 1)
        except ValueError:
            return
        length = min(lengths[place - left], right - place) if place < right else 0
        if place + length >= right:
            while place + length < size and backwards[length] == backwards[place + length]:
                length += 1
            left, right = place, place + length
        lengths[place] = length
        yield backwards[place - 1], length


def tokens_with(vocabulary: Vocabulary, texts: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Every token in which one of `texts` occurs, as breakers for DRY. For texts of one byte there are no others."""
    wanted = [text.encode() for text in texts]
    return tuple(
        (token,) for token in range(vocabulary.size) if any(text in vocabulary.piece(token) for text in wanted)
    )
