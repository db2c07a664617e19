"""Split models: `{stem}-00001-of-00003.gguf` and its siblings are one model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

# llama.cpp, src/llama.cpp: "%s-%05d-of-%05d.gguf". More digits than five are written where a number has them.
_NAME = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5,9})-of-(?P<count>\d{5,9})(?P<suffix>\.\w+)", re.IGNORECASE | re.DOTALL
)


MOST_PARTS = 9999
"""A name may claim any number of parts; nobody splits a model into more."""


@dataclass(frozen=True, slots=True)
class ShardName:
    """A file's name taken apart: part `number` of `count`, counted from 1. `suffix` has its dot."""

    stem: str
    number: int
    count: int
    suffix: str

    def part(self, number: int) -> str:
        """The name of another part."""
        return f"{self.stem}-{number:05d}-of-{self.count:05d}{self.suffix}"


def shard_name(name: str) -> ShardName | None:
    """A file name taken apart; None for a whole model, and for a number that its own count rules out."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number, count = int(match["number"]), int(match["count"])
    if not 1 <= number <= count:
        return None
    return ShardName(match["stem"], number, count, match["suffix"])


def shard_paths(path: Path) -> Iterator[Path]:
    """The files of a model in their order, by the name of one of them; whether they are there is not looked at.

    One after another, since a name may speak of a thousand million parts.
    """
    named = shard_name(path.name)
    if named is None:
        yield path
    else:
        yield from (path.with_name(named.part(number)) for number in range(1, named.count + 1))


def missing_words(missing: Collection[int], count: int) -> str:
    """Which parts of a set are not there, in a sentence: `Parts 2 and 5 to 7 of 9 are missing.`"""
    runs: list[list[int]] = []
    for number in sorted(missing):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [
        str(first) if first == last else f"{first} and {last}" if last == first + 1 else f"{first} to {last}"
        for first, last in runs
    ]
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"Part {listed} of {count} is missing." if len(missing) == 1 else f"Parts {listed} of {count} are missing."
