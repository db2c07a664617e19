"""The two formats in which models come."""

from __future__ import annotations

from enum import Enum


class ModelFormat(Enum):
    """How a model's files are laid out: one GGUF file (or its parts), or a folder for MLX."""

    GGUF = "GGUF"
    MLX = "MLX"
