"""What is said where models in the MLX format cannot run."""

from __future__ import annotations

from forespeak.models.formats import NO_MLX, NO_MLX_REMEDY, without_mlx


def test_nothing_is_to_be_installed_into_a_bundle() -> None:
    assert without_mlx(bundled=False) == (NO_MLX, NO_MLX_REMEDY)
    assert "Install mlx-lm beside Forespeak" in NO_MLX_REMEDY
    why, remedy = without_mlx(bundled=True)
    assert "this bundle" in why
    assert "Install mlx-lm" not in remedy
