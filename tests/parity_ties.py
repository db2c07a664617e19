"""A difference of two replies that is a tie, for the tests of what is said and shown of it."""

from __future__ import annotations

from forespeak.engines.parity_result import DifferenceKind, FirstDifference, TokenScores

TIE = FirstDifference(
    "auto",
    6,
    " the",
    " a",
    TokenScores(-0.6931, -0.69335),
    TokenScores(-0.6934, -0.69315),
    3e-4,
    1e-3,
    DifferenceKind.TIE,
)
