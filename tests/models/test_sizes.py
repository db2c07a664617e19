from __future__ import annotations

import pytest

from forespeak.models.sizes import compared_words, parameter_words, size_words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (98_362_432, "98.4 MB"),
        (539_845_696, "540 MB"),
        (999_600_000, "1 GB"),
        (4_200_000_000_000_000, "4,200 TB"),
    ],
)
def test_size_words(count: int, words: str) -> None:
    assert size_words(count) == words


def test_a_difference_is_never_rounded_away() -> None:
    assert compared_words(98_362_432, 98_362_431) == ("98,362,432 bytes", "98,362,431 bytes")
    assert compared_words(98_362_432, 12) == ("98.4 MB", "12 bytes")
    assert compared_words(12, 12) == ("12 bytes", "12 bytes")


@pytest.mark.parametrize(
    ("count", "words"), [(512, "512"), (134_515_008, "135M"), (7_615_616_512, "7.62B"), (1_000_000_000, "1B")]
)
def test_parameter_words(count: int, words: str) -> None:
    assert parameter_words(count) == words
