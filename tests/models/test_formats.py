"""What models are called, and what is said where those in the MLX format cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models.formats import NO_MLX, NO_MLX_REMEDY, model_stem, without_mlx


def test_nothing_is_to_be_installed_into_a_bundle() -> None:
    assert without_mlx(bundled=False) == (NO_MLX, NO_MLX_REMEDY)
    assert "Install mlx-lm beside Forespeak" in NO_MLX_REMEDY
    why, remedy = without_mlx(bundled=True)
    assert "this bundle" in why
    assert "Install mlx-lm" not in remedy


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("models/Qwen2.5-0.5B-Q8_0.gguf", "Qwen2.5-0.5B-Q8_0"),
        ("models/maker/Qwen2.5-0.5B-4bit", "Qwen2.5-0.5B-4bit"),
        (f"hub/models--maker--Qwen2.5-0.5B-4bit/snapshots/{'c' * 40}", "Qwen2.5-0.5B-4bit"),
        ("hub/models--maker--Qwen2.5-0.5B/snapshots/c/a-Q8_0.gguf", "a-Q8_0"),
    ],
)
def test_a_model_has_the_name_that_people_know(path: str, name: str) -> None:
    assert model_stem(Path(path)) == name
