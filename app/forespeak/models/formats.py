"""The two formats in which models come."""

from __future__ import annotations

import importlib.util
from enum import Enum


class ModelFormat(Enum):
    """`GGUF`: one file, or a set of parts. `MLX`: a folder with config.json and safetensors files."""

    GGUF = "GGUF"
    MLX = "MLX"


NO_MLX = "Models in the MLX format need mlx-lm, which is not installed here."


def mlx_is_installed() -> bool:
    """Whether what runs models in the MLX format is here. It is not imported for that."""
    return importlib.util.find_spec("mlx_lm") is not None
