"""Bytes of tokens to text: characters split over tokens, and stop strings found before anything is shown."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextDecoder:
    """Decodes UTF-8 token by token. A character's text comes with the token that completes it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, piece: bytes) -> str:
        return self._decoder.decode(piece)

    @property
    def pending(self) -> bool:
        """Whether a character is unfinished."""
        return bool(self._decoder.getstate()[0])

    def flush(self) -> str:
        """What an unfinished character leaves: one replacement character, or nothing."""
        return self._decoder.decode(b"", final=True)


class StopStrings:
    """Watches a growing text for any of several strings, also across the borders of tokens.

    Raises ValueError for an empty stop string, which would stop everything.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise ValueError("a stop string must not be empty")
        self._stops = tuple(stops)
        self._reach = max(map(len, stops), default=1) - 1
        self._tail = ""
        """The end of the text, long enough to hold all but the last character of a stop string."""
        self._length = 0

    def feed(self, text: str) -> int | None:
        """Append `text`; the index in the whole text where the first stop string begins, or None."""
        if not self._stops:
            return None
        window = self._tail + text
        start = self._length - len(self._tail)
        self._length += len(text)
        found = [at for stop in self._stops if (at := window.find(stop)) >= 0]
        self._tail = window[len(window) - self._reach :] if self._reach < len(window) else window
        if self._reach == 0:
            self._tail = ""
        return start + min(found) if found else None

    @property
    def pending(self) -> int:
        """How many characters at the end may turn out to be the beginning of a stop string: not to be shown yet."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self._tail)), longest, -1):
                if self._tail.endswith(stop[:size]):
                    longest = size
                    break
        return longest
