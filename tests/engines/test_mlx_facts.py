from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from multiprocessing.connection import Connection

import pytest

from forespeak.engines import mlx_facts
from forespeak.engines.mlx_facts import MlxFacts


def _abort(answer: Connection) -> None:
    os.abort()


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlx_facts, "_version", lambda name: "0.32" if name == "mlx" else None)
    found = mlx_facts.mlx_facts()
    assert found == MlxFacts("0.32", None)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "pip install 'forespeak[mlx]'" in found.words
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert "not in this bundle" in found.words
    monkeypatch.setattr(sys, "platform", "win32")
    assert found.words == "there is none for Windows"


def test_a_driver_that_aborts_is_outlived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlx_facts, "_version", lambda _: "1")
    monkeypatch.setattr(mlx_facts, "_tell", _abort)
    assert mlx_facts.mlx_facts().words.startswith("MLX ended its process")


def test_the_words_of_a_gpu() -> None:
    assert MlxFacts("1", "1", "Apple M5", 12_000_000_000).words == "Apple M5, 12.0 GB"


@pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed (extra: mlx)")
def test_what_is_here_is_told() -> None:
    found = mlx_facts.mlx_facts()
    assert found.problem is None
    assert found.mlx is not None
    assert found.device == found.words == "CPU"
