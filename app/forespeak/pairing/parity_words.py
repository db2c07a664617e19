"""What a parity check found, in words."""

from __future__ import annotations

from datetime import datetime

from forespeak.engines.parity_result import DifferenceKind, FirstDifference, ParityResult, TokenScores


def headline(result: ParityResult) -> str:
    """One line: how many replies were the same words."""
    done = len(result.cases)
    words = f"Same words with and without speculation: {result.equal} of {done}"
    if not result.complete:
        words += f", stopped before the other {result.planned - done}"
    return f"{words}."


def remark(result: ParityResult) -> str:
    """What else must be known to judge the headline; empty if nothing."""
    if not result.cases:
        return "No reply was finished, so nothing is known."
    if result.tested == 0:
        return "No drafted token was tested, so this shows nothing about drafts."
    parts = []
    if result.faults:
        parts.append(f"{_replies(result.faults)} differ{'s' if result.faults == 1 else ''}, which is a fault.")
    if result.ties:
        parts.append(f"{_replies(result.ties)} differ{'s' if result.ties == 1 else ''} by a numeric tie, as shown.")
    return " ".join(parts)


def explanation(difference: FirstDifference) -> str:
    """Why two replies part, in a few sentences."""
    where = f"At token {difference.place + 1} the plain reply has {_quoted(difference.plain_text)}"
    way = "with as many drafted tokens as pay" if difference.way == "auto" else f"with drafts of {difference.way}"
    opening = f"{where}, the one {way} has {_quoted(difference.drafted_text)}."
    alone, batched = difference.alone, difference.batched
    if alone == batched == TokenScores(None, None):
        return f"{opening} One of the two ended where nobody had chosen the end."
    lines = [
        opening,
        f"Read token by token, {_scores(alone)}; read in the batches of the drafts, {_scores(batched)}.",
    ]
    moved = f"Evaluating several tokens at once moved a score by {_number(difference.moved)} here"
    if difference.kind is DifferenceKind.TIE:
        lines.append(
            f"{moved}, and that alone turns the choice: a numeric tie. "
            f"This target's scores may move by {_number(difference.limit)}."
        )
    elif difference.moved > difference.limit:
        lines.append(f"{moved}, more than the {_number(difference.limit)} that it may. That is a fault.")
    else:
        lines.append(f"{moved}, which does not explain the difference. That is a fault.")
    return " ".join(lines)


def day(result: ParityResult) -> str:
    """The day of the check: 29 November 2026."""
    when = datetime.fromisoformat(result.checked_at)
    return f"{when.day} {when:%B} {when.year}"


def _scores(scores: TokenScores) -> str:
    named = f"they score {_number(scores.plain)} and {_number(scores.drafted)}"
    if scores.distance is None:
        return named
    ahead = "first" if scores.distance >= 0.0 else "second"
    return f"{named}, the {ahead} ahead by {_number(abs(scores.distance))}"


def _number(value: float | None) -> str:
    if value is None:
        return "nothing (left out by the filters)"
    words = f"{value:.2g}" if 0.0 < abs(value) < 0.01 else f"{value:.4f}"
    return words.replace("-", "\N{MINUS SIGN}", 1) if value < 0.0 else words


def _quoted(text: str) -> str:
    if not text:
        return "nothing"
    return "“" + text.replace("\n", "⏎").replace("\t", "⇥") + "”"


def _replies(count: int) -> str:
    return "1 reply" if count == 1 else f"{count} replies"
