from __future__ import annotations

import pytest

from forespeak.models.looks import looks_like


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"PK\x03\x04....", "zip"),
        (b"<!DOCTYPE html><html>", "web page"),
        ("\ufeff<html>".encode(), "web page"),
        (b'{"error":"Repository not found"}', "JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        (b"Dear model,\nhow are you?", "text file"),
        ("模型".encode()[:5], "text file"),
        (b"tjgg\x03\0\0\0", "older than GGUF"),
        (b"\0" * 512, "zeros"),
        (b'\x40\x01\0\0\0\0\0\0{"__metadata__"', "safetensors"),
        (b"\xff\xfe\x00\x01\x02", "unknown kind"),
    ],
)
def test_looks_like(start: bytes, words: str) -> None:
    assert words in looks_like(start)
