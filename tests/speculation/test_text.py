"""Bytes to text over token borders, and stop strings."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.speculation.text import StopStrings, TextDecoder


def cut_at(data: bytes, borders: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(border % (len(data) + 1) for border in borders)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=40))
def test_any_bytes_in_any_pieces_decode_as_the_whole_does(data: bytes, borders: list[int]) -> None:
    decoder = TextDecoder()
    pieces = [decoder.feed(piece) for piece in cut_at(data, borders)]
    assert "".join(pieces) + decoder.flush() == data.decode("utf-8", errors="replace")


@given(st.text(max_size=20), st.lists(st.integers(0, 80), max_size=80))
def test_text_in_any_pieces_never_shows_half_a_character(text: str, borders: list[int]) -> None:
    decoder = TextDecoder()
    shown = ""
    for piece in cut_at(text.encode(), borders):
        shown += decoder.feed(piece)
        assert text.startswith(shown)
    assert shown == text
    assert not decoder.flush()


@pytest.mark.parametrize("character", ["é", "漢", "🦊", "👩‍👩‍👧"])
def test_the_last_byte_of_a_character_carries_it(character: str) -> None:
    for single in character:
        decoder = TextDecoder()
        given_out = [decoder.feed(bytes([byte])) for byte in single.encode()]
        assert given_out == [""] * (len(given_out) - 1) + [single]


def test_an_unfinished_character_is_one_replacement_character_at_the_end() -> None:
    decoder = TextDecoder()
    assert decoder.feed(b"ok\xf0\x9f\xa6") == "ok"
    assert decoder.flush() == "\ufffd"
    assert not decoder.flush()


def feed_all(stops: list[str], pieces: list[str]) -> tuple[int | None, str]:
    """Where the text stops, and what might have been shown by then: everything that was not pending."""
    watch = StopStrings(stops)
    text = ""
    shown = 0
    for piece in pieces:
        text += piece
        at = watch.feed(piece)
        if at is not None:
            assert shown <= at, "a part of the stop string was shown"
            return at, text
        assert 0 <= watch.pending <= len(text)
        shown = max(shown, len(text) - watch.pending)
    return None, text


short = st.text("ab", min_size=1, max_size=4)


@given(short, st.lists(st.text("ab", max_size=4), max_size=10))
def test_one_stop_string_cuts_where_split_would(stop: str, pieces: list[str]) -> None:
    at, text = feed_all([stop], pieces)
    found = text.find(stop)
    assert at == (None if found < 0 else found)
    assert text[:at] == text.split(stop)[0]


@given(st.lists(short, min_size=1, max_size=4), st.lists(st.text("abc", max_size=4), max_size=10))
def test_of_several_stop_strings_the_first_to_be_complete_cuts(stops: list[str], pieces: list[str]) -> None:
    at, _ = feed_all(stops, pieces)
    whole = ""
    for piece in pieces:
        whole += piece
        starts = [whole.find(stop) for stop in stops if stop in whole]
        if starts:
            assert at == min(starts)
            return
    assert at is None


@given(st.lists(short, min_size=1, max_size=4), st.lists(st.text("ab", max_size=4), max_size=10))
def test_exactly_what_may_begin_a_stop_string_is_pending(stops: list[str], pieces: list[str]) -> None:
    watch = StopStrings(stops)
    text = ""
    for piece in pieces:
        text += piece
        if watch.feed(piece) is not None:
            return
        beginnings = [stop[:size] for stop in stops for size in range(1, len(stop))]
        assert watch.pending == max((len(b) for b in beginnings if text.endswith(b)), default=0)


def test_a_one_character_stop_leaves_nothing_pending() -> None:
    watch = StopStrings(["\n"])
    assert watch.feed("one") is None
    assert watch.pending == 0
    assert watch.feed(" two\nthree") == 7


def test_without_stop_strings_nothing_is_watched() -> None:
    watch = StopStrings([])
    assert watch.feed("anything") is None
    assert watch.pending == 0


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopStrings(["x", ""])
