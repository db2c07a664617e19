"""What a GGUF header consists of, and what can be wrong with it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from forespeak.errors import UserFacingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEXT, ARRAY = 8, 9
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
"""The kinds of numbers by what stands in the file, as struct and numpy call them."""

_U64 = struct.Struct("<Q")
_PIECE = 1 << 20


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
    """A long array that stayed in the file: where it is, and how to read it. `length` is in bytes.

    `known_digest` is set where the array was hashed as the header was read.
    """

    path: Path
    key: str
    element: int
    count: int
    offset: int
    length: int
    known_digest: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def holds_text(self) -> bool:
        return self.element == TEXT

    def raw(self) -> bytes:
        """The array as it stands in the file. Raises GgufError if the file has changed or gone."""
        return b"".join(self._pieces())

    def digest(self) -> bytes:
        """A hash over the array as it stands in the file. Raises GgufError if the file has changed or gone."""
        if self.known_digest is not None:
            return self.known_digest
        digest = new_digest()
        for piece in self._pieces():
            digest.update(piece)
        return digest.digest()

    def _pieces(self) -> Iterator[bytes]:
        left = self.length
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(self.offset)
                while left and (piece := file.read(min(left, _PIECE))):
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise unreadable(self.path, error) from error
        if left:
            raise changed(self.path)

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
        # Imported late: the window must be up before numpy is.
        import numpy as np

        return np.frombuffer(self.raw(), NUMBERS[self.element])


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


def new_digest(data: bytes = b"") -> blake2b:
    return blake2b(data, digest_size=16)


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
