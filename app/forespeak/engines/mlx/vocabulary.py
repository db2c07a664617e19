"""The tokens of an MLX folder: their bytes, and the tokenizer that mlx-lm loads for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from forespeak.errors import UserFacingError

_ENDS_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<|END_OF_TURN_TOKEN|>",
)
"""Control tokens that end a reply whatever the model's settings list: many name the end of the text alone."""


class MlxVocabulary:
    """Token ids, their bytes, and the tokenizer of mlx-lm's `wrapper`.

    `size` is the length of the model's rows of scores, which may be more than the tokenizer knows. Raises
    UserFacingError for a tokenizer whose tokens have no bytes that we know of.
    """

    def __init__(self, wrapper: Any, size: int) -> None:  # noqa: ANN401 -- a class of mlx-lm
        tokenizer = wrapper._tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise _unknown_kind("It is not of the Hugging Face tokenizers library.")
        # A folder may bring both from training: a long prompt would lose its end, a short one be filled up.
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self.size = size
        self.bos: int = _id(tokenizer.bos_token_id)
        self.eos: int = _id(tokenizer.eos_token_id)
        self.adds_bos: bool = self.bos >= 0 and list(tokenizer.encode("a"))[:1] == [self.bos]
        self.suppressed: tuple[int, ...] = ()
        self._names = [""] * size
        for name, token in backend.get_vocab(with_added_tokens=True).items():
            if token < size:
                self._names[token] = name
        added = {token: entry for token, entry in backend.get_added_tokens_decoder().items() if token < size}
        self._pieces = list(_pieces(self._names, json.loads(backend.to_str())))
        for token, entry in added.items():
            self._names[token] = entry.content
            self._pieces[token] = b"" if entry.special else entry.content.encode()
        turns = {token for token, entry in added.items() if entry.content in _ENDS_OF_TURN}
        self._ends = frozenset({token for token in wrapper.eos_token_ids if 0 <= token < size} | turns)

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def ends_generation(self, token: int) -> bool:
        return token in self._ends

    def text(self, token: int) -> str:
        """The token's name in the vocabulary, control tokens included; empty for none (-1)."""
        return self._names[token] if 0 <= token < self.size else ""

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text in which control tokens are written out. No BOS is added.

        Raises UserFacingError if the model has no place for one of them: MLX would crash.
        """
        tokens: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        if tokens and max(tokens) >= self.size:
            raise UserFacingError(
                "The model cannot read this text.",
                f"Its tokenizer knows a token {max(tokens)}, and its weights only {self.size:,} tokens.",
                "The folder's files do not belong together: download it again, or choose another model.",
            )
        return tokens


def _id(token: int | None) -> int:
    return -1 if token is None else token


def _pieces(names: Iterable[str], tokenizer: dict[str, Any]) -> Iterator[bytes]:
    """The bytes of each token of a tokenizer.json, added tokens aside."""
    steps = {part.get("type") for name in ("pre_tokenizer", "decoder") for part in _parts(tokenizer.get(name))}
    model = tokenizer["model"]
    if "ByteLevel" in steps:
        letters = _byte_letters()
        for name in names:
            known = all(letter in letters for letter in name)
            yield bytes(letters[letter] for letter in name) if known else name.encode()
    elif model.get("byte_fallback") or model.get("type") == "Unigram" or "Metaspace" in steps:
        for name in names:
            is_byte = len(name) == 6 and name.startswith("<0x") and name.endswith(">")
            yield bytes.fromhex(name[3:5]) if is_byte else name.replace("▁", " ").encode()
    else:
        raise _unknown_kind(f"It is called {model.get('type')!r}.")


def _parts(step: object) -> Iterator[dict[str, Any]]:
    """The steps that a step of a tokenizer consists of, itself included."""
    if isinstance(step, dict):
        yield step
        for name in ("pretokenizers", "decoders"):
            for part in step.get(name) or ():
                yield from _parts(part)


def _byte_letters() -> dict[str, int]:
    """How GPT-2's tokenizer writes bytes (openai/gpt-2, encoder.py, `bytes_to_unicode`)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


def _unknown_kind(why: str) -> UserFacingError:
    return UserFacingError(
        "The model's tokenizer is of a kind that this app does not know.", why, "Choose another model."
    )
