"""Which tokens of a model's file are written in a given way."""

from __future__ import annotations

from pathlib import Path

from forespeak.models.vocabulary import cached_vocabulary


def tokens_written(path: Path, text: str) -> tuple[int, ...]:
    """The ids of all tokens whose whole text is `text`, control tokens by their names; usually one, often none.

    Looks through the whole vocabulary: some tenths of a second for a large one. Raises GgufError.
    """
    vocabulary = cached_vocabulary(path)
    wanted = text.encode()
    return tuple(token for token in range(vocabulary.size) if vocabulary.piece(token) == wanted)


def text_of_token(path: Path, token: int) -> str | None:
    """How a token is written; None for a number that is no token of the file. Raises GgufError."""
    vocabulary = cached_vocabulary(path)
    if not 0 <= token < vocabulary.size:
        return None
    return vocabulary.piece(token).decode("utf-8", errors="replace")
