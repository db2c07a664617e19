"""The tokens of a model in an MLX folder, from its tokenizer.json, as the same tables that a GGUF file gives.

The format is that of the Hugging Face tokenizers library. What a table of a GGUF file would hold is taken from it as
llama.cpp's converter does: added tokens are control tokens if they are special, and ids that nothing names are unused.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from forespeak.models.gguf_values import GgufError, Problem, damaged, unreadable
from forespeak.models.vocabulary import TokenType, Vocabulary, end_of_turn

TOKENIZER, SETTINGS, CONFIG = "tokenizer.json", "tokenizer_config.json", "config.json"
_MOST_BYTES = 128 << 20
_MOST_TOKENS = 4 << 20

Json = dict[str, Any]


def read_mlx_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary of an MLX folder. Raises GgufError if it has none, or one that contradicts itself."""
    if not (folder / TOKENIZER).is_file():
        raise GgufError(
            Problem.NO_VOCABULARY,
            f"“{folder.name}” holds no vocabulary.",
            f"It has no {TOKENIZER}, which says what tokens the model reads and writes.",
            "Download the whole folder again, or choose another model.",
        )
    tokenizer, settings, config = (_read(folder / name) for name in (TOKENIZER, SETTINGS, CONFIG))
    try:
        return _vocabulary(folder, tokenizer, settings, config)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise damaged(folder / TOKENIZER, f"It does not describe a tokenizer: {error}.") from error


def cached_mlx_vocabulary(folder: Path) -> Vocabulary:
    """Like read_mlx_vocabulary, but files that have not changed since (number, size, time) are not read again."""
    return _cached_vocabulary(_state(folder))


def cached_mlx_fingerprint(folder: Path) -> str | None:
    """A name for the vocabulary of a folder, equal where its tokenizer's files are; None if it has none."""
    return _cached_fingerprint(_state(folder))


_State = tuple[Path, tuple[tuple[int, int, int], ...]]


def _state(folder: Path) -> _State:
    found = []
    for name in (TOKENIZER, SETTINGS, CONFIG):
        try:
            about = (folder / name).stat()
            found.append((about.st_ino, about.st_size, about.st_mtime_ns))
        except OSError:
            found.append((-1, -1, -1))
    return folder.absolute(), tuple(found)


@lru_cache(maxsize=4)
def _cached_vocabulary(state: _State) -> Vocabulary:
    return read_mlx_vocabulary(state[0])


@lru_cache(maxsize=512)
def _cached_fingerprint(state: _State) -> str | None:
    folder, files = state
    if any(size > _MOST_BYTES for _, size, _ in files):
        return None
    digest = blake2b(digest_size=16)
    try:
        digest.update((folder / TOKENIZER).read_bytes())
        for name in (SETTINGS, CONFIG):
            digest.update(f"\n{name}\n".encode())
            if (folder / name).is_file():
                digest.update((folder / name).read_bytes())
    except OSError:
        return None
    return digest.hexdigest()


def _read(path: Path) -> Json:
    """A file's JSON object; empty for one that is not there, as only the tokenizer must be."""
    try:
        if not path.is_file():
            return {}
        if path.stat().st_size > _MOST_BYTES:
            raise damaged(path, "It is far too long for what it should hold.")
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"It is no JSON text: {error}.") from error
    if not isinstance(found, dict):
        raise damaged(path, "It holds no JSON object.")
    return found


def _vocabulary(folder: Path, tokenizer: Json, settings: Json, config: Json) -> Vocabulary:
    model: Json = tokenizer["model"]
    kind = _kind(tokenizer)
    if kind is None:
        raise GgufError(
            Problem.UNSUPPORTED,
            f"The tokenizer of “{folder.name}” is of a kind that this app does not know.",
            f"It is called {model.get('type')!r}.",
            "Choose another model.",
        )
    by_id = {token: (text, TokenType.NORMAL) for text, token in _listed(model)}
    if kind == "llama":
        by_id = {
            token: (text, TokenType.BYTE if len(text) == 6 and text.startswith("<0x") else type_)
            for token, (text, type_) in by_id.items()
        }
    ids = {text: token for token, (text, _) in by_id.items()}
    unknown = _unknown(model, ids)
    if unknown is not None:
        by_id[unknown] = (by_id[unknown][0], TokenType.UNKNOWN)
    for added in tokenizer.get("added_tokens") or ():
        token, text = int(added["id"]), str(added["content"])
        type_ = TokenType.CONTROL if added.get("special") else TokenType.USER_DEFINED
        by_id[token] = (text, TokenType.UNKNOWN if token == unknown else type_)
        ids[text] = token
    size = max([*by_id, _number(config, "vocab_size", 0) - 1], default=-1) + 1
    if not 0 < size <= _MOST_TOKENS or min(by_id, default=-1) < 0:
        raise ValueError(f"{size:,} tokens")
    missing = TokenType.UNUSED
    table = [by_id.get(token) or (f"[PAD{token}]", missing) for token in range(size)]
    tokens = tuple(text.encode("utf-8", "replace") for text, _ in table)
    bos = _special(settings, config, ids, "bos")
    eos = _special(settings, config, ids, "eos")
    begins, ends = _surroundings(tokenizer.get("post_processor"), ids)
    flags = [settings.get(f"add_{name}_token") for name in ("bos", "eos")]
    return Vocabulary(
        model=kind,
        pre=_digest([tokenizer.get("normalizer"), tokenizer.get("pre_tokenizer")]),
        tokens=tokens,
        types=np.array([type_ for _, type_ in table], np.int32),
        scores=None,
        merges=None,
        merges_digest=blake2b(b"".join(_packed(merge) for merge in _merges(model)), digest_size=16).digest(),
        bos=bos,
        eos=eos,
        eot=end_of_turn(tokens),
        unknown=unknown,
        padding=_special(settings, config, ids, "pad"),
        add_bos=flags[0] if isinstance(flags[0], bool) else bos is not None and bos == begins,
        add_eos=flags[1] if isinstance(flags[1], bool) else eos is not None and eos == ends,
    )


def _kind(tokenizer: Json) -> str | None:
    """The kind of a tokenizer by the names that GGUF files use."""
    model = tokenizer["model"]
    if model.get("type") == "WordPiece":
        return "bert"
    if model.get("type") == "Unigram":
        return "t5"
    if model.get("type") not in {"BPE", None} or "merges" not in model:
        return None
    parts = [part.get("type") for name in ("pre_tokenizer", "decoder") for part in _parts(tokenizer.get(name))]
    if "ByteLevel" in parts:
        return "gpt2"
    return "llama" if model.get("byte_fallback") else None


def _parts(step: object) -> Iterator[Json]:
    """The steps that a step of a tokenizer consists of, itself included."""
    if isinstance(step, dict):
        yield step
        for name in ("pretokenizers", "decoders", "normalizers", "processors"):
            for part in step.get(name) or ():
                yield from _parts(part)


def _listed(model: Json) -> Iterator[tuple[str, int]]:
    """(text, id) of the model's own tokens: a mapping, or for Unigram pairs of a text and its score."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        yield from ((text, int(token)) for text, token in vocabulary.items())
    else:
        yield from ((str(pair[0]), token) for token, pair in enumerate(vocabulary))


def _merges(model: Json) -> Iterator[bytes]:
    """Pairs as GGUF files write them: older files have texts with a space between, newer ones lists of two."""
    for merge in model.get("merges") or ():
        yield (merge if isinstance(merge, str) else " ".join(merge)).encode()


def _packed(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _unknown(model: Json, ids: Mapping[str, int]) -> int | None:
    number = model.get("unk_id")
    return int(number) if isinstance(number, int) else ids.get(model.get("unk_token") or "")


def _special(settings: Json, config: Json, ids: Mapping[str, int], name: str) -> int | None:
    """A special token's id: by its text in the tokenizer's settings, else by its number in the model's."""
    named = settings.get(f"{name}_token")
    if isinstance(named, dict):
        named = named.get("content")
    if isinstance(named, str) and named in ids:
        return ids[named]
    number = _number(config, f"{name}_token_id", -1)
    return number if 0 <= number < len(ids) else None


def _number(config: Json, name: str, otherwise: int) -> int:
    """A whole number of the model's settings; models that also see keep those of their text part apart."""
    for place in (config, config.get("text_config")):
        value = place.get(name) if isinstance(place, dict) else None
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return otherwise


def _surroundings(processor: object, ids: Mapping[str, int]) -> tuple[int | None, int | None]:
    """The ids of what is put before and behind every text, None for nothing."""
    begins = ends = None
    for part in _parts(processor):
        if part.get("type") != "TemplateProcessing":
            continue
        names = [each["SpecialToken"]["id"] if "SpecialToken" in each else None for each in part.get("single") or ()]
        if names and names[0] is not None:
            begins = ids.get(names[0])
        if len(names) > 1 and names[-1] is not None:
            ends = ids.get(names[-1])
    return begins, ends


def _digest(value: object) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()
