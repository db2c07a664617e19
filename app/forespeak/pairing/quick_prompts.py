"""What a quick test of a pair asks: three short prompts for each kind of work."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from forespeak.resource_files import resource_path

KINDS_OF_WORK = ("code", "prose", "documents", "chat", "json", "translation")
"""By the names that predictions use for kinds of text, where they have one."""


@dataclass(frozen=True, slots=True)
class QuickPrompt:
    """`name` is unique within its kind."""

    kind: str
    name: str
    text: str


@cache
def _all() -> dict[str, tuple[QuickPrompt, ...]]:
    tables = tomllib.loads(resource_path("prompts", "quick.toml").read_text(encoding="utf-8"))
    return {
        kind: tuple(QuickPrompt(kind, name, text.strip()) for name, text in tables[kind].items())
        for kind in KINDS_OF_WORK
    }


def quick_prompts(kind: str) -> tuple[QuickPrompt, ...]:
    """The three prompts of a kind of work. Raises KeyError for a kind that there is not."""
    return _all()[kind]
