"""Counts of bytes and of parameters in words."""

from __future__ import annotations

_UNITS = ("kB", "MB", "GB", "TB")


def size_words(count: int) -> str:
    """A byte count for people, in decimal units and three significant digits: `540 MB`, `98.4 MB`, `12 bytes`."""
    if count < 1000:
        return "1 byte" if count == 1 else f"{count} bytes"
    power = 1
    while power < len(_UNITS) and count >= 999.5 * 1000**power:
        power += 1
    value = count / 1000**power
    return f"{value:.3g} {_UNITS[power - 1]}" if value < 999.5 else f"{value:,.0f} {_UNITS[-1]}"


def compared_words(one: int, other: int) -> tuple[str, str]:
    """Two byte counts in words, exact to the byte where rounding would hide their difference."""
    a, b = size_words(one), size_words(other)
    return (f"{one:,} bytes", f"{other:,} bytes") if a == b and one != other else (a, b)


def parameter_words(count: int) -> str:
    """A number of parameters in three significant digits: `135M`, `7.62B`."""
    for size, unit in ((10**9, "B"), (10**6, "M")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)
