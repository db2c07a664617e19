"""Counts, ages, speeds and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forespeak.ui.hub_words import age_words, count_words, left_words, parameter_words, speed_words

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (12_440, "12.4k"),
        (99_960, "100k"),
        (123_456, "123k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_250_000, "1.2M"),
        (3_000_000_000, "3B"),
    ],
)
def test_counts(count: int, words: str) -> None:
    assert count_words(count) == words


def test_parameters() -> None:
    assert parameter_words(135_000_000) == "135M"
    assert parameter_words(7_620_000_000) == "7.6B"


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (-1, "today"),
        (0, "today"),
        (1, "yesterday"),
        (30, "30 days ago"),
        (31, "a month ago"),
        (364, "12 months ago"),
        (365, "a year ago"),
        (800, "2 years ago"),
    ],
)
def test_ages(days: int, words: str) -> None:
    assert age_words(NOW - timedelta(days=days), NOW) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "a few seconds left"),
        (42, "40 s left"),
        (57, "55 s left"),
        (59, "1 min left"),
        (126, "2 min left"),
        (3599, "1 h left"),
        (11_700, "3 h 15 min left"),
        (60_000, "16 h left"),
        (400_000, "5 days left"),
    ],
)
def test_times_left(seconds: float, words: str) -> None:
    assert left_words(seconds) == words


def test_speeds() -> None:
    assert speed_words(21_437_000.4) == "21.4 MB/s"
    assert speed_words(0.2) == "0 bytes/s"
