"""Which tokens a grammar lets follow: at any place of a draft, and back at what was emitted after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from forespeak.speculation.language_model import Vocabulary, common_prefix_length

Mask = NDArray[np.bool_]
"""One entry per token id of the target's vocabulary: whether it may follow."""


_MOST_SPACE = 4
"""Bytes of white space before thoughts: some models begin with an empty line, none should go on with them for ever."""


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
    """Where the text stands after a token, and which matcher has that token."""

    reading: Matcher | None
    """The matcher that has the whole text, less any thoughts; None while there is none."""
    begun: bytes | None = None
    """The whole text, as long as it may still become the opener; None once it cannot, or has."""
    thinking: bool = False
    matched: int = 0
    """How much of the closer the thoughts end in."""
    ended: bool = False
    consumed: Matcher | None = None


class GrammarConstraint:
    """A Constraint from a Matcher.

    Where the grammar is complete, tokens that end the reply are allowed too. With `after`, the text is free until
    those bytes have come; what follows them is the grammar's. The token that brings their end may bring white space
    behind it, but nothing else.

    With an `opener` too, that freedom is the reply's to take: it may begin with a little white space and the opener,
    and is then free up to and with `after`; or with the grammar at once, which `at_once`, a second matcher of the
    same grammar, reads. As long as the text could become either, both are allowed.

    `names` are the bytes of tokens that have none in a text, for finding `opener` and `after`: control tokens.
    Masks are kept until tokens are accepted, so that drafting and verifying share them; where one is known, the
    matcher does not move. Raises ValueError for an opener without its other two.
    """

    def __init__(
        self,
        matcher: Matcher,
        vocabulary: Vocabulary,
        after: bytes = b"",
        opener: bytes = b"",
        at_once: Matcher | None = None,
        names: Mapping[int, bytes] = MappingProxyType({}),
    ) -> None:
        if opener and (at_once is None or not after):
            raise ValueError("what may open thoughts needs what closes them and a matcher for a reply without any")
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._after = after
        self._opener = opener
        self._names = names
        self._borders = _borders(after)
        self._ends = np.array(
            [token for token in range(vocabulary.size) if vocabulary.ends_generation(token)], dtype=np.int64
        )
        if opener:
            start = _Place(at_once, begun=b"")
        else:
            start = _Place(None, thinking=True) if after else _Place(matcher)
        self._drafted: list[int] = []
        self._places = [start]
        """After the emitted text, then after each token of `_drafted`."""
        self._masks: dict[tuple[int, ...], Mask | None] = {}
        """By the drafted tokens before them."""
        self._free_masks: dict[int, Mask | None] = {}
        self._overshooting: list[int] | None = None
        self._opening_tokens: dict[bytes, NDArray[np.int64]] = {}

    def allowed(self, drafted: Sequence[int]) -> Mask | None:
        before = tuple(drafted)
        if before not in self._masks:
            self._go_to(drafted)
            self._masks[before] = self._mask(self._places[-1])
        return self._masks[before]

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
        emitted, count = tuple(tokens), len(tokens)
        kept = {before[count:]: mask for before, mask in self._masks.items() if before[:count] == emitted}
        self._drafted, self._places, self._masks = [], [self._places[-1]], kept

    def _go_to(self, drafted: Sequence[int]) -> None:
        common = common_prefix_length(self._drafted, drafted)
        undone: dict[int, tuple[Matcher, int]] = {}
        for place in self._places[common + 1 :]:
            if place.consumed is not None:
                _, count = undone.get(id(place.consumed), (place.consumed, 0))
                undone[id(place.consumed)] = (place.consumed, count + 1)
        for matcher, count in undone.values():
            matcher.rollback(count)
        del self._drafted[common:], self._places[common + 1 :]
        for token in drafted[common:]:
            self._step(token)

    def _step(self, token: int) -> None:
        here = self._places[-1]
        if here.ended or self._vocabulary.ends_generation(token):
            there = replace(here, ended=True, consumed=None)
        elif here.thinking:
            there = self._thinking(self._matched(here.matched, self._piece(token)))
        elif here.begun is None:
            assert here.reading is not None
            here.reading.consume(token)
            there = replace(here, consumed=here.reading)
        else:
            there = self._begun(here, here.begun, token)
        self._places.append(there)
        self._drafted.append(token)

    def _thinking(self, matched: int) -> _Place:
        """Within the thoughts, or behind their end."""
        return _Place(None, thinking=True, matched=matched) if matched < len(self._after) else _Place(self._matcher)

    def _begun(self, here: _Place, begun: bytes, token: int) -> _Place:
        """While the text may become thoughts or the grammar's."""
        text = begun + self._piece(token)
        opening = self._may_open(text)
        reading = here.reading if here.reading is not None and here.reading.permits(token) else None
        if reading is not None:
            reading.consume(token)
        elif not opening:
            raise ValueError(f"token {token} is not permitted here")
        if self._has_opened(text):
            return replace(self._thinking(self._matched(0, text)), consumed=reading)
        return _Place(reading, begun=text if opening else None, consumed=reading)

    def _may_open(self, text: bytes) -> bool:
        """Whether the text is the beginning of the opener, or begins with it."""
        bare = text.lstrip()
        return len(text) - len(bare) <= _MOST_SPACE and (self._opener.startswith(bare) or bare.startswith(self._opener))

    def _has_opened(self, text: bytes) -> bool:
        return self._may_open(text) and len(text.lstrip()) >= len(self._opener)

    def _mask(self, place: _Place) -> Mask | None:
        if place.thinking and not place.ended:
            return self._free_mask(place.matched)
        if place.ended or place.reading is None:
            mask = np.zeros(self._vocabulary.size, dtype=np.bool_)
            mask[self._ends] = place.ended
        else:
            mask = place.reading.mask()
            mask[self._ends] = place.reading.is_complete()
        if place.begun is not None and not place.ended:
            mask[self._openings(place.begun)] = True
        return mask

    def _permits(self, token: int) -> bool:
        place = self._places[-1]
        if place.ended:
            return False
        if place.thinking:
            mask = self._free_mask(place.matched)
            return mask is None or bool(mask[token])
        if self._vocabulary.ends_generation(token):
            return place.reading is not None and place.reading.is_complete()
        if place.begun is not None and self._opens(place.begun, token):
            return True
        return place.reading is not None and place.reading.permits(token)

    def _piece(self, token: int) -> bytes:
        return self._vocabulary.piece(token) or self._names.get(token, b"")

    def _opens(self, begun: bytes, token: int) -> bool:
        """Whether a token goes on with the opener and, if it goes beyond it, no further than thoughts may."""
        piece = self._piece(token)
        text = begun + piece
        return bool(piece) and self._may_open(text) and not text.partition(self._after)[2].strip()

    def _openings(self, begun: bytes) -> NDArray[np.int64]:
        if begun not in self._opening_tokens:
            ends = set(self._ends.tolist())
            found = [token for token in range(self._vocabulary.size) if self._opens(begun, token) and token not in ends]
            self._opening_tokens[begun] = np.array(found, dtype=np.int64)
        return self._opening_tokens[begun]

    def _matched(self, matched: int, piece: bytes) -> int:
        """How much of the closer the text ends in, after `piece`; all of it, once it has occurred."""
        for byte in piece:
            while matched and self._after[matched] != byte:
                matched = self._borders[matched - 1]
            matched += self._after[matched] == byte
            if matched == len(self._after):
                break
        return matched

    def _free_mask(self, matched: int) -> Mask | None:
        """All tokens but those that go on with more than white space in the token in which the closer ends."""
        if matched not in self._free_masks:
            if self._overshooting is None:
                last = self._after[-1:]
                self._overshooting = [
                    token for token in range(self._vocabulary.size) if self._piece(token).partition(last)[2].strip()
                ]
            begun = self._after[:matched]
            barred = [
                token
                for token in self._overshooting
                if not self._vocabulary.ends_generation(token)
                and (begun + self._piece(token)).partition(self._after)[2].strip()
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
