"""Walks through the bytes of a GGUF header, never past the file's end and never trusting a count.

The header is fetched in growing pieces, not mapped into memory: a mapped file that shrinks, or whose disk is pulled,
kills the process that reads it.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable
from pathlib import Path

from forespeak.models.gguf_values import (
    ARRAY,
    NUMBERS,
    TEXT,
    GgufError,
    LazyArray,
    Problem,
    Scalar,
    Tensor,
    Value,
    damaged,
    new_digest,
)
from forespeak.models.known_texts import KnownTexts, MetTexts
from forespeak.models.looks import looks_like
from forespeak.models.quantisation import TENSOR_TYPES
from forespeak.models.sizes import size_words

MAGIC = b"GGUF"
FIRST_PIECE = 1 << 20
MOST_PIECE = 16 << 20
# Far above any honest file (the largest header seen has 16 MB and 0.8 million texts), and little enough to keep a
# hostile one harmless: under a second, and under 64 MB.
MOST_HEADER_BYTES = 64 << 20
MOST_ENTRIES = 1 << 16
MOST_TENSORS = 1 << 15
MOST_STRINGS = 2 << 20
MOST_NAME_BYTES = (1 << 16) - 1
MOST_EAGER_ELEMENTS = 1024
MOST_EAGER_TEXT = 1 << 20
MOST_MEMORY = 24 << 20
"""What names, values and tensors may take in memory, in bytes as estimated; longer values stay in the file."""

_ELEMENT_MEMORY, _TEXT_MEMORY, _TENSOR_MEMORY = 40, 200, 480

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")

Fetch = Callable[[int, int], bytes]
"""(offset, length) -> that part of the file; shorter only where the file ends."""


class Walker:
    """Goes through a header once, never past the file's end, and keeps only a window of it.

    Pieces are fetched one behind the other, each as long as all before it but no longer than `most_piece`.
    """

    def __init__(
        self, path: Path, size: int, fetch: Fetch, most_piece: int = MOST_PIECE, known: KnownTexts | None = None
    ) -> None:
        self._known = known
        self._path = path
        self._size = size
        self._fetch = fetch
        self._most_piece = most_piece
        self._data = b""
        self._base = 0
        self._strings_left = MOST_STRINGS
        self._memory_left = MOST_MEMORY
        self.at = 0

    def preamble(self) -> int:
        """Check that this is a GGUF file of a version we read, and return the version."""
        if self._size == 0:
            raise GgufError(
                Problem.EMPTY, f"“{self._path.name}” is empty.", "It has no content at all.", "Download it again."
            )
        self._grow(min(self._size, FIRST_PIECE, self._most_piece))
        magic = self._data[:4]
        if magic != MAGIC[: len(magic)]:
            raise GgufError(
                Problem.NOT_GGUF,
                f"“{self._path.name}” is not a GGUF model.",
                f"It looks like {looks_like(self._data[:512])}.",
                "Choose a model in the GGUF format.",
            )
        self._need(8)
        self.at = 4
        version = self.u32()
        if version in {2, 3}:
            return version
        if version and version & 0xFFFF == 0:
            raise GgufError(
                Problem.BIG_ENDIAN,
                f"“{self._path.name}” was made for another kind of computer.",
                "Its numbers are stored big end first.",
                "Look for the usual version of this model.",
            )
        raise GgufError(
            Problem.UNSUPPORTED,
            f"“{self._path.name}” has version {version} of the GGUF format, and only 2 and 3 can be read.",
            "The file is too old." if version < 2 else "The file is newer than this app, or damaged.",
            "Look for a newer conversion of this model." if version < 2 else "Update the app, or download it again.",
        )

    def u32(self) -> int:
        at = self._need(4)
        value: int = _U32.unpack_from(self._data, at)[0]
        self.at += 4
        return value

    def u64(self) -> int:
        at = self._need(8)
        value: int = _U64.unpack_from(self._data, at)[0]
        self.at += 8
        return value

    def name(self) -> str:
        """The name of an entry or a tensor."""
        length = self.u64()
        if length > MOST_NAME_BYTES:
            raise damaged(self._path, f"One of its entries has a name of {size_words(length)}.")
        self._spend(_TEXT_MEMORY + 2 * length)
        try:
            if length:
                return self._bytes(length).decode("utf-8")
        except UnicodeDecodeError:
            pass
        raise damaged(self._path, "One of its entries has no readable name.")

    def value(self, key: str, kind: int) -> Value:
        if kind == TEXT:
            start = self.at
            text = self._eager_text()
            return (
                text
                if text is not None
                else LazyArray(self._path, key, 0, self.at - start - 8, start + 8, self.at - start - 8)
            )
        if kind == ARRAY:
            return self._array(key)
        return self._numbers(key, kind, 1)[0]

    def tensor(self) -> Tensor:
        self._spend(_TENSOR_MEMORY)
        name = self.name()
        dimensions = self.u32()
        if dimensions > 4:
            raise damaged(self._path, f"Its tensor “{name}” has {dimensions} dimensions.")
        shape = tuple(self.u64() for _ in range(dimensions))
        number = self.u32()
        offset = self.u64()
        kind = TENSOR_TYPES.get(number)
        if kind is None:
            raise GgufError(
                Problem.UNSUPPORTED,
                f"“{self._path.name}” uses a number format that this app does not know.",
                f"Its tensor “{name}” has format number {number}: it is very old, newer than this app, or damaged.",
                "Look for another version of this model.",
            )
        values = math.prod(shape)
        if (shape[0] if shape else 1) % kind.block_values or max(values, offset) >= 1 << 63:
            raise damaged(self._path, f"The size of its tensor “{name}” makes no sense.")
        return Tensor(name, shape, kind.name, offset, values // kind.block_values * kind.block_bytes)

    def _array(self, key: str) -> Value:
        element, count, start = self.u32(), self.u64(), self.at
        lazy = key.startswith("tokenizer.ggml.") or count > MOST_EAGER_ELEMENTS
        if element == TEXT:
            self._strings_left -= count
            if self._strings_left < 0:
                raise damaged(self._path, f"Its list “{key}” claims {count:,} texts.")
            texts: list[str] = []
            while not lazy and len(texts) < count:
                text = self._eager_text()
                lazy = text is None
                if text is None:
                    self._skip_texts(count - len(texts) - 1)
                else:
                    texts.append(text)
            if not lazy:
                return tuple(texts)
            if not texts and self.at == start:
                return LazyArray(self._path, key, element, count, start, *self._texts(count))
        elif element in NUMBERS:
            if not lazy and self._may_spend(count * _ELEMENT_MEMORY):
                return self._numbers(key, element, count)
            self._skip(count * struct.calcsize(NUMBERS[element]))
        else:
            raise damaged(self._path, f"Its list “{key}” holds something unknown.")
        return LazyArray(self._path, key, element, count, start, self.at - start)

    def _numbers(self, key: str, element: int, count: int) -> tuple[Scalar, ...]:
        kind = NUMBERS.get(element)
        if kind is None:
            raise damaged(self._path, f"Its entry “{key}” holds something unknown.")
        length = count * struct.calcsize(kind)
        at = self._need(length)
        self.at += length
        values: tuple[Scalar, ...] = struct.unpack_from(f"<{count}{kind[1]}", self._data, at)
        return values

    def _eager_text(self) -> str | None:
        """A text; None if it is too long to be kept, and then it is skipped."""
        length = self.u64()
        if length > MOST_EAGER_TEXT or not self._may_spend(_TEXT_MEMORY + 4 * length):
            self._skip(length)
            return None
        return self._bytes(length).decode("utf-8", "replace")

    def _bytes(self, length: int) -> bytes:
        at = self._need(length)
        self.at += length
        return self._data[at : at + length]

    def _may_spend(self, memory: int) -> bool:
        if memory > self._memory_left:
            return False
        self._memory_left -= memory
        return True

    def _spend(self, memory: int) -> None:
        if not self._may_spend(memory):
            raise damaged(self._path, "Its entries and tensors would fill the memory.")

    def _texts(self, count: int) -> tuple[int, bytes | None]:
        """Skip a list of texts: its length in bytes, and its hash if lists are looked up by it."""
        start = self.at
        if self._known is None:
            self._skip_texts(count)
            return self.at - start, None
        for met in self._known.alike(count):
            if start + met.length <= min(self._size, MOST_HEADER_BYTES):
                if self._equals(met):
                    return met.length, met.digest
                self._go_back(start)
        self._skip_texts(count)
        length = self.at - start
        self._go_back(start)
        digest = self._hash(length)
        self._known.add(count, self._path, start, length, digest)
        return length, digest

    def _equals(self, met: MetTexts) -> bool:
        """Whether the same bytes come here as there."""
        try:
            with met.path.open("rb", buffering=0) as file:
                about = os.fstat(file.fileno())
                if (about.st_size, about.st_mtime_ns) != met.state:
                    return False
                file.seek(met.offset)
                left = met.length
                while left:
                    at = self._need(1)
                    piece = self._data[at : at + left]
                    if file.read(len(piece)) != piece:
                        return False
                    self.at += len(piece)
                    left -= len(piece)
        except OSError:
            return False  # if it is this file's disk, the next read will say so
        return True

    def _hash(self, length: int) -> bytes:
        digest = new_digest()
        while length:
            at = self._need(1)
            with memoryview(self._data) as window, window[at : at + length] as piece:
                digest.update(piece)
                self.at += len(piece)
                length -= len(piece)
        return digest.digest()

    def _go_back(self, start: int) -> None:
        self._data, self._base, self.at = b"", start, start

    # Skipping: nearly all of the time that reading a header takes goes into the lists of tokens and merges.

    def _skip_texts(self, count: int) -> None:
        by_hand = 0
        while count > 0:
            if by_hand == 0 and count >= _FEW_TEXTS:
                start = self._need(8)
                done, end = short_texts(self._data, start, count)
                self.at += end - start
                count -= done
                # Where texts are long or empty, looking ahead is wasted: it must have brought us a good piece on.
                by_hand = 1 if end - start > _LOOK_AHEAD // 4 else _FEW_TEXTS
            else:
                by_hand = max(0, by_hand - 1)
                count -= 1
                self._skip(self.u64())

    def _skip(self, length: int) -> None:
        self._check(self.at + length)
        while self.at + length > self._base + len(self._data):
            length -= self._base + len(self._data) - self.at
            self.at = self._base + len(self._data)
            self._need(1)
        self.at += length

    def _need(self, length: int) -> int:
        """Make sure that the next `length` bytes are here, and say where in the window they begin."""
        end = self.at + length
        have = self._base + len(self._data)
        if end > have:
            self._check(end)
            self._data = self._data[self.at - self._base :]
            self._base = self.at
            self._grow(min(self._size, max(end, have + min(max(have, FIRST_PIECE), self._most_piece))))
            if end > self._base + len(self._data):
                raise self._too_short()
        return self.at - self._base

    def _check(self, end: int) -> None:
        if end > MOST_HEADER_BYTES:
            raise damaged(self._path, f"Its header claims to be {size_words(end)} long.")
        if end > self._size:
            raise self._too_short()

    def _too_short(self) -> GgufError:
        return GgufError(
            Problem.TRUNCATED,
            f"“{self._path.name}” is incomplete or damaged.",
            f"Its header goes on beyond the end of the file, which has {size_words(self._size)}.",
            "Download it again, or copy it again.",
        )

    def _grow(self, end: int) -> None:
        have = self._base + len(self._data)
        self._data += self._fetch(have, end - have)


_LOOK_AHEAD = 1 << 18
_FEW_TEXTS = 2048


def short_texts(data: bytes, start: int, count: int) -> tuple[int, int]:
    """How many texts from `start` on can be skipped at once, at most `count`, and where the next one begins.

    A text is its length in 8 bytes and its bytes. Where seven zeros follow a byte, a length under 256 may begin; where
    each such place is where the text before it ends, they all are lengths. Reading stops at the first one that is not.
    """
    # Imported late: the window must be up before numpy is.
    import numpy as np

    piece = np.frombuffer(data, np.uint8, min(_LOOK_AHEAD, len(data) - start), start)
    if len(piece) < 16:
        return 0, start
    zero = piece[1:] == 0
    two = zero[:-1] & zero[1:]
    four = two[:-2] & two[2:]
    places = np.flatnonzero(four[:-3] & four[3:])
    if len(places) < 2 or places[0] != 0:
        return 0, start
    chained = places[1:] == places[:-1] + 8 + piece[places[:-1]]
    whole = len(chained) if chained.all() else int(chained.argmin())
    done = min(whole, count)
    return done, start + int(places[done])
