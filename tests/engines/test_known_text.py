from __future__ import annotations

import pytest

from forespeak.engines.known_text import KnownText

PIECES = [b"a", b"b", b"ab", b" ", b" a", b"\xc3", b"\xa9", b""]
A, B, AB, SPACE, SPACE_A, FIRST, SECOND, END = range(len(PIECES))
NAMES = ["a", "b", "ab", " ", " a", "", "", "|"]
LONGEST_FIRST = sorted(range(len(NAMES)), key=lambda token: -len(NAMES[token]))


def piece(token: int) -> bytes:
    return PIECES[token]


def tokenize(text: str) -> list[int]:
    """The longest token that fits, again and again; “|” is the control token, “é” has one for each of its bytes."""
    found: list[int] = []
    while text:
        if text.startswith("é"):
            found, text = [*found, FIRST, SECOND], text[1:]
            continue
        token = next(token for token in LONGEST_FIRST if NAMES[token] and text.startswith(NAMES[token]))
        found, text = [*found, token], text[len(NAMES[token]) :]
    return found


def tokenize_behind_a_space(text: str) -> list[int]:
    """As sentencepiece does: what a text begins with, and what follows a control token, gets a space before it."""
    return tokenize("|".join(f" {part}" if part else "" for part in text.split("|")))


def tokens_of(known: KnownText, text: str) -> list[int] | None:
    return known.tokens_of(text, tokenize, piece)


def answered(prompt: str, reply: str, *tokens: int) -> KnownText:
    known = KnownText()
    known.read(prompt, tokenize(prompt))
    known.written(prompt, reply, tokens, piece)
    return known


def test_a_reply_keeps_the_tokens_that_it_was_written_in() -> None:
    assert tokens_of(answered("b|", "ab", A, B), "b|ab|a") == [B, END, A, B, END, A]
    assert tokens_of(KnownText(), "b|ab|a") is None


@pytest.mark.parametrize(
    ("reply", "tokens", "kept"),
    [
        ("ab", (A, B, END), [A, B]),
        ("ab", (A, B, A, A), [A, B]),
        ("aba", (A, B, AB), [A, B, A]),
        ("ab", (A, END, B), [A, B]),
        ("", (AB,), []),
        ("aé", (A, FIRST, SECOND), [A, FIRST, SECOND]),
        ("a", (A, FIRST), [A]),
    ],
    ids=["ended", "stop string", "stop string in a token", "control token", "nothing left", "character", "half of one"],
)
def test_what_nobody_sees_is_not_kept(reply: str, tokens: tuple[int, ...], kept: list[int]) -> None:
    assert tokens_of(answered("b|", reply, *tokens), f"b|{reply}|") == [B, END, *kept, END]


def test_a_character_that_was_broken_off_keeps_its_tokens() -> None:
    assert tokens_of(answered("b|", "a\ufffd", A, FIRST), "b|a\ufffd|") == [B, END, A, FIRST, END]


def test_a_prompt_that_is_asked_again_has_the_tokens_of_the_first_time() -> None:
    known = answered("b|", "ab", A, B)
    second = "b|ab|ab|"
    first_time = tokens_of(known, second)
    assert first_time == [B, END, A, B, END, AB, END] != tokenize(second)
    for reply in ((AB,), (B, B)):
        assert tokens_of(known, second) == first_time
        known.read(second, first_time)
        known.written(second, "".join(map(NAMES.__getitem__, reply)), reply, piece)
    third = "b|ab|ab|bb|a"
    assert tokens_of(known, third) == [*first_time, B, B, END, A]
    known.read(third, tokenize(third))
    assert tokens_of(known, "b|ab|") == [B, END, AB, END], "read in other tokens since"


def test_earlier_turns_can_be_asked_again_too() -> None:
    known = KnownText()
    text, tokens = "b|", tokenize("b|")
    prompts = []
    for _ in range(4):
        known.read(text, tokens)
        prompts.append((text, tokens))
        known.written(text, "ab", (A, B), piece)
        text += "ab|b|"
        tokens = tokens_of(known, text) or []
    for text, tokens in reversed(prompts):
        assert tokens_of(known, text) == tokens
        known.read(text, tokens)


def test_another_chat_knows_nothing_of_this_one() -> None:
    known = answered("b|", "ab", A, B)
    assert tokens_of(known, "a|ab") is None
    known.read("a|", tokenize("a|"))
    assert tokens_of(known, "b|ab|a") is None


def test_a_reply_that_is_closed_late_is_not_put_behind_another_prompt() -> None:
    known = answered("b|", "a", A)
    known.written("a|", "b", (B,), piece)
    assert tokens_of(known, "b|ab") == [B, END, A, B]


def test_a_tokenizer_that_puts_spaces_before_texts_is_given_whole_ones() -> None:
    known = answered("b|", "ab", A, B)
    assert known.tokens_of("b|aba", tokenize_behind_a_space, piece) is None
    assert known.tokens_of("b|ab|a", tokenize_behind_a_space, piece) == [B, END, A, B, END, SPACE_A]
