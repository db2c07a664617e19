"""The loop's text: ends, stop strings and characters split over tokens; nothing is shown before it is certain."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, generate
from forespeak.speculation.trace import FinishReason, Origin, Step, Token, text_of
from scripted import GREEDY, ScriptedModel, ScriptedSource, ScriptedVocabulary, letters, reciting, reply_of

SIZE = 12
END = 11
PROMPT = [0, 1, 2, 3, 0, 1, 2]


def test_nothing_behind_the_end_of_a_reply_is_shown() -> None:
    text = [*PROMPT, 4, 5, END, 6, 7]
    target = ScriptedModel(reciting(text[7:], len(PROMPT), SIZE, then=3), letters(SIZE, [END]))
    source = ScriptedSource(text)
    reply = reply_of(target, source, length=8)
    assert reply.ids == [4, 5, END]
    assert reply.text == "ef"
    assert reply.finish is FinishReason.STOP
    last = reply.steps[-1]
    assert [token.origin for token in last.emitted] == [Origin.ACCEPTED, Origin.ACCEPTED]
    assert last.rejected == ()
    assert [token.id for token in last.ignored] == [6, 7]
    assert reply.stats.ignored_draft_tokens_count == 2
    assert reply.stats.acceptance_rate == 1.0
    assert list(target.tokens) == text[:10]
    assert source.text == text[:10]


def test_an_end_that_the_target_puts_against_the_draft() -> None:
    target = ScriptedModel(reciting([4, END], len(PROMPT), SIZE), letters(SIZE, [END]))
    reply = reply_of(target, ScriptedSource([*PROMPT, 4, 5, 6]))
    assert reply.ids == [4, END]
    assert [token.id for token in reply.steps[-1].rejected] == [5, 6]
    assert list(target.tokens) == [*PROMPT, 4]


PIECES = [
    b"a",
    b"b",
    b"ab",
    b"ba",
    b" stop",
    "漢".encode(),
    b"\xf0\x9f",
    b"\xa6\x8a",
    b"a\xe6\xbc",
    b"\xa2b",
    b"\xff",
    b"",
]
BYTES = ScriptedVocabulary([*PIECES, b"<end>"], ends=[len(PIECES)])
END_OF_BYTES = len(PIECES)
replies = st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=20)
stop_strings = st.lists(
    st.sampled_from(["a", "ab", "aba", "bb", "abab", "漢", "b漢", "🦊", " s", "top", "\ufffd"]), max_size=3
)


def text_before_stop(ids: Sequence[int], stops: Sequence[str]) -> tuple[str, int, bool]:
    """By plain means: the text, how many tokens it took, and whether a stop string ended it.

    Of several the one that is complete first counts, and of those complete with the same token the first to begin.
    """
    data = b""
    for count, token in enumerate(ids, 1):
        data += PIECES[token]
        # Not final: an unfinished character at the end may still become one and is no text yet.
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(data)
        begins = [text.find(stop) for stop in stops if stop in text]
        if begins:
            return text[: min(begins)], count, True
    return data.decode("utf-8", errors="replace"), len(ids), False


@settings(max_examples=300, deadline=None)
@given(replies, stop_strings, st.sets(st.integers(0, 19), max_size=6), st.sampled_from([0, 1, 4, 16]))
def test_text_stops_where_plain_search_says_and_is_never_shown_early(
    ids: list[int], stops: list[str], wrong: set[int], length: int
) -> None:
    prompt = [0]
    guess = [0, *(1 - token % 2 if place in wrong else token for place, token in enumerate(ids)), END_OF_BYTES, 0, 1]
    target = ScriptedModel(reciting([*ids, END_OF_BYTES], 1, BYTES.size), BYTES)
    expected, count, stopped = text_before_stop(ids, stops)
    shown = ""
    tokens: list[Token] = []
    for event in generate(
        target, ScriptedSource(guess), prompt, GREEDY, FixedDraftLength(length), DecodeSettings(stop=tuple(stops))
    ):
        if isinstance(event, Step):
            tokens += event.emitted
            shown += "".join(token.text for token in event.emitted)
            assert expected.startswith(shown)
    assert shown == expected
    emitted = ids[:count] if stopped else [*ids, END_OF_BYTES]
    assert [token.id for token in tokens] == emitted
    assert list(target.tokens) in ([*prompt, *emitted], [*prompt, *emitted[:-1]])


@pytest.mark.parametrize("length", [0, 3])
def test_one_stop_string_is_a_split(length: int) -> None:
    ids = [0, 0, 1, 3, 0, 2, 1, 1, 0]
    whole = b"".join(PIECES[token] for token in ids).decode()
    for stop in ("ba", "bba", "abb", "aab", "b", "bbb"):
        target = ScriptedModel(reciting(ids, 1, BYTES.size, then=END_OF_BYTES), BYTES)
        reply = reply_of(target, ScriptedSource([0, *ids]), prompt=[0], length=length, stop=(stop,))
        assert reply.text == whole.split(stop)[0]
        assert reply.finish is FinishReason.STOP


def test_a_stop_string_in_the_middle_of_an_accepted_batch() -> None:
    ids = [5, 0, 1, 4, 0, 0]
    target = ScriptedModel(reciting(ids, 1, BYTES.size), BYTES)
    reply = reply_of(target, ScriptedSource([0, *ids]), prompt=[0], length=8, stop=("b st",))
    assert reply.text == "漢a"
    assert reply.ids == [5, 0, 1, 4]
    assert len(reply.steps[-1].ignored) == 2
    assert list(target.tokens) == [0, 5, 0, 1, 4]


def test_half_a_character_behind_a_stop_string_is_not_shown() -> None:
    target = ScriptedModel(reciting([1, 8], 1, BYTES.size), BYTES)
    reply = reply_of(target, None, prompt=[0], stop=("a",))
    assert reply.text == "b"


def test_what_looks_like_a_stop_string_is_shown_once_it_is_none() -> None:
    ids = [0, 1, 0, 0, 1, 0, 1]
    target = ScriptedModel(reciting(ids, 1, BYTES.size), BYTES)
    events = generate(target, None, [0], GREEDY, FixedDraftLength(0), DecodeSettings(max_tokens=7, stop=("abb",)))
    texts = [(len(target.tokens) - 1, text_of([event])) for event in events if isinstance(event, Step)]
    # (tokens in the cache, text): a and b wait for the third token, the next a for the fourth, and so on.
    assert texts == [(2, "a"), (2, "b"), (3, "a"), (5, "a"), (5, "b"), (6, "a"), (6, "b")]


def test_a_character_comes_with_the_token_that_completes_it() -> None:
    ids = [6, 7, 8, 9, 10]
    target = ScriptedModel(reciting(ids, 1, BYTES.size, then=END_OF_BYTES), BYTES)
    reply = reply_of(target, ScriptedSource([0, *ids]), prompt=[0])
    assert [token.text for token in reply.tokens] == ["", "🦊", "a", "漢b", "\ufffd", ""]


def test_half_a_character_at_the_limit_is_a_replacement_character() -> None:
    target = ScriptedModel(reciting([0, 6], 1, BYTES.size), BYTES)
    reply = reply_of(target, None, prompt=[0], max_tokens=2)
    assert reply.text == "a\ufffd"
