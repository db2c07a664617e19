"""Text colours for code. Marks lie under the text, so only its colour changes."""

from __future__ import annotations

from collections.abc import Iterator

from forespeak.ui.rich_text import StyleRun

_LIMIT = 20_000
"""Characters: longer code stays plain rather than holding the window up."""


def load_lexers() -> None:
    """Import Pygments ahead of the first code block, and make the lexer that is wanted most: that takes 30 ms."""
    for _ in colour_code(" ", "python"):
        pass


def colour_code(code: str, language: str) -> Iterator[StyleRun]:
    """The coloured parts of `code`. Nothing for a language that is not known."""
    if not language or len(code) > _LIMIT:
        return
    # Pygments is loaded with the first code block: the window must be up before it.
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Name, Number, String
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return
    colours = (
        (Comment, "code_comment"),
        (String, "code_string"),
        (Number, "code_number"),
        (Keyword, "code_keyword"),
        (Name.Function, "code_name"),
        (Name.Class, "code_name"),
        (Name.Builtin, "code_name"),
        (Name.Decorator, "code_name"),
        (Name.Tag, "code_keyword"),
    )
    for start, kind, text in lexer.get_tokens_unprocessed(code):
        for group, colour in colours:
            if kind is group or kind[: len(group)] == group:
                yield StyleRun(start, len(text), colour=colour)
                break
