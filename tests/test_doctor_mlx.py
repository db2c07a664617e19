"""What doctor says about MLX; what is found is tested in tests/engines/test_mlx_facts.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak import doctor
from forespeak.engines.mlx_facts import MlxFacts


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (MlxFacts("0.32.4", "0.32.2", "Apple M5", 12_000_000_000), ("Apple M5, 12.0 GB", "mlx 0.32.4, mlx-lm 0.32.2")),
        (MlxFacts("0.32.4", None), ("pip install 'forespeak[mlx]'",)),
        (MlxFacts("0.32.4", "0.32.2", problem="MLX ended its process."), ("MLX ended its process.", "mlx-lm 0.32.2")),
    ],
    ids=["there", "missing", "broken"],
)
def test_mlx_is_named_with_what_it_computes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, facts: MlxFacts, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(doctor, "mlx_facts", lambda: facts)
    found = doctor.findings()
    assert found["mlx"]["mlx"] == "0.32.4"
    printed = doctor.report(found)
    assert "MLX" in printed.splitlines()
    assert all(each in printed for each in words)
