"""Damages GGUF headers in every way that is worth a try, and looks at what reading them costs."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forespeak.models.file_facts import read_facts
from forespeak.models.gguf import GgufError, KnownTexts
from models.field_data import VOCABULARIES
from models.gguf_writer import CONTROL, NORMAL, ModelFile

MOST_SECONDS, MOST_BYTES = 1.0, 64 << 20
"""What reading any header may take, in time and in memory at once."""

_HUGE = (
    2**8,
    2**16,
    2**20,
    2**21,
    2**26,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**40,
    2**62,
    2**63,
    2**64 - 8,
    2**64 - 1,
)
_HOLE = 300 << 20
"""Bytes of zeros behind some headers, as if it were a large model: what claims to be long then is."""


def bases(folder: Path) -> list[tuple[bytes, int]]:
    """Whole headers, and how often each is taken: small ones mostly, as a change hits their structure more often."""
    small = ModelFile(["a", "b", "<|end|>", "<0x0A>"], settings={"eos_token_id": 2, "scores": [0.0, 1.0, 2.0, 3.0]})
    words: list[str | bytes] = [f"token {number}" for number in range(3000)]
    types = [NORMAL] * 2999 + [CONTROL]
    more = {"general.tags": ["a", "b"], "general.long": "x" * 2000, "numbers": list(range(900)), "flags": [True, False]}
    tensors = tuple((f"blk.{number}.ffn_up_exps.weight", (8, 4, 2)) for number in range(60))
    middle = ModelFile(words, types, merges=[f"a {number}" for number in range(3000)], entries=more, tensors=tensors)
    found = [(small.write(folder / "small.gguf").read_bytes(), 12), (middle.write(folder / "m.gguf").read_bytes(), 7)]
    if VOCABULARIES:
        found.append((VOCABULARIES["llama-spm"].read_bytes(), 1))
    return found


def damaged_headers(folder: Path, count: int, seed: int = 5) -> Iterator[tuple[int, bytes, int]]:
    """(number, content, bytes of zeros behind it)."""
    chance = random.Random(seed)
    whole = bases(folder)
    contents, weights = [content for content, _ in whole], [weight for _, weight in whole]
    for number in range(count):
        content = bytearray(chance.choices(contents, weights)[0])
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            chance.choice((_flip, _cut, _huge, _huge, _cycle, _kind))(content, chance)
        yield number, bytes(content), chance.choice((0, 0, 0, _HOLE))


def _place(content: bytearray, chance: random.Random, room: int) -> int:
    """Mostly near the beginning, where the structure is."""
    last = max(1, len(content) - room)
    return chance.randrange(min(last, 1500) if chance.random() < 0.7 else last)


def _flip(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 2, 5, 30))):
        if content:
            content[_place(content, chance, 0)] ^= 1 << chance.randrange(8)


def _cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content) + 1) :]


def _huge(content: bytearray, chance: random.Random) -> None:
    """Another count or length: where one stands if there is one near, else anywhere."""
    at = _place(content, chance, 8)
    near = content.find(bytes(6), at, at + 200)
    at = max(0, near - 2) if near >= 0 and chance.random() < 0.8 else at
    content[at : at + 8] = struct.pack("<Q", chance.choice(_HUGE))


def _cycle(content: bytearray, chance: random.Random) -> None:
    """A piece again and again, so that lengths lead into themselves."""
    length = chance.choice((8, 9, 12, 16, 40, 300))
    at = _place(content, chance, length)
    piece = bytes(content[at : at + length])
    to = _place(content, chance, length)
    content[to : to + length * 50] = piece * chance.choice((1, 2, 50, 500))


def _kind(content: bytearray, chance: random.Random) -> None:
    at = _place(content, chance, 4)
    content[at : at + 4] = struct.pack("<I", chance.choice((0, 7, 8, 9, 12, 13, 255, 2**31)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """`refused` in our own words; `seconds` without, `peak_bytes` with memory being traced."""

    refused: bool
    seconds: float
    peak_bytes: int


def read_hostile(path: Path, content: bytes, hole: int, known: KnownTexts | None) -> Outcome:
    """What the library does with such a file. Any error but ours comes through."""
    with path.open("wb") as file:
        file.write(content)
        file.truncate(len(content) + hole)
    start = time.perf_counter()
    refused = _refused(path, known)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    try:
        _refused(path, known)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return Outcome(refused, seconds, peak)


def _refused(path: Path, known: KnownTexts | None) -> bool:
    try:
        return read_facts(path, known).problem is not None
    except GgufError:
        return True
