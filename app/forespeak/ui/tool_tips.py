"""Tool tips with words that are not ours: names, paths, titles."""

from __future__ import annotations

from html import escape


def plain_tip(words: str) -> str:
    """Words that may look like markup, for a tool tip, which would take them for it."""
    return f"<qt>{escape(words).replace(chr(10), '<br>')}</qt>" if words else ""
