"""Counts, ages, speeds and times in words, as lists of models and downloads show them."""

from __future__ import annotations

from datetime import UTC, datetime

from PySide6.QtCore import QCoreApplication

from forespeak.models.sizes import size_words

_LARGE = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))


def _tr(words: str) -> str:
    return QCoreApplication.translate("HubWords", words)


def count_words(count: int) -> str:
    """`980`, `12.4k`, `3.1M`: as many digits as one compares at a glance."""
    for number, (size, unit) in enumerate(_LARGE):
        if count >= size:
            value = count / size
            if value >= 999.5 and number:
                return f"1{_LARGE[number - 1][1]}"
            return f"{value:.0f}{unit}" if value >= 99.95 else f"{value:.1f}".removesuffix(".0") + unit
    return str(count)


def parameter_words(count: int) -> str:
    """A number of weights: `135M`, `7.6B`, `141B`."""
    return count_words(count)


def age_words(when: datetime, now: datetime | None = None) -> str:
    """How long ago something happened, in the largest unit that fits."""
    seconds = ((now or datetime.now(UTC)) - when).total_seconds()
    days = int(seconds // 86_400)
    if days < 1:
        return _tr("today")
    if days == 1:
        return _tr("yesterday")
    if days < 31:
        return _tr("{0} days ago").format(days)
    if days < 365:
        months = max(1, round(days / 30.44))
        return _tr("a month ago") if months == 1 else _tr("{0} months ago").format(months)
    years = days // 365
    return _tr("a year ago") if years == 1 else _tr("{0} years ago").format(years)


def speed_words(bytes_per_second: float) -> str:
    """`12.4 MB/s`"""
    return f"{size_words(round(bytes_per_second))}/s"


def left_words(seconds: float) -> str:
    """How long something still takes, no finer than such a guess is worth."""
    if seconds < 10:
        return _tr("a few seconds left")
    if seconds < 57.5:
        return _tr("{0} s left").format(5 * round(seconds / 5))
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return _tr("{0} min left").format(minutes)
    hours, rest = divmod(minutes, 60)
    if hours >= 48:
        return _tr("{0} days left").format(round(hours / 24))
    return _tr("{0} h {1} min left").format(hours, rest) if hours < 10 and rest else _tr("{0} h left").format(hours)
