"""What a file that is no model looks like, from its first bytes."""

from __future__ import annotations

_STARTS = (
    (b"PK\x03\x04", "a zip archive or a PyTorch checkpoint"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x80\x02", "a PyTorch checkpoint"),
    (b"version https://git-lfs", "a Git LFS pointer: a note of where the file is, not the file"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
_OLD_FORMATS = frozenset({b"ggml", b"lmgg", b"ggmf", b"fmgg", b"ggjt", b"tjgg", b"ggla", b"algg"})


def looks_like(start: bytes) -> str:
    """A noun phrase, such as `a web page`, for the first few hundred bytes of a file."""
    if start[:4] in _OLD_FORMATS:
        return "a model in a format older than GGUF"
    for magic, words in _STARTS:
        if start.startswith(magic):
            return words
    if not start.strip(b"\0"):
        return "zeros only, as an unfinished download leaves them"
    if len(start) > 8 and start[8:9] == b"{" and start[6:8] == b"\0\0":
        return "a safetensors file"
    text = _as_text(start)
    if text is None:
        return "binary data of an unknown kind"
    beginning = text.lstrip("\ufeff \t\r\n")
    if beginning.lower().startswith(("<!doctype html", "<html", "<?xml", "<head")):
        return "a web page, perhaps a log-in or error page that was saved in its place"
    if beginning.startswith(("{", "[")):
        return "a JSON text, perhaps an error message that was saved in its place"
    return "a text file"


def _as_text(start: bytes) -> str | None:
    # A character may be cut in two where the piece ends.
    for cut in range(min(4, len(start))):
        try:
            text = start[: len(start) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return text if all(character.isprintable() or character in "\t\r\n\f\ufeff" for character in text) else None
    return None
