"""The newest prompt and its reply in the tokens that they were: what the next prompt may begin with.

A tokenizer need not cut a text into the tokens that it was written in, and the caches hold those. So what is known of
a prompt keeps its tokens: a conversation that goes on those of its last reply, and a prompt that is asked again those
of the first time. With others, the same seed would write other words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from forespeak.speculation.text import TextDecoder

_TRIES = 3
"""Places from which the rest of a prompt is tokenized, at most: where that fails, it mostly fails everywhere."""


class KnownText:
    """One text, its tokens, and the places where a prompt or a reply ended, each with its number of tokens."""

    def __init__(self) -> None:
        self._text = ""
        self._tokens: list[int] = []
        self._places: list[tuple[int, int]] = []
        """(characters, tokens), ascending."""

    def tokens_of(
        self, text: str, tokenize: Callable[[str], list[int]], piece: Callable[[int], bytes]
    ) -> list[int] | None:
        """Tokens of a prompt that begins as what is known does; None for one that has to be tokenized as a whole."""
        for characters, count in islice(self._shared_with(text), _TRIES):
            rest = text[characters:]
            tokens = tokenize(rest) if rest else []
            if _spells_the_beginning(rest, tokens, piece):
                return self._tokens[:count] + tokens
        return None

    def read(self, text: str, tokens: Sequence[int]) -> None:
        """A prompt that is about to be answered, and its tokens; what it does not begin with is forgotten."""
        furthest = next(
            (place for place in self._shared_with(text) if list(tokens[: place[1]]) == self._tokens[: place[1]]), (0, 0)
        )
        self._places = [place for place in self._places if place <= furthest and place[0] < len(text)]
        self._places.append((len(text), len(tokens)))
        self._text, self._tokens = text, list(tokens)

    def written(self, prompt: str, reply: str, tokens: Sequence[int], piece: Callable[[int], bytes]) -> None:
        """The reply to the prompt that was read last, as people see it, and all its tokens.

        Tokens that cannot be seen are left out, as they are when the chat is opened again: those of a stop string, and
        control tokens.
        """
        if prompt != self._text:
            return
        characters, count = _spelled(reply, tokens, piece)
        if count:
            self._text += reply[:characters]
            self._tokens += tokens[:count]
            self._places.append((len(self._text), len(self._tokens)))

    def _shared_with(self, text: str) -> Iterator[tuple[int, int]]:
        """The places up to which `text` is the same, the furthest first."""
        return (place for place in reversed(self._places) if text.startswith(self._text[: place[0]]))


def _spells_the_beginning(text: str, tokens: Sequence[int], piece: Callable[[int], bytes]) -> bool:
    """Whether the tokens say `text` up to the first control token: some tokenizers put a space before what they get."""
    spelled = b""
    for token in tokens:
        part = piece(token)
        if not part:
            break
        spelled += part
    return text.encode().startswith(spelled)


def _spelled(text: str, tokens: Sequence[int], piece: Callable[[int], bytes]) -> tuple[int, int]:
    """The longest beginning of `text` that whole tokens say and nothing else: in characters, and in tokens."""
    decoder = TextDecoder()
    characters = 0
    kept = 0, 0
    for count, token in enumerate(tokens, 1):
        part = piece(token)
        shown = decoder.feed(part)
        if not part or not text.startswith(shown, characters):
            return kept
        characters += len(shown)
        if not decoder.pending:
            kept = characters, count
    # A character that a reply ends in the middle of is shown as what it is not.
    left = decoder.flush()
    return (len(text), len(tokens)) if left and text[characters:] == left else kept
