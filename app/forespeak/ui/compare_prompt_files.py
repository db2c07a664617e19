"""Prompts out of a file of the user's: a text, or JSON Lines with one prompt each."""

from __future__ import annotations

import json
from pathlib import Path

from forespeak.compare.plan import Prompt
from forespeak.errors import UserFacingError

OWN = "own"
"""The category of prompts that come without one."""
_MOST_BYTES = 2_000_000
_REMEDY = "Choose a text file, or JSON Lines with a text in each line."


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """All of them are private. In `.jsonl`, a line is a string, or an object with `text` and perhaps `category`.

    Raises UserFacingError.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserFacingError(f"“{path.name}” is too large for prompts.", "It has over 2 MB.", _REMEDY)
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserFacingError(f"“{path.name}” cannot be read.", "It is not UTF-8 text.", _REMEDY) from error
    except OSError as error:
        raise UserFacingError(f"“{path.name}” cannot be read.", f"{error.strerror or error}.", _REMEDY) from error
    if path.suffix.lower() != ".jsonl":
        found = [(OWN, path.stem, text.strip())]
    else:
        found = [_from_line(line, number, path) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    prompts = tuple(Prompt(category, name, words, private=True) for category, name, words in found if words)
    if not prompts:
        raise UserFacingError(f"“{path.name}” holds no prompt.", "It is empty.", _REMEDY)
    return prompts


def _from_line(line: str, number: int, path: Path) -> tuple[str, str, str]:
    try:
        value = json.loads(line)
    except ValueError as error:
        what = f"Line {number} of “{path.name}” is not JSON."
        raise UserFacingError(what, str(error), _REMEDY) from error
    category = OWN
    if isinstance(value, dict):
        category, value = str(value.get("category") or OWN), value.get("text")
    if not isinstance(value, str):
        raise UserFacingError(f"Line {number} of “{path.name}” has no text.", "Its “text” is missing.", _REMEDY)
    return category, f"line {number}", value.strip()
