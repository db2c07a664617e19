"""The index of a text's n-grams against a plain search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forespeak.speculation.occurrences import Occurrences


@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 3), st.integers(0, 40), st.lists(st.integers(0, 2)))
def test_occurrences_survive_a_cut(text: list[int], size: int, length: int, more: list[int]) -> None:
    text = list(text)
    index = Occurrences(size)
    index.follow(text)
    index.cut(text, length)
    text[length:] = more if length <= len(text) else []
    index.follow(text)
    for gram in {tuple(text[at : at + size]) for at in range(len(text) - size + 1)}:
        found = [end for end in range(size, len(text)) if tuple(text[end - size : end]) == gram]
        assert list(index.all(gram)) == found[::-1]
        assert index.newest(gram) == (found[-1] if found else None)
    assert list(index.all((9,) * size)) == []
