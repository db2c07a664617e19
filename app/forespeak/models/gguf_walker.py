"""Walks through the bytes of a GGUF header, never past the file's end and never trusting a count.

The header is fetched in growing pieces, not mapped into memory: a mapped file that shrinks, or whose disk is pulled,
kills the process that reads it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forespeak.errors import UserFacingError
from forespeak.models.looks import looks_like
from forespeak.models.quantisation import TENSOR_TYPES
from forespeak.models.sizes import size_words

MAGIC = b"GGUF"
FIRST_PIECE = 1 << 20
# Far above any honest file (the largest header seen has 16 MB), and little enough to keep a hostile one harmless.
MOST_HEADER_BYTES = 128 << 20
MOST_TEXT_BYTES = 16 << 20
MOST_ENTRIES = 1 << 16
MOST_TENSORS = 1 << 17
MOST_STRINGS = 8 << 20
MOST_EAGER_ELEMENTS = 1024

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_NUMBERS: dict[int, np.dtype[np.generic]] = {
    0: np.dtype("u1"),
    1: np.dtype("i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}

Fetch = Callable[[int, int], bytes]
"""(offset, length) -> that part of the file; shorter only where the file ends."""


class Problem(Enum):
    """Why a file cannot be used."""

    MISSING = "missing"
    NOT_A_FILE = "not a file"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    NOT_GGUF = "not a GGUF file"
    TRUNCATED = "incomplete"
    DAMAGED = "damaged"
    BIG_ENDIAN = "big-endian"
    UNSUPPORTED = "unsupported"
    NO_VOCABULARY = "no vocabulary"

    @property
    def passes(self) -> bool:
        """Whether it may be over although the file is the same: the disk may come back."""
        return self in {Problem.MISSING, Problem.UNREADABLE}


class GgufError(UserFacingError):
    """A file that cannot be read as a model."""

    def __init__(self, problem: Problem, what: str, why: str = "", remedy: str = "") -> None:
        super().__init__(what, why, remedy)
        self.problem = problem

    def __reduce__(self) -> tuple[type[GgufError], tuple[Problem, str, str, str]]:
        return GgufError, (self.problem, self.what, self.why, self.remedy)


@dataclass(frozen=True, slots=True)
class LazyArray:
    """A long array that stayed in the file: where it is, and how to read it. `length` is in bytes."""

    path: Path
    key: str
    element: int
    count: int
    offset: int
    length: int

    @property
    def holds_text(self) -> bool:
        return self.element == _STRING

    def raw(self) -> bytes:
        """The array as it stands in the file. Raises GgufError if the file has changed or gone."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(self.length)
        except OSError as error:
            raise unreadable(self.path, error) from error
        if len(data) != self.length:
            raise changed(self.path)
        return data

    def strings(self) -> list[bytes]:
        """The elements of an array of strings. Raises GgufError, also if it holds something else."""
        if not self.holds_text:
            raise damaged(self.path, f"Its entry “{self.key}” holds numbers where texts belong.")
        data = self.raw()
        unpack = _U64.unpack_from
        found = []
        at = 0
        try:
            for _ in range(self.count):
                start = at + 8
                at = start + unpack(data, at)[0]
                found.append(data[start:at])
        except (struct.error, OverflowError) as error:
            raise changed(self.path) from error
        if at != len(data):
            raise changed(self.path)
        return found

    def numbers(self) -> NDArray[np.generic]:
        """The elements of an array of numbers, shape (count,). Raises GgufError, also if it holds something else."""
        if self.holds_text:
            raise damaged(self.path, f"Its entry “{self.key}” holds texts where numbers belong.")
        return np.frombuffer(self.raw(), _NUMBERS[self.element])


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | LazyArray


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` as in the file, the row length first. `offset` counts from the start of the tensor data."""

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    size_bytes: int

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


class Walker:
    """Goes through a header once, never past the file's end."""

    def __init__(self, path: Path, size: int, fetch: Fetch) -> None:
        self._path = path
        self._size = size
        self._fetch = fetch
        self._data = b""
        self._strings_left = MOST_STRINGS
        self.at = 0

    def preamble(self) -> int:
        """Check that this is a GGUF file of a version we read, and return the version."""
        if self._size == 0:
            raise GgufError(
                Problem.EMPTY, f"“{self._path.name}” is empty.", "It has no content at all.", "Download it again."
            )
        self._grow(min(self._size, FIRST_PIECE))
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
        self._need(self.at + 4)
        value: int = _U32.unpack_from(self._data, self.at)[0]
        self.at += 4
        return value

    def u64(self) -> int:
        self._need(self.at + 8)
        value: int = _U64.unpack_from(self._data, self.at)[0]
        self.at += 8
        return value

    def text(self) -> bytes:
        length = self.u64()
        if length > MOST_TEXT_BYTES:
            raise damaged(self._path, f"One of its texts claims to be {size_words(length)} long.")
        self._need(self.at + length)
        start, self.at = self.at, self.at + length
        return self._data[start : self.at]

    def key(self) -> str:
        key = self.text()
        try:
            if key:
                return key.decode("utf-8")
        except UnicodeDecodeError:
            pass
        raise damaged(self._path, "One of its entries has no readable name.")

    def value(self, key: str, kind: int) -> Value:
        if kind == _STRING:
            return self.text().decode("utf-8", "replace")
        if kind == _ARRAY:
            return self._array(key)
        return self._numbers(key, kind, 1)[0]

    def tensor(self) -> Tensor:
        name = self.key()
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
        if element == _STRING:
            self._strings_left -= count
            if self._strings_left < 0:
                raise damaged(self._path, f"Its list “{key}” claims {count:,} texts.")
            if not lazy:
                return tuple(self.text().decode("utf-8", "replace") for _ in range(count))
            self._skip_texts(count)
        elif element in _NUMBERS:
            if not lazy:
                return self._numbers(key, element, count)
            self.at += count * _NUMBERS[element].itemsize
            self._need(self.at)
        else:
            raise damaged(self._path, f"Its list “{key}” holds something unknown.")
        return LazyArray(self._path, key, element, count, start, self.at - start)

    def _numbers(self, key: str, element: int, count: int) -> tuple[Scalar, ...]:
        kind = _NUMBERS.get(element)
        if kind is None:
            raise damaged(self._path, f"Its entry “{key}” holds something unknown.")
        length = count * kind.itemsize
        self._need(self.at + length)
        values: list[Scalar] = np.frombuffer(self._data, kind, count, self.at).tolist()
        self.at += length
        return tuple(values)

    def _skip_texts(self, count: int) -> None:
        # The hot loop: two of these make nearly all of the time that reading a header takes.
        unpack = _U64.unpack_from
        data, at = self._data, self.at
        last = len(data) - 8
        for _ in range(count):
            if at > last:
                self._need(at + 8)
                data = self._data
                last = len(data) - 8
            at += 8 + unpack(data, at)[0]
        self._need(at)
        self.at = at

    def _need(self, end: int) -> None:
        """Make sure that the header is here up to `end`."""
        if end <= len(self._data):
            return
        if end > MOST_HEADER_BYTES:
            raise damaged(self._path, f"Its header claims to be {size_words(end)} long.")
        if end <= self._size:
            self._grow(min(self._size, max(end, 2 * len(self._data))))
        if end > len(self._data):
            raise GgufError(
                Problem.TRUNCATED,
                f"“{self._path.name}” is incomplete or damaged.",
                f"Its header goes on beyond the end of the file, which has {size_words(self._size)}.",
                "Download it again, or copy it again.",
            )

    def _grow(self, end: int) -> None:
        self._data += self._fetch(len(self._data), end - len(self._data))


def damaged(path: Path, why: str) -> GgufError:
    return GgufError(Problem.DAMAGED, f"“{path.name}” is damaged.", why, "Download it again, or choose another file.")


def changed(path: Path) -> GgufError:
    return GgufError(Problem.DAMAGED, f"“{path.name}” has changed while it was read.", remedy="Try again.")


def unreadable(path: Path, error: Exception) -> GgufError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return GgufError(
        Problem.UNREADABLE,
        f"“{path.name}” cannot be read.",
        f"The system says: {reason}.",
        "Check that the disk is there and that you may open the file.",
    )
