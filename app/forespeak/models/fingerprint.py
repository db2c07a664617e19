"""What tells whether two files hold the same vocabulary, without reading its tokens one by one."""

from __future__ import annotations

from hashlib import blake2b

from forespeak.models.gguf import GgufHeader, LazyArray

_LISTS = ("tokens", "token_type", "merges")
_OTHERS = (
    *("model", "pre", "add_bos_token", "add_eos_token"),
    *("bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id", "padding_token_id"),
)


def vocabulary_fingerprint(header: GgufHeader) -> str | None:
    """A name for the vocabulary of a file, the same in every file that holds it; None for a file without one.

    Taken over all that a verdict looks at, as it stands in the file; scores and chat template are not part of it. Takes
    some 10 ms for the largest vocabularies. Raises GgufError if the file has changed or cannot be read.
    """
    listed = header.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(listed, LazyArray) or listed.count == 0:
        return None
    digest = blake2b(digest_size=16)
    for name in _LISTS:
        array = header.metadata.get(f"tokenizer.ggml.{name}")
        if isinstance(array, LazyArray):
            digest.update(f"{name} {array.element} {array.count} {array.length}\n".encode())
            digest.update(array.digest())
    for name in _OTHERS:
        digest.update(f"{name} {header.metadata.get(f'tokenizer.ggml.{name}')!r}\n".encode())
    return digest.hexdigest()
