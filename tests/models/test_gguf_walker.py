"""Hostile and broken bytes: only our own errors, no hang, no memory that the file cannot justify."""

from __future__ import annotations

import os
import pickle
import random
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.models.gguf import GgufError, GgufHeader, Problem, parse_header, read_header
from forespeak.models.gguf_values import LazyArray
from forespeak.models.gguf_walker import FIRST_PIECE, short_texts
from forespeak.models.known_texts import KnownTexts
from forespeak.models.vocabulary import read_vocabulary
from models.field_data import VOCABULARIES, needs_field_data
from models.gguf_writer import CONTROL, NORMAL, ModelFile, Raw, gguf, text
from models.hostile_headers import MOST_BYTES, MOST_SECONDS, damaged_headers, read_hostile

PATH = Path("model.gguf")


def parse(data: bytes) -> GgufHeader:
    return parse_header(PATH, len(data), lambda offset, length: data[offset : offset + length])


def problem_of(data: bytes) -> Problem:
    with pytest.raises(GgufError) as caught:
        parse(data)
    assert caught.value.what
    assert caught.value.remedy
    return caught.value.problem


def test_every_kind_of_value() -> None:
    entries: dict[str, Any] = {
        "a": 7,
        "b": -7,
        "c": 0.5,
        "d": True,
        "e": "héllo",
        "f": ["x", "y"],
        "g": [1, 2, 3],
        "h": [True, False],
        "i": Raw(0, b"\xff"),
        "j": Raw(1, b"\xff"),
        "k": Raw(2, struct.pack("<H", 65535)),
        "l": Raw(3, struct.pack("<h", -2)),
        "m": Raw(10, struct.pack("<Q", 2**63)),
        "n": Raw(11, struct.pack("<q", -(2**62))),
        "o": Raw(12, struct.pack("<d", 1e300)),
        "p": [],
        "q": Raw(8, text(b"\xff\xfe")),
    }
    values = dict(parse(gguf(entries)).metadata)
    assert values.pop("q") == "��"
    assert values == {
        "a": 7,
        "b": -7,
        "c": 0.5,
        "d": True,
        "e": "héllo",
        "f": ("x", "y"),
        "g": (1, 2, 3),
        "h": (True, False),
        "i": 255,
        "j": -1,
        "k": 65535,
        "l": -2,
        "m": 2**63,
        "n": -(2**62),
        "o": 1e300,
        "p": (),
    }
    assert values["d"] is True


def test_long_arrays_stay_in_the_file(tmp_path: Path) -> None:
    words = [f"word {index}" for index in range(3000)]
    path = tmp_path / "long.gguf"
    path.write_bytes(gguf({"words": words, "numbers": list(range(3000)), "after": 5}))
    header = read_header(path)
    assert header.metadata["after"] == 5
    lazy_words, lazy_numbers = header.metadata["words"], header.metadata["numbers"]
    assert isinstance(lazy_words, LazyArray)
    assert isinstance(lazy_numbers, LazyArray)
    assert lazy_words.strings() == [word.encode() for word in words]
    assert np.array_equal(lazy_numbers.numbers(), np.arange(3000))
    with pytest.raises(GgufError):
        lazy_words.numbers()
    with pytest.raises(GgufError):
        lazy_numbers.strings()


def test_a_file_that_changes_under_a_lazy_array(tmp_path: Path) -> None:
    path = tmp_path / "changing.gguf"
    path.write_bytes(gguf({"words": ["abc"] * 2000}))
    array = read_header(path).metadata["words"]
    assert isinstance(array, LazyArray)
    path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(GgufError, match="changed"):
        array.strings()
    path.write_bytes(b"short")
    with pytest.raises(GgufError, match="changed"):
        array.strings()
    path.unlink()
    with pytest.raises(GgufError, match="cannot be read"):
        array.strings()


def test_a_header_longer_than_the_first_piece() -> None:
    data = gguf({"long": "x" * (FIRST_PIECE + 5), "words": ["ab"] * 300_000, "after": 9})
    fetched: list[tuple[int, int]] = []

    def fetch(offset: int, length: int) -> bytes:
        fetched.append((offset, length))
        return data[offset : offset + length]

    assert parse_header(PATH, len(data), fetch).metadata["after"] == 9
    assert len(fetched) <= 4
    assert sum(length for _, length in fetched) == len(data)


def head(tensors: int = 0, entries: int = 1) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries)


def entry(kind: int, data: bytes, key: str | bytes = "key") -> bytes:
    return text(key) + struct.pack("<I", kind) + data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(head(0, 2**63), Problem.DAMAGED, id="endless entries"),
        pytest.param(head(2**40, 0), Problem.DAMAGED, id="endless tensors"),
        pytest.param(head(0, 60_000), Problem.TRUNCATED, id="more entries than there are"),
        pytest.param(head() + struct.pack("<Q", 2**64 - 1), Problem.DAMAGED, id="endless key"),
        pytest.param(head() + text(""), Problem.DAMAGED, id="empty key"),
        pytest.param(head() + text(b"\xff"), Problem.DAMAGED, id="unreadable key"),
        pytest.param(head(entries=2) + entry(0, b"1") * 2, Problem.DAMAGED, id="key twice"),
        pytest.param(head() + entry(8, struct.pack("<Q", 2**40)), Problem.DAMAGED, id="endless text"),
        pytest.param(head() + entry(8, struct.pack("<Q", 5000) + b"abc"), Problem.TRUNCATED, id="text beyond the end"),
        pytest.param(head() + entry(77, b""), Problem.DAMAGED, id="unknown value"),
        pytest.param(head() + entry(9, struct.pack("<IQ", 9, 1)), Problem.DAMAGED, id="array in array"),
        pytest.param(head() + entry(9, struct.pack("<IQ", 77, 1)), Problem.DAMAGED, id="array of unknown"),
        pytest.param(head() + entry(9, struct.pack("<IQ", 0, 2**62)), Problem.DAMAGED, id="endless array"),
        pytest.param(head() + entry(9, struct.pack("<IQ", 0, 10**6)), Problem.TRUNCATED, id="array beyond the end"),
        pytest.param(head() + entry(9, struct.pack("<IQ", 8, 2**62)), Problem.DAMAGED, id="endless texts"),
        pytest.param(head() + entry(9, struct.pack("<IQ", 8, 10**6)), Problem.TRUNCATED, id="texts beyond the end"),
        pytest.param(
            head() + entry(9, struct.pack("<IQQ", 8, 5000, 2**64 - 1) + bytes(64)), Problem.DAMAGED, id="wild length"
        ),
        pytest.param(gguf({"general.alignment": 0}), Problem.DAMAGED, id="no alignment"),
        pytest.param(gguf({"general.alignment": 3}), Problem.DAMAGED, id="odd alignment"),
        pytest.param(gguf({"general.alignment": "x"}), Problem.DAMAGED, id="alignment in words"),
        pytest.param(gguf({}, [("a", (4,)), ("a", (4,))]), Problem.DAMAGED, id="tensor twice"),
        pytest.param(head(1, 0) + text("t") + struct.pack("<I", 5), Problem.DAMAGED, id="five dimensions"),
        pytest.param(
            head(1, 0) + text("t") + struct.pack("<I2QIQ", 2, 2**62, 2**62, 0, 0), Problem.DAMAGED, id="endless tensor"
        ),
        pytest.param(head(1, 0) + text("t") + struct.pack("<IQIQ", 1, 33, 2, 0), Problem.DAMAGED, id="half a block"),
        pytest.param(head(1, 0) + text("t") + struct.pack("<IQIQ", 1, 32, 4, 0), Problem.UNSUPPORTED, id="old format"),
        pytest.param(head(1, 0) + text("t") + struct.pack("<IQIQ", 1, 32, 99, 0), Problem.UNSUPPORTED, id="new format"),
        pytest.param(b"", Problem.EMPTY, id="empty"),
        pytest.param(b"GG", Problem.TRUNCATED, id="half the magic"),
        pytest.param(b"GGUF\3\0", Problem.TRUNCATED, id="half the version"),
        pytest.param(b"hello", Problem.NOT_GGUF, id="not GGUF"),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 1, 0, 0), Problem.UNSUPPORTED, id="version 1"),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 4, 0, 0), Problem.UNSUPPORTED, id="version 4"),
        pytest.param(b"GGUF" + struct.pack(">IQQ", 3, 0, 0), Problem.BIG_ENDIAN, id="big-endian"),
    ],
)
def test_hostile_bytes(data: bytes, problem: Problem) -> None:
    tracemalloc.start()
    try:
        assert problem_of(data) is problem
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_huge_file_of_zeros_is_given_up_soon() -> None:
    """A terabyte whose header claims many empty texts, and then only zeros."""
    start = head(entries=2) + entry(9, struct.pack("<IQ", 8, 200_000), "words")

    def fetch(offset: int, length: int) -> bytes:
        assert offset + length < 64 << 20
        return start[offset:].ljust(length, b"\0") if offset < len(start) else bytes(length)

    with pytest.raises(GgufError) as caught:
        parse_header(PATH, 10**12, fetch)
    assert caught.value.problem is Problem.DAMAGED


def test_errors_survive_a_pipe() -> None:
    with pytest.raises(GgufError) as caught:
        parse(b"hello")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.problem, copy.what, copy.why, copy.remedy) == (
        caught.value.problem,
        caught.value.what,
        caught.value.why,
        caught.value.remedy,
    )


def test_a_small_header_cut_at_every_byte(tmp_path: Path) -> None:
    path = ModelFile(["a", "b", "<|end|>"], [NORMAL, NORMAL, CONTROL]).write(tmp_path / "whole.gguf")
    whole = path.read_bytes()[: read_header(path).needed_bytes]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(GgufError) as caught:
            read_header(path)
        expected = {0: Problem.EMPTY}.get(length, Problem.TRUNCATED)
        assert caught.value.problem is expected, length


@needs_field_data
def test_a_real_header_cut_at_every_so_many_bytes() -> None:
    whole = VOCABULARIES["llama-spm"].read_bytes()
    assert parse(whole).tensor_count == 0
    for length in range(1, len(whole), 1499):
        assert problem_of(whole[:length]) is Problem.TRUNCATED


@needs_field_data
def test_a_real_header_with_wrong_bytes() -> None:
    whole = bytearray(VOCABULARIES["llama-spm"].read_bytes())
    chance = random.Random(5)
    refused = 0
    for _ in range(300):
        # Half of them where the counts, keys and types are.
        at = chance.randrange(1200 if chance.random() < 0.5 else len(whole))
        before, whole[at] = whole[at], chance.randrange(256)
        try:
            parse(bytes(whole))
        except GgufError:
            refused += 1
        whole[at] = before
    assert refused > 20


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_to_a_small_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.gguf"
    ModelFile(["a", "b", "<|end|>", "<0x0A>"], settings={"eos_token_id": 2, "scores": [0.0, 1.0, 2.0, 3.0]}).write(path)
    content = bytearray(path.read_bytes())
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=4)):
        content[at] = byte
    del content[len(content) - data.draw(st.integers(0, 40)) :]
    path.write_bytes(content)
    with suppress(GgufError):
        header = read_header(path)
        assert header.kind is not None
        assert header.quantisation is None or header.quantisation
        assert header.parameters >= 0
        vocabulary = read_vocabulary(header)
        assert all(isinstance(vocabulary.piece(token), bytes) for token in range(vocabulary.size))


def strings(items: list[bytes]) -> bytes:
    return b"".join(map(text, items))


@pytest.mark.parametrize(
    ("items", "done"),
    [
        pytest.param([b"ab", b"cde"] * 300, 599, id="ordinary"),
        pytest.param([b"a" * 255] * 20, 19, id="the longest that are looked for"),
        pytest.param([b"ab"] * 20 + [b"x" * 256] + [b"ab"] * 20, 19, id="a long one"),
        pytest.param([b"ab"] * 20 + [b""] + [b"ab"] * 20, 19, id="an empty one"),
        pytest.param([b"ab"] * 20 + [b"\0" * 9] + [b"ab"] * 20, 20, id="zeros"),
        pytest.param([b"ab"] * 20 + [b"\1" + bytes(7)] + [b"ab"] * 20, 20, id="a text like a length"),
    ],
)
def test_short_texts_end_where_the_slow_way_would(items: list[bytes], done: int) -> None:
    data = strings(items)
    found, end = short_texts(data, 0, len(items))
    assert found >= done - 1
    assert end == len(strings(items[:found]))
    assert short_texts(data, 0, 5) == (min(5, found), len(strings(items[: min(5, found)])))


def test_short_texts_of_nothing() -> None:
    assert short_texts(b"", 0, 5) == (0, 0)
    assert short_texts(bytes(200), 0, 5)[0] <= 5
    assert short_texts(b"\xff" * 200, 0, 5) == (0, 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=12), st.binary(min_size=250, max_size=300)), min_size=1, max_size=30))
def test_any_list_of_texts_is_skipped_to_its_end(items: list[bytes]) -> None:
    many = items * (2500 // len(items) + 1)
    header = parse(gguf({"tokenizer.ggml.tokens": many, "after": 5}))
    listed = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(listed, LazyArray)
    assert (header.metadata["after"], listed.count, listed.length) == (5, len(many), len(strings(many)))


def test_values_too_long_to_keep_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "long.gguf"
    path.write_bytes(gguf({"long": "x" * (2 << 20), "few": ["y" * (2 << 20), "z"], "after": 5}))
    header = read_header(path)
    long, few = header.metadata["long"], header.metadata["few"]
    assert isinstance(long, LazyArray)
    assert isinstance(few, LazyArray)
    assert long.raw() == b"x" * (2 << 20)
    assert few.strings() == [b"y" * (2 << 20), b"z"]
    assert header.metadata["after"] == 5


@pytest.mark.parametrize(
    ("tensors", "entries", "piece"),
    [
        pytest.param(0, 60_000, lambda n: text(f"k{n}") + struct.pack("<IIQ", 9, 0, 1000) + bytes(1000), id="numbers"),
        pytest.param(0, 60_000, lambda n: text(f"k{n}") + struct.pack("<IQ", 8, 900) + b"\xff" * 900, id="texts"),
        pytest.param(30_000, 0, lambda n: text(f"t{n}" + "x" * 2000) + struct.pack("<IQIQ", 1, 32, 0, 0), id="tensors"),
    ],
)
def test_what_fills_the_memory_is_refused_or_stays_in_the_file(tensors: int, entries: int, piece: Any) -> None:
    data = b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + b"".join(map(piece, range(tensors + entries)))
    tracemalloc.start()
    try:
        with suppress(GgufError):
            parse(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES


def test_damaged_headers_are_read_or_refused(tmp_path: Path) -> None:
    """FORESPEAK_HEADERS=10000 runs as many; tests/benchmarks/bench_headers.py also says what they cost."""
    known, refused = KnownTexts(), 0
    count = int(os.environ.get("FORESPEAK_HEADERS", "400"))
    for number, content, hole in damaged_headers(tmp_path, count, seed=7):
        outcome = read_hostile(tmp_path / "hostile.gguf", content, hole, known if number % 2 else None)
        assert outcome.peak_bytes < MOST_BYTES, number
        assert outcome.seconds < 5 * MOST_SECONDS, number  # this machine may be busy
        refused += outcome.refused
    assert refused > count / 4


def test_more_texts_than_any_model_has_are_not_counted_out() -> None:
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 8, 3 << 20)
    fetched = 0

    def zeros(offset: int, length: int) -> bytes:
        nonlocal fetched
        fetched += length
        return (data[offset : offset + length]).ljust(length, b"\0")

    with pytest.raises(GgufError) as caught:
        parse_header(PATH, 1 << 30, zeros)
    assert (caught.value.problem, fetched) == (Problem.DAMAGED, FIRST_PIECE)
