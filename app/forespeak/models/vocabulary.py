"""The tokens of a model as its GGUF file lists them, with the defaults that llama.cpp fills in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forespeak.models.fingerprint import vocabulary_fingerprint
from forespeak.models.gguf import GgufError, GgufHeader, LazyArray, Problem, read_header
from forespeak.models.gguf_values import damaged


class TokenType(IntEnum):
    """What a token is, by the number in the file."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A tokenizer's tables. `types` and `scores` have the shape (number of tokens,).

    `model` is the kind of tokenizer ("gpt2" is byte-level BPE, "llama" SentencePiece), `pre` the rule by which it cuts
    text first. `merges` stays in the file; `merges_digest` is equal where the merges are. The special ids and the add
    flags are those that llama.cpp would use, None where there is none.
    """

    model: str
    pre: str
    tokens: tuple[bytes, ...]
    types: NDArray[np.int32]
    scores: NDArray[np.float32] | None
    merges: LazyArray | None
    merges_digest: bytes
    bos: int | None
    eos: int | None
    eot: int | None
    unknown: int | None
    padding: int | None
    add_bos: bool
    add_eos: bool

    @property
    def size(self) -> int:
        return len(self.tokens)

    def type_of(self, token: int) -> TokenType:
        number = int(self.types[token])
        return TokenType(number) if 0 <= number <= TokenType.BYTE else TokenType.UNDEFINED

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for in a text; for a control token, its name."""
        text = self.tokens[token]
        kind = self.type_of(token)
        if kind is TokenType.BYTE and len(text) == 6 and text.startswith(b"<0x"):
            try:
                return bytes([int(text[3:5], 16)])
            except ValueError:
                return text
        if kind is not TokenType.NORMAL:
            return text
        if self.model == "gpt2":
            return _from_byte_level(text)
        return text.replace("▁".encode(), b" ")


# llama.cpp, src/llama-vocab.cpp: what holds where the file says nothing.
_BEGINS_WITH_BOS = frozenset(
    {
        *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"),
        *("tekken", "chameleon"),
    }
)
_DEFAULT_IDS: dict[str, dict[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0},
    "gpt2": {"bos": 11, "eos": 11},
    "bert": {"bos": 101, "unknown": 100, "padding": 0},
    "t5": {"eos": 1, "unknown": 2, "padding": 0},
    "plamo2": {"bos": 1, "eos": 2, "unknown": 0, "padding": 3},
}
_END_OF_TURN = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>"),
    *("[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"),
)
_MOST_TOKENS = 4 << 20


def read_vocabulary(header: GgufHeader) -> Vocabulary:
    """The vocabulary of a file. Raises GgufError if it has none, or one that contradicts itself."""
    path = header.path
    model = header.text("tokenizer.ggml.model")
    listed = header.metadata.get("tokenizer.ggml.tokens")
    if model is None or not isinstance(listed, LazyArray) or listed.count == 0:
        raise GgufError(
            Problem.NO_VOCABULARY,
            f"“{path.name}” holds no vocabulary.",
            "It does not say which tokens the model reads and writes.",
            "Choose another file.",
        )
    if listed.count > _MOST_TOKENS:
        raise damaged(path, f"It claims {listed.count:,} tokens.")
    # llama.cpp gives names to empty tokens, and aborts where two tokens are the same.
    tokens = tuple(text or b"[EMPTY_%d]" % index for index, text in enumerate(listed.strings()))
    if len(set(tokens)) != len(tokens):
        raise damaged(path, "Two of its tokens are the same.")
    kinds = _numbers(header, "token_type", len(tokens), "i")
    types = np.full(len(tokens), TokenType.NORMAL, np.int32) if kinds is None else kinds.astype(np.int32)
    scores = _numbers(header, "scores", len(tokens), "if")
    merges = header.metadata.get("tokenizer.ggml.merges")
    merges = merges if isinstance(merges, LazyArray) and merges.holds_text else None
    digest = blake2b(merges.raw() if merges is not None else b"", digest_size=16).digest()
    pre = header.text("tokenizer.ggml.pre") or ""

    def special(name: str, key: str) -> int | None:
        for candidate in (header.integer(f"tokenizer.ggml.{key}"), _DEFAULT_IDS.get(model, {}).get(name)):
            if candidate is not None and 0 <= candidate < len(tokens):
                return candidate
        return None

    add_bos, add_eos = (
        default if (flag := header.flag(f"tokenizer.ggml.{key}")) is None else flag
        for key, default in (
            ("add_bos_token", model in {"llama", "bert"} or (model == "gpt2" and pre in _BEGINS_WITH_BOS)),
            ("add_eos_token", model == "t5"),
        )
    )
    eot = special("eot", "eot_token_id")
    return Vocabulary(
        model=model,
        pre=pre,
        tokens=tokens,
        types=types,
        scores=None if scores is None else scores.astype(np.float32),
        merges=merges,
        merges_digest=digest,
        bos=special("bos", "bos_token_id"),
        eos=special("eos", "eos_token_id"),
        eot=end_of_turn(tokens) if eot is None else eot,
        unknown=special("unknown", "unknown_token_id"),
        padding=special("padding", "padding_token_id"),
        add_bos=add_bos or model == "gemma4",  # as llama.cpp does, whatever the file says
        add_eos=add_eos,
    )


def _numbers(header: GgufHeader, name: str, count: int, kinds: str) -> NDArray[np.generic] | None:
    key = f"tokenizer.ggml.{name}"
    array = header.metadata.get(key)
    if not isinstance(array, LazyArray):
        return None
    if array.count < count:
        raise damaged(header.path, f"Its list “{key}” has {array.count:,} entries for {count:,} tokens.")
    numbers = array.numbers()[:count]
    if numbers.dtype.kind not in kinds or numbers.dtype.itemsize != 4:
        raise damaged(header.path, f"Its list “{key}” holds numbers of the wrong kind.")
    return numbers


def end_of_turn(tokens: tuple[bytes, ...]) -> int | None:
    """The token that ends a turn by its usual names, where nothing else says which one does."""
    for name in _END_OF_TURN:
        try:
            return tokens.index(name.encode())
        except ValueError:
            continue
    return None


@lru_cache(maxsize=1)
def _byte_level() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for characters from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + index): byte for index, byte in enumerate(others)}


def _from_byte_level(text: bytes) -> bytes:
    try:
        return bytes(_byte_level()[character] for character in text.decode("utf-8"))
    except (KeyError, UnicodeDecodeError):
        return text


def cached_header(path: Path) -> GgufHeader:
    """Like read_header, but a file that has not changed since (number, size, time) is not read again."""
    return _header(_state(path))


def cached_vocabulary(path: Path) -> Vocabulary:
    """Like read_vocabulary, but a file that has not changed since (number, size, time) is not read again."""
    return _vocabulary(_state(path))


def cached_fingerprint(path: Path) -> str | None:
    """Like vocabulary_fingerprint, but a file that has not changed since (number, size, time) is not read again."""
    return _fingerprint(_state(path))


_State = tuple[Path, int, int, int]


def _state(path: Path) -> _State:
    try:
        about = path.stat()
    except (OSError, ValueError):
        return path, -1, -1, -1  # read_header will say what is wrong
    return path.absolute(), about.st_ino, about.st_size, about.st_mtime_ns


@lru_cache(maxsize=64)
def _header(state: _State) -> GgufHeader:
    return read_header(state[0])


@lru_cache(maxsize=10)
def _vocabulary(state: _State) -> Vocabulary:
    return read_vocabulary(_header(state))


@lru_cache(maxsize=512)
def _fingerprint(state: _State) -> str | None:
    return vocabulary_fingerprint(_header(state))
