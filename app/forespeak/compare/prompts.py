"""The suite of prompts that comes with the program, by category."""

from __future__ import annotations

import tomllib

from forespeak.compare.plan import Prompt
from forespeak.resource_files import resource_path

CATEGORIES = ("code", "prose", "rewrite", "json", "list", "translation")
"""What is measured unless something else is asked for: from what is hard to guess to what is nearly a copy."""

MORE_CATEGORIES = ("chat", "math", "cjk")


def suite() -> tuple[Prompt, ...]:
    """All prompts. A category is a file `<category>.toml` with a table `[name]` and its `text` per prompt."""
    return tuple(
        Prompt(category, name, table["text"].strip())
        for category in (*CATEGORIES, *MORE_CATEGORIES)
        for name, table in tomllib.loads(
            resource_path("prompts", f"{category}.toml").read_text(encoding="utf-8")
        ).items()
    )
