import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.chats.provenance import MAX_BYTES, ProvenanceError, decode_steps, encode_steps
from forespeak.speculation.trace import Alternative, DraftedToken, Origin, Source, Step, Token

ids = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=[]), max_size=8)
numbers = st.floats(allow_nan=False)
maybe = st.none() | numbers
sources = st.sampled_from([None, *Source])
alternatives = st.builds(Alternative, ids, texts, numbers)
tokens = st.builds(
    Token, ids, texts, st.sampled_from(Origin), sources, maybe, maybe, st.lists(alternatives, max_size=3).map(tuple)
)
drafted = st.lists(st.builds(DraftedToken, ids, texts, maybe, maybe), max_size=4).map(tuple)
steps = st.builds(Step, ids, st.lists(tokens, max_size=4).map(tuple), drafted, drafted, sources, numbers, numbers, ids)
replies = st.lists(steps, max_size=5).map(tuple)

ONE = Step(
    index=7,
    emitted=(
        Token(5, "人", Origin.ACCEPTED, Source.DRAFT_MODEL, 0.1 + 0.2, 1 / 3, (Alternative(9, "x", 0.25),)),
        Token(0, "", Origin.CORRECTED, None, 1.0, None),
    ),
    rejected=(DraftedToken(3, " a", 0.5, 0.75),),
    ignored=(DraftedToken(4, "b", None, 0.125),),
    source=Source.DRAFT_MODEL,
    draft_seconds=1e-3,
    target_seconds=2e-2,
    cache_length=120_000,
)


def repacked(blob: bytes, at: int, value: int) -> bytes:
    """The blob with one of its nine counts replaced."""
    raw = bytearray(zlib.decompress(blob[1:]))
    struct.pack_into("<I", raw, 4 * at, value)
    return blob[:1] + zlib.compress(bytes(raw))


@given(replies)
def test_every_field_comes_back_as_it_was(reply: tuple[Step, ...]) -> None:
    assert decode_steps(encode_steps(reply)) == reply


def test_the_types_come_back_too() -> None:
    (step,) = decode_steps(encode_steps([ONE]))
    assert step == ONE
    assert type(step.emitted[0].id) is int
    assert type(step.emitted[0].probability) is float
    assert step.emitted[0].origin is Origin.ACCEPTED
    assert step.emitted[0].source is Source.DRAFT_MODEL


def test_nothing_is_something() -> None:
    assert decode_steps(encode_steps([])) == ()


def test_a_token_takes_few_bytes() -> None:
    many = [replace(ONE, index=index, ignored=()) for index in range(2048)]
    assert len(encode_steps(many)) < 2 * 2048 * 4


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(blob: bytes) -> None:
    for hostile in (blob, b"\x01" + blob, b"\x01" + zlib.compress(blob)):
        with pytest.raises(ProvenanceError):
            decode_steps(hostile)


@given(replies, st.data())
def test_changed_bytes_are_refused_or_read_as_steps(reply: tuple[Step, ...], data: st.DataObject) -> None:
    raw = bytearray(zlib.decompress(encode_steps(reply)[1:]))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = decode_steps(b"\x01" + zlib.compress(bytes(raw)))
    except ProvenanceError:
        return
    assert all(isinstance(step, Step) for step in read)


@pytest.mark.parametrize("count", range(9))
@pytest.mark.parametrize("change", [-1, 1, 2**31])
def test_counts_must_account_for_every_byte(count: int, change: int) -> None:
    blob = encode_steps([ONE])
    was = struct.unpack_from("<9I", zlib.decompress(blob[1:]))[count]
    with pytest.raises(ProvenanceError):
        decode_steps(repacked(blob, count, was + change))


def test_columns_must_agree_with_each_other() -> None:
    raw = zlib.decompress(encode_steps([ONE])[1:])
    (names,) = struct.unpack_from("<I", raw, 4 * 7)
    emitted_count = 36 + names + 8
    assert struct.unpack_from("<I", raw, emitted_count) == (2,)
    for hostile in (
        raw[:emitted_count] + b"\x01" + raw[emitted_count + 1 :],
        raw[:emitted_count] + b"\x03" + raw[emitted_count + 1 :],
        raw + b"x",
    ):
        with pytest.raises(ProvenanceError):
            decode_steps(b"\x01" + zlib.compress(hostile))


def test_a_bomb_is_not_inflated() -> None:
    bomb = b"\x01" + zlib.compress(bytes(4 * MAX_BYTES), 1)
    with pytest.raises(ProvenanceError, match="too long"):
        decode_steps(bomb)


@pytest.mark.parametrize("spoil", [lambda blob: blob[:-1], lambda blob: blob + b"x", lambda blob: b"\x02" + blob[1:]])
def test_cut_extended_or_of_another_version(spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(ProvenanceError):
        decode_steps(spoil(encode_steps([ONE])))


def test_too_much_for_one_blob_is_said() -> None:
    huge = replace(ONE, emitted=(replace(ONE.emitted[0], text="x" * MAX_BYTES),))
    with pytest.raises(ValueError, match="more than"):
        encode_steps([huge])
