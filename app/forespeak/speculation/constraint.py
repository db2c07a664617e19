"""Which tokens a grammar lets follow: at any place of a draft, and back at what was emitted after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from forespeak.speculation.language_model import Vocabulary, common_prefix_length

Mask = NDArray[np.bool_]
"""One entry per token id of the target's vocabulary: whether it may follow."""


class NoTokenLeftError(Exception):
    """A grammar and the banned tokens together leave nothing that could follow."""


class Constraint(Protocol):
    """Restricts one generation, from its first token on. Places are counted from what was emitted so far."""

    def allowed(self, drafted: Sequence[int]) -> Mask | None:
        """What may follow the emitted text and `drafted`, each of which must be allowed itself; None: anything."""
        ...

    def permitted(self, drafted: Sequence[int]) -> int:
        """How many leading tokens of `drafted` may follow the emitted text."""
        ...

    def accept(self, tokens: Sequence[int]) -> None:
        """`tokens` were emitted."""
        ...


class Matcher(Protocol):
    """Reads a text token by token, as one that a grammar describes. Knows nothing of tokens that end a reply."""

    def mask(self) -> Mask:
        """The tokens with which the text can go on; none that ends it. The caller may write into it."""
        ...

    def permits(self, token: int) -> bool:
        """Whether `mask` has that token."""
        ...

    def is_complete(self) -> bool:
        """Whether the text may end here."""
        ...

    def consume(self, token: int) -> None:
        """Raises ValueError for a token that is not permitted."""
        ...

    def rollback(self, count: int) -> None:
        """Forget the last `count` consumed tokens."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the text stands after a token: what is known of the trigger, and whether the matcher has that token."""

    matched: int
    ended: bool = False
    consumed: bool = False


class GrammarConstraint:
    """A Constraint from a Matcher.

    Where the grammar is complete, tokens that end the reply are allowed too. With `after`, the text is free until
    those bytes have come; what follows them is the grammar's. The token that brings their end may bring white space
    behind it, but nothing else. Masks are kept until tokens are accepted, so that drafting and verifying share them.
    """

    def __init__(self, matcher: Matcher, vocabulary: Vocabulary, after: bytes = b"") -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._after = after
        self._borders = _borders(after)
        self._ends = np.array(
            [token for token in range(vocabulary.size) if vocabulary.ends_generation(token)], dtype=np.int64
        )
        self._drafted: list[int] = []
        self._places = [_Place(0)]
        """After the emitted text, then after each token of `_drafted`."""
        self._masks: dict[int, Mask | None] = {}
        """By number of drafted tokens."""
        self._free_masks: dict[int, Mask | None] = {}
        self._overshooting: list[int] | None = None

    def allowed(self, drafted: Sequence[int]) -> Mask | None:
        self._go_to(drafted)
        place = len(self._drafted)
        if place not in self._masks:
            self._masks[place] = self._mask(self._places[-1])
        return self._masks[place]

    def permitted(self, drafted: Sequence[int]) -> int:
        common = common_prefix_length(self._drafted, drafted)
        self._go_to(drafted[:common])
        for place in range(common, len(drafted)):
            if not self._permits(drafted[place]):
                return place
            self._step(drafted[place])
        return len(drafted)

    def accept(self, tokens: Sequence[int]) -> None:
        self._go_to(tokens)
        mask = self._masks.get(len(tokens))
        kept = {0: mask} if len(tokens) in self._masks else {}
        self._drafted, self._places, self._masks = [], [self._places[-1]], kept

    def _go_to(self, drafted: Sequence[int]) -> None:
        common = common_prefix_length(self._drafted, drafted)
        if undone := sum(place.consumed for place in self._places[common + 1 :]):
            self._matcher.rollback(undone)
        for place in range(common + 1, len(self._places)):
            self._masks.pop(place, None)
        del self._drafted[common:], self._places[common + 1 :]
        for token in drafted[common:]:
            self._step(token)

    def _step(self, token: int) -> None:
        here = self._places[-1]
        if here.ended or self._vocabulary.ends_generation(token):
            there = _Place(here.matched, ended=True)
        elif here.matched < len(self._after):
            there = _Place(self._matched(here.matched, self._vocabulary.piece(token)))
        else:
            self._matcher.consume(token)
            there = _Place(here.matched, consumed=True)
        self._places.append(there)
        self._drafted.append(token)

    def _mask(self, place: _Place) -> Mask | None:
        if place.ended:
            nothing = np.zeros(self._vocabulary.size, dtype=np.bool_)
            nothing[self._ends] = True
            return nothing
        if place.matched < len(self._after):
            return self._free_mask(place.matched)
        mask = self._matcher.mask()
        mask[self._ends] = self._matcher.is_complete()
        return mask

    def _permits(self, token: int) -> bool:
        place = self._places[-1]
        if place.ended:
            return False
        if place.matched < len(self._after):
            mask = self._free_mask(place.matched)
            return mask is None or bool(mask[token])
        if self._vocabulary.ends_generation(token):
            return self._matcher.is_complete()
        return self._matcher.permits(token)

    def _matched(self, matched: int, piece: bytes) -> int:
        """How much of the trigger the text ends in, after `piece`; all of it, once it has occurred."""
        for byte in piece:
            while matched and self._after[matched] != byte:
                matched = self._borders[matched - 1]
            matched += self._after[matched] == byte
            if matched == len(self._after):
                break
        return matched

    def _free_mask(self, matched: int) -> Mask | None:
        """All tokens but those that go on with more than white space in the token in which the trigger ends."""
        if matched not in self._free_masks:
            pieces = self._vocabulary.piece
            if self._overshooting is None:
                last = self._after[-1:]
                self._overshooting = [
                    token for token in range(self._vocabulary.size) if pieces(token).partition(last)[2].strip()
                ]
            begun = self._after[:matched]
            barred = [
                token
                for token in self._overshooting
                if not self._vocabulary.ends_generation(token)
                and (begun + pieces(token)).partition(self._after)[2].strip()
            ]
            mask = None
            if barred:
                mask = np.ones(self._vocabulary.size, dtype=np.bool_)
                mask[barred] = False
            self._free_masks[matched] = mask
        return self._free_masks[matched]


def _borders(pattern: bytes) -> list[int]:
    """For each prefix, the length of its longest proper prefix that is its suffix too (Knuth, Morris, Pratt 1977)."""
    borders = [0] * len(pattern)
    length = 0
    for place in range(1, len(pattern)):
        while length and pattern[place] != pattern[length]:
            length = borders[length - 1]
        length += pattern[place] == pattern[length]
        borders[place] = length
    return borders
