"""Where the same few tokens stood before: an index that grows and shrinks with the text."""

from __future__ import annotations

from collections.abc import Iterator

Gram = tuple[int, ...]
"""A few tokens in a row."""


class Occurrences:
    """Where each n-gram of one size occurred: the index of the token that followed it.

    The n-gram at the very end has no follower yet and is not in it, so looking that up finds an earlier occurrence.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._newest: dict[Gram, int] = {}
        self._older: list[int] = []
        """For each index from `size` on, the one where the same n-gram occurred before, or -1: the list behind
        `_newest`, and what a cut restores."""

    def follow(self, text: list[int]) -> None:
        newest, older, size = self._newest, self._older, self.size
        for end in range(size + len(older), len(text)):
            gram = tuple(text[end - size : end])
            older.append(newest.get(gram, -1))
            newest[gram] = end

    def cut(self, text: list[int], length: int) -> None:
        size = self.size
        while self._older and size + len(self._older) > length:
            end = size + len(self._older) - 1
            gram = tuple(text[end - size : end])
            before = self._older.pop()
            if before < 0:
                del self._newest[gram]
            else:
                self._newest[gram] = before

    def gram(self, text: list[int]) -> Gram:
        """The n-gram at the end of the text; a shorter one, which occurs nowhere, if the text is shorter."""
        return tuple(text[-self.size :])

    def newest(self, gram: Gram) -> int | None:
        return self._newest.get(gram)

    def all(self, gram: Gram) -> Iterator[int]:
        """The newest first."""
        place = self._newest.get(gram, -1)
        while place >= 0:
            yield place
            place = self._older[place - self.size]
