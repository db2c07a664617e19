"""A draft source without a model: one hash table from the last tokens to the next."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from forespeak.speculation.draft import EMPTY_DRAFT, Draft
from forespeak.speculation.language_model import common_prefix_length
from forespeak.speculation.ngram import TextSource
from forespeak.speculation.occurrences import Gram
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import NgramModSettings
from forespeak.speculation.trace import Source

MOST_OCCUPIED = 0.25
"""Share of used slots beyond which strangers' entries would be met too often."""
LOW_ACCEPTANCE = 0.25
LOW_ROUNDS = 5

_MASK = 2**64 - 1
_MULTIPLIER = 6364136223846793005  # Knuth's, for MMIX
_SPREAD = 0x9E3779B97F4A7C15


class NgramMod(TextSource):
    """Proposes by chained look-ups: the last tokens give the next one, the last tokens with that one the one after.

    llama.cpp's `ngram-mod` (common/ngram-mod.cpp). Keys are not kept, so a collision may give a stranger's follower;
    a chain of fewer than `n_min` tokens is taken for one. (`n_min` is asked of the chain, not of the draft: a lower
    limit shortens the draft only.) After five drafts in a row of which less than a quarter was accepted the table is
    forgotten; the next beginning learns its text anew.

    `shared` keeps in the table what other texts have taught, branches and other chats, until a quarter of it is used;
    without it, the table always holds what the current text says and nothing else.

    A flat table of int32 rather than a dictionary: 16 MiB whatever was read, untouched pages included, where a
    dictionary takes some 100 bytes an entry and has no natural end.
    """

    def __init__(
        self,
        settings: NgramModSettings = NgramModSettings(),
        *,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._shared = shared
        # What the token that leaves the window weighs in the hash of the next window.
        self._leaving = pow(_MULTIPLIER, settings.n_match, 2**64)
        self._shift = 64 - settings.table_bits
        self._draft: Gram = ()
        self._forget()

    def _forget(self) -> None:
        """Empty the table. What is in the text already stays unknown until a generation begins."""
        # Slots hold token + 1, so that 0 is an empty one and the system need not provide pages never written to.
        # A memoryview reads and writes single numbers in half the time that an array of numpy's takes.
        self._table = np.zeros(1 << self._settings.table_bits, dtype=np.int32).data
        self._used = 0
        self._low_rounds = 0
        self._next = max(len(self._text), self._settings.n_match)
        """The index of the first token not yet in the table as a follower."""
        self._hash: int | None = None
        """Of the window before `_next`; None if it has to be made."""
        self._slots = array("I")
        self._before = array("i")
        """What the newest writes went to and what was there, for undoing."""
        self._has_forgotten = bool(self._text)

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._draft = ()
        if self._has_forgotten or (self._shared and self._used > MOST_OCCUPIED * len(self._table)):
            self._text.clear()
            self._forget()
        super().begin(tokens, sampler)

    def propose(self, limit: int) -> Draft:
        size, most = self._settings.n_match, min(limit, self._settings.n_max)
        self._draft = ()
        if most < 1 or len(self._text) < size:
            return EMPTY_DRAFT
        chain = self._text[-size:]
        hashed = self._window_hash()
        for place in range(max(most, self._settings.n_min)):
            entry = self._table[self._slot(hashed)]
            if not entry:
                break
            chain.append(entry - 1)
            hashed = self._rolled(hashed, entry - 1, chain[place])
        if len(chain) - size < max(self._settings.n_min, 1):
            return EMPTY_DRAFT
        self._draft = tuple(chain[size : size + most])
        return Draft(self._draft, Source.NGRAM_MOD, support=tuple(range(size, size + len(self._draft))))

    def accept(self, tokens: Sequence[int]) -> None:
        super().accept(tokens)
        draft, self._draft = self._draft, ()
        agreed = common_prefix_length(draft, tokens)
        if agreed == len(tokens):
            # Nothing was refused: the reply ended before the draft did.
            return
        if draft:
            self._low_rounds = self._low_rounds + 1 if agreed < LOW_ACCEPTANCE * len(draft) else 0
            if self._low_rounds >= LOW_ROUNDS:
                self._forget()

    def _follow(self) -> None:
        text, size, table = self._text, self._settings.n_match, self._table
        if len(text) <= self._next:
            return
        hashed = self._window_hash()
        for end in range(self._next, len(text)):
            slot, token = self._slot(hashed), text[end]
            before = table[slot]
            table[slot] = token + 1
            if self._shared:
                self._used += not before
            else:
                self._slots.append(slot)
                self._before.append(before)
            hashed = self._rolled(hashed, token, text[end - size])
        self._next, self._hash = len(text), hashed

    def _cut(self, length: int) -> None:
        while self._slots and self._next > length:
            self._table[self._slots.pop()] = self._before.pop()
            self._next -= 1
        # A shared table keeps what was cut off; in one that was not, all that is left to cut was never in it.
        self._next = max(min(self._next, length), self._settings.n_match)
        self._hash = None
        self._low_rounds = 0

    def _window_hash(self) -> int:
        if self._hash is None:
            self._hash = 0
            for token in self._text[self._next - self._settings.n_match : self._next]:
                self._hash = (self._hash * _MULTIPLIER + token) & _MASK
        return self._hash

    def _rolled(self, hashed: int, entering: int, leaving: int) -> int:
        return (hashed * _MULTIPLIER + entering - leaving * self._leaving) & _MASK

    def _slot(self, hashed: int) -> int:
        # The newest token moves only the low bits of the hash: spread them, then take the high ones.
        return ((hashed * _SPREAD) & _MASK) >> self._shift
