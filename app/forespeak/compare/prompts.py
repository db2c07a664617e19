"""The prompts that come with the program, by category: our own texts."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from functools import cache

from forespeak.compare.plan import Prompt
from forespeak.resource_files import resource_path

CATEGORIES = ("code", "prose", "rewrite", "json", "list", "translation")
"""What `forespeak bench` measures unless something else is asked for: from hard to guess to nearly a copy."""

MORE_CATEGORIES = ("chat", "math", "cjk")

SUITES = (
    "coding",
    "humanities",
    "math",
    "multilingual",
    "qa",
    "rag",
    "reasoning",
    "roleplay",
    "stem",
    "summarization",
    "writing",
    "rewrite",
    "json",
)
"""What a comparison offers: kinds of work. Short and long answers, English and Traditional Chinese."""

ENGLISH, CHINESE = "en", "zh-Hant"
SHORT, LONG = "short", "long"


def suite() -> tuple[Prompt, ...]:
    """The prompts of `forespeak bench`, by category."""
    return tuple(prompt for category in (*CATEGORIES, *MORE_CATEGORIES) for prompt in _category(category))


def suite_prompts(
    suites: Iterable[str] = SUITES,
    *,
    languages: Collection[str] = (),
    answers: Collection[str] = (),
    each: int | None = None,
) -> tuple[Prompt, ...]:
    """The prompts of these SUITES, or of bench's categories; `languages` and `answers` choose among them if given.

    `each`: at most so many of a suite. Raises ValueError for a name that there is not.
    """
    found: list[Prompt] = []
    for name in dict.fromkeys(suites):
        if name not in {*SUITES, *CATEGORIES, *MORE_CATEGORIES}:
            raise ValueError(f"there is no suite {name!r}; there are {', '.join(SUITES)}")
        chosen = [
            prompt
            for prompt in _category(name)
            if (not languages or prompt.language in languages) and (not answers or prompt.answer in answers)
        ]
        found += chosen[:each]
    return tuple(found)


@cache
def _category(category: str) -> tuple[Prompt, ...]:
    """A file `<category>.toml` has a table `[name]` per prompt, with its `text`, and `language` and `answer`."""
    tables = tomllib.loads(resource_path("prompts", f"{category}.toml").read_text(encoding="utf-8"))
    return tuple(
        Prompt(category, name, table["text"].strip(), table.get("language", ENGLISH), table.get("answer", LONG))
        for name, table in tables.items()
    )
