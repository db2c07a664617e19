"""Steps as bytes, exactly: every id, text, origin, probability and time comes back as it was.

A blob is one version byte and a zlib stream. In it: the counts of what follows, the names of the enums' members, one
column per field, and at the end all texts run together. Columns of numbers are stored byte plane by byte plane (all
lowest bytes, then all next ones, ...), which is what lets zlib see that ids are small and exponents alike. Floats keep
their 64 bits.

Reading trusts nothing: the size is bounded, the counts must account for every byte, and nothing is executed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from forespeak.speculation.trace import Alternative, DraftedToken, Origin, Source, Step, Token

Item = TypeVar("Item")

VERSION = 1
MAX_BYTES = 32 * 2**20
"""The most that a blob may hold, uncompressed: 2,048 steps of 16 drafted tokens with 20 alternatives each fit."""

_COUNTS = struct.Struct("<9I")
_NAMES = "\n".join([*(origin.value for origin in Origin), "", *(source.value for source in Source)])
_ORIGINS = {origin: number for number, origin in enumerate(Origin)}
_SOURCES: dict[Source | None, int] = {None: 0} | {source: number for number, source in enumerate(Source, start=1)}

_ID, _COUNT, _SMALL, _FLOAT = "<i8", "<u4", "<u1", "<f8"
# A token's flags: its origin, and whether the two probabilities are there.
_ORIGIN_BITS, _HAS_P, _HAS_Q = 0x3F, 0x40, 0x80


class ProvenanceError(ValueError):
    """The bytes are not what encode_steps wrote."""


def encode_steps(steps: Sequence[Step]) -> bytes:
    """Raises ValueError beyond MAX_BYTES: split the steps then."""
    emitted = [token for step in steps for token in step.emitted]
    drafted = [token for step in steps for group in (step.rejected, step.ignored) for token in group]
    alternatives = [alternative for token in emitted for alternative in token.alternatives]
    tokens: list[Token | DraftedToken] = [*emitted, *drafted]
    texts = [token.text for token in tokens] + [alternative.text for alternative in alternatives]
    p = [token.probability for token in tokens if token.probability is not None]
    q = [token.draft_probability for token in tokens if token.draft_probability is not None]
    # Halves of UTF-16 pairs are not text, but no reason to lose the record either.
    text = "".join(texts).encode("utf-8", "surrogatepass")
    names = _NAMES.encode()
    flags = [_ORIGINS[token.origin] | _presence(token) for token in emitted] + [_presence(token) for token in drafted]
    counts = (
        len(steps),
        len(emitted),
        len(drafted),
        len(alternatives),
        len(p),
        len(q),
        len(texts),
        len(names),
        len(text),
    )
    raw = b"".join(
        [
            _COUNTS.pack(*counts),
            names,
            _pack([step.index for step in steps], _ID),
            _pack([len(step.emitted) for step in steps], _COUNT),
            _pack([len(step.rejected) for step in steps], _COUNT),
            _pack([len(step.ignored) for step in steps], _COUNT),
            _pack([_SOURCES[step.source] for step in steps], _SMALL),
            _pack([step.draft_seconds for step in steps], _FLOAT),
            _pack([step.target_seconds for step in steps], _FLOAT),
            _pack([step.cache_length for step in steps], _ID),
            _pack([token.id for token in tokens], _ID),
            _pack(flags, _SMALL),
            _pack([_SOURCES[token.source] for token in emitted], _SMALL),
            _pack([len(token.alternatives) for token in emitted], _COUNT),
            _pack(p, _FLOAT),
            _pack(q, _FLOAT),
            _pack([alternative.id for alternative in alternatives], _ID),
            _pack([alternative.probability for alternative in alternatives], _FLOAT),
            _pack([len(part) for part in texts], _COUNT),
            text,
        ]
    )
    if len(raw) > MAX_BYTES:
        raise ValueError(f"{len(steps)} steps need {len(raw)} bytes, more than {MAX_BYTES}")
    return bytes([VERSION]) + zlib.compress(raw)


def decode_steps(blob: bytes) -> tuple[Step, ...]:
    """Raises ProvenanceError for anything that encode_steps did not write."""
    try:
        return _decode(_inflate(blob))
    except (ValueError, IndexError, struct.error, zlib.error) as error:
        raise ProvenanceError(f"unreadable provenance: {error}") from error


def _presence(token: Token | DraftedToken) -> int:
    return (token.probability is not None) * _HAS_P | (token.draft_probability is not None) * _HAS_Q


def _pack(values: Sequence[float], kind: str) -> bytes:
    column = np.array(values, dtype=kind)
    return column.view(np.uint8).reshape(len(values), column.itemsize).T.tobytes()


def _inflate(blob: bytes) -> bytes:
    if not blob or blob[0] != VERSION:
        raise ProvenanceError("unknown version")
    stream = zlib.decompressobj()
    raw = stream.decompress(blob[1:], MAX_BYTES + 1)
    if not stream.eof or stream.unused_data:
        raise ProvenanceError("too long, cut short, or followed by something else")
    return raw


class _Columns:
    """Takes one column after the other from the bytes."""

    def __init__(self, raw: bytes, at: int) -> None:
        self._raw = memoryview(raw)
        self._at = at

    def piece(self, size: int) -> bytes:
        if self._at + size > len(self._raw):
            raise ProvenanceError("counts beyond the end")
        taken = bytes(self._raw[self._at : self._at + size])
        self._at += size
        return taken

    def numbers(self, count: int, kind: str) -> NDArray[Any]:
        width = np.dtype(kind).itemsize
        planes = np.frombuffer(self.piece(count * width), np.uint8).reshape(width, count)
        return np.ascontiguousarray(planes.T).view(kind).reshape(count)

    def ints(self, count: int, kind: str) -> list[int]:
        values: list[int] = self.numbers(count, kind).tolist()
        return values

    def floats(self, count: int) -> list[float]:
        values: list[float] = self.numbers(count, _FLOAT).tolist()
        return values

    def finish(self) -> None:
        if self._at != len(self._raw):
            raise ProvenanceError("bytes left over")


def _decode(raw: bytes) -> tuple[Step, ...]:
    n_steps, n_emitted, n_drafted, n_alternatives, n_p, n_q, n_texts, n_names, n_text = _COUNTS.unpack_from(raw)
    if n_texts != n_emitted + n_drafted + n_alternatives:
        raise ProvenanceError("texts do not match tokens")
    take = _Columns(raw, _COUNTS.size)
    names = take.piece(n_names).decode()
    origin_names, _, source_names = names.partition("\n\n")
    origins = [Origin(name) for name in origin_names.split("\n")]
    sources = [None, *(Source(name) for name in source_names.split("\n") if name)]

    indices = take.ints(n_steps, _ID)
    emitted_counts = take.ints(n_steps, _COUNT)
    rejected_counts = take.ints(n_steps, _COUNT)
    ignored_counts = take.ints(n_steps, _COUNT)
    step_sources = [sources[number] for number in take.ints(n_steps, _SMALL)]
    draft_seconds = take.floats(n_steps)
    target_seconds = take.floats(n_steps)
    cache_lengths = take.ints(n_steps, _ID)
    n_tokens = n_emitted + n_drafted
    ids = take.ints(n_tokens, _ID)
    flags = take.numbers(n_tokens, _SMALL)
    token_sources = [sources[number] for number in take.ints(n_emitted, _SMALL)]
    alternative_counts = take.ints(n_emitted, _COUNT)
    p = _filled(take.numbers(n_p, _FLOAT), flags, _HAS_P)
    q = _filled(take.numbers(n_q, _FLOAT), flags, _HAS_Q)
    alternative_ids = take.ints(n_alternatives, _ID)
    alternative_p = take.floats(n_alternatives)
    lengths = take.ints(n_texts, _COUNT)
    texts = _cut(take.piece(n_text).decode("utf-8", "surrogatepass"), lengths)
    take.finish()

    alternatives = tuple(map(Alternative, alternative_ids, texts[n_tokens:], alternative_p))
    emitted = tuple(
        map(
            Token,
            ids[:n_emitted],
            texts[:n_emitted],
            [origins[number] for number in (flags[:n_emitted] & _ORIGIN_BITS).tolist()],
            token_sources,
            p[:n_emitted],
            q[:n_emitted],
            _grouped(alternatives, alternative_counts),
        )
    )
    drafted = tuple(map(DraftedToken, ids[n_emitted:], texts[n_emitted:n_tokens], p[n_emitted:], q[n_emitted:]))
    drafted_counts = [count for pair in zip(rejected_counts, ignored_counts, strict=True) for count in pair]
    drafted_groups = _grouped(drafted, drafted_counts)
    return tuple(
        map(
            Step,
            indices,
            _grouped(emitted, emitted_counts),
            drafted_groups[0::2],
            drafted_groups[1::2],
            step_sources,
            draft_seconds,
            target_seconds,
            cache_lengths,
        )
    )


def _filled(values: NDArray[Any], flags: NDArray[Any], bit: int) -> list[float | None]:
    """The values at the places whose flag has the bit, None at the others."""
    present = (flags & bit) != 0
    if np.count_nonzero(present) != len(values):
        raise ProvenanceError("probabilities do not match tokens")
    filled = np.full(len(flags), None, dtype=object)
    filled[present] = values
    places: list[float | None] = filled.tolist()
    return places


def _spans(counts: Sequence[int], total: int) -> Iterator[slice]:
    ends = list(accumulate(counts, initial=0))
    if ends[-1] != total:
        raise ProvenanceError("counts do not add up")
    return map(slice, ends, ends[1:])


def _cut(text: str, lengths: Sequence[int]) -> list[str]:
    return [text[span] for span in _spans(lengths, len(text))]


def _grouped(items: tuple[Item, ...], counts: Sequence[int]) -> list[tuple[Item, ...]]:
    return [items[span] for span in _spans(counts, len(items))]
