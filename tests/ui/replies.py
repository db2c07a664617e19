"""Replies whose tokens a test spells out."""

from __future__ import annotations

from forespeak.speculation.trace import Alternative, DraftedToken, Origin, Source, Step, Token


def accepted(text: str, source: Source = Source.DRAFT_MODEL) -> Token:
    return Token(1, text, Origin.ACCEPTED, source, 0.9, 0.8)


def plain(text: str) -> Token:
    return Token(2, text, Origin.TARGET, None, 0.5)


def bonus(text: str) -> Token:
    return Token(3, text, Origin.BONUS, None, 0.7)


def corrected(text: str) -> Token:
    return Token(
        4, text, Origin.CORRECTED, None, 0.61, None, (Alternative(4, text, 0.61), Alternative(7, " third", 0.06))
    )


def step(index: int, *tokens: Token, rejected: tuple[str, ...] = ()) -> Step:
    lost = tuple(DraftedToken(50 + n, text, 0.27 if n == 0 else None, 0.74) for n, text in enumerate(rejected))
    return Step(index, tokens, lost, (), Source.DRAFT_MODEL, 0.002, 0.021, index)


def example() -> tuple[Step, ...]:
    """EXAMPLE_TEXT, with every origin among its tokens."""
    return (
        step(0, plain("Hello")),
        step(
            1, accepted(" big"), accepted(" 🍁", Source.PROMPT_LOOKUP), corrected(" **wor"), rejected=(" small", " one")
        ),
        step(2, accepted("ld**"), bonus(".\n\n")),
        step(3, plain("End"), plain("")),
    )


EXAMPLE_TEXT = "Hello big 🍁 **world**.\n\nEnd"
