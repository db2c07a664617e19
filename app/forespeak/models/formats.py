"""The two formats in which models come."""

from __future__ import annotations

import importlib.util
import platform
import sys
from enum import Enum
from pathlib import Path


class ModelFormat(Enum):
    """`GGUF`: one file, or a set of parts. `MLX`: a folder with config.json and safetensors files."""

    GGUF = "GGUF"
    MLX = "MLX"


def model_stem(path: Path) -> str:
    """What people call a model by its path: a file's name without its ending; that of an MLX folder may hold dots."""
    return path.name.removesuffix(".gguf")


NO_MLX = "Models in the MLX format need mlx-lm, which is not installed here."


def mlx_is_installed() -> bool:
    """Whether what runs models in the MLX format is here. It is not imported for that."""
    return importlib.util.find_spec("mlx_lm") is not None


def on_apple_silicon() -> bool:
    """Whether this is a machine that MLX is made for."""
    return sys.platform == "darwin" and platform.machine() == "arm64"
