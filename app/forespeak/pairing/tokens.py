"""Single tokens: whether one is only padding, means the same in two vocabularies, and how to write it for people."""

from __future__ import annotations

import re

from forespeak.models.vocabulary import TokenType, Vocabulary

# Numbered names that stand for nothing. Not `<extra_id_0>` and `<SPECIAL_10>`: some chat formats use those.
_PADDING = re.compile(
    rb"[\[<]\|?"
    rb"(?:pad|unused|unused_token|extra|reserved|reserved_token|reserved_special_token|dummy|dummy_id|dummy_token"
    rb"|placeholder|placeholder_token|control|empty)"
    rb"[_-]?\d+\|?[\]>]",
    re.IGNORECASE,
)
_MARKER = re.compile(rb"[<\[{(].+[>\]})]", re.DOTALL)
_LONGEST = 40


def is_padding(vocabulary: Vocabulary, token: int) -> bool:
    """Whether the token only fills the list: no text of this model holds it."""
    if token in {vocabulary.bos, vocabulary.eos, vocabulary.eot}:
        return False
    text = vocabulary.tokens[token]
    # Many files call an end-of-text token their padding, so its number alone proves nothing.
    return (
        (token == vocabulary.padding and b"pad" in text.lower())
        or vocabulary.type_of(token) is TokenType.UNUSED
        or _PADDING.fullmatch(text) is not None
    )


def can_be_written(vocabulary: Vocabulary, token: int) -> bool:
    """Whether a text of this model can hold the token at all: it has it, and not as padding."""
    return 0 <= token < vocabulary.size and not is_padding(vocabulary, token)


def shares_role(target: Vocabulary, draft: Vocabulary, token: int) -> bool:
    """Whether the token has the same function in both, such as the beginning of a text, under whatever name."""
    roles = []
    for v in (target, draft):
        if v.type_of(token) not in {TokenType.CONTROL, TokenType.UNKNOWN}:
            return False
        # Which token ends a reply and which a turn is known by name only in many files.
        roles.append([token == v.bos, token in {v.eos, v.eot}, token == v.unknown, token == v.padding])
    return any(roles[0]) and roles[0] == roles[1]


def is_same_symbol(target: Vocabulary, draft: Vocabulary, token: int) -> bool:
    """Whether a token with the same name but another type stands for the same thing in both.

    Converters disagree about the type of markers such as `<tool_call>`; their name says what they are.
    """
    kinds = {target.type_of(token), draft.type_of(token)}
    if TokenType.BYTE not in kinds:
        if _MARKER.fullmatch(target.tokens[token]) or TokenType.UNUSED in kinds or TokenType.UNKNOWN in kinds:
            return True
        if TokenType.CONTROL in kinds:
            return False
    return target.piece(token) == draft.piece(token)


def named(vocabulary: Vocabulary, token: int, *, capital: bool = False, bare: bool = False) -> str:
    """A token for people: `token 139 “foo”`, or only its text in quotation marks. Unprintable bytes are escaped."""
    text = vocabulary.piece(token).decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: _LONGEST + 1])
    if len(shown) > _LONGEST:
        shown = shown[: _LONGEST - 1] + "…"
    return f"“{shown}”" if bare else f"{'T' if capital else 't'}oken {token} “{shown}”"
