"""High scores found in columns against those found by looking at everything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from forespeak.speculation.peaks import Peaks

SIZES = [1, 2, 31, 4095, 4096, 4127, 8192, 50_257]
"""Too short to fold, folded evenly, folded with a rest."""


def rows(size: int) -> dict[str, NDArray[np.float32]]:
    randomness = np.random.default_rng(size)
    heap = randomness.normal(0.0, 2.0, size).astype(np.float32)
    peaked = heap.copy()
    peaked[randomness.integers(0, size, 40)] += 15.0
    holes = peaked.copy()
    holes[randomness.random(size) < 0.9] = -np.inf
    alone = np.full(size, -np.inf, dtype=np.float32)
    alone[-1] = -3.0
    return {
        "heap": heap,
        "peaked": peaked,
        "whole": np.round(peaked),
        "level": np.zeros(size, dtype=np.float32),
        "holes": holes,
        "alone": alone,
        "falling": np.linspace(9.0, -9.0, size, dtype=np.float32),
        "view": np.stack([heap, peaked, heap])[1, :],
    }


@pytest.mark.parametrize("size", SIZES)
def test_nothing_high_is_missed(size: int) -> None:
    for name, row in rows(size).items():
        peaks = Peaks(row)
        assert peaks.best == row.max(), name
        for height in (-math.inf, *(peaks.best - nats for nats in (0.0, 0.1, 3.0, 12.0, 30.0)), peaks.best + 1.0):
            ids, scores = peaks.reaching(height)
            np.testing.assert_array_equal(ids, np.flatnonzero(row >= height), name)
            np.testing.assert_array_equal(scores, row[ids], name)


@pytest.mark.parametrize("size", SIZES)
def test_columns_hold_everything_high_and_say_where_it_stands(size: int) -> None:
    for name, row in rows(size).items():
        peaks = Peaks(row)
        for height in (-math.inf, *(peaks.best - nats for nats in (0.0, 0.1, 3.0, 12.0, 30.0))):
            places, scores, width = peaks.columns_reaching(height)
            ids = (np.arange(scores.shape[0])[:, np.newaxis] * width + places).ravel()
            assert np.isin(np.flatnonzero(row >= height), ids).all(), name
            np.testing.assert_array_equal(scores.ravel(), row[ids], name)
            assert (np.diff(ids) > 0).all(), name
            assert not np.shares_memory(scores, row), name


@pytest.mark.parametrize("size", SIZES)
def test_as_many_as_were_asked_for_reach_the_height(size: int) -> None:
    for name, row in rows(size).items():
        for count in (1, 2, 40, 1_000, size, size + 1):
            height = Peaks(row).height_of(count)
            if count > size:
                assert height == -math.inf
            assert height <= np.sort(row)[-min(count, size)], name


def test_the_height_of_a_few_is_not_far_below_theirs() -> None:
    row = rows(50_257)["peaked"]
    ids, _ = Peaks(row).reaching(Peaks(row).height_of(40))
    assert 40 <= ids.size < 60
