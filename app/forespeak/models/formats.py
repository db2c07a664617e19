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
    """What people call a model by its path: a file's name without its ending; that of an MLX folder may hold dots.

    In the Hugging Face cache a folder is called after a commit; there the repo's name is the model's.
    """
    repo = path.parent.parent.name
    if path.parent.name == "snapshots" and repo.startswith("models--"):
        return repo.rpartition("--")[2]
    return path.name.removesuffix(".gguf")


def without_mlx(*, bundled: bool) -> tuple[str, str]:
    """Why models in the MLX format cannot run, and what to do; nothing can be added to a bundle."""
    if bundled:
        return (
            "Models in the MLX format need mlx-lm, which this bundle does not bring.",
            "Install Forespeak from its source, or choose a GGUF file of the same model.",
        )
    return (
        "Models in the MLX format need mlx-lm, which is not installed here.",
        "Install mlx-lm beside Forespeak, or choose a GGUF file of the same model.",
    )


NO_MLX, NO_MLX_REMEDY = without_mlx(bundled=getattr(sys, "frozen", False))


def mlx_is_installed() -> bool:
    """Whether what runs models in the MLX format is here. It is not imported for that."""
    return importlib.util.find_spec("mlx_lm") is not None


def on_apple_silicon() -> bool:
    """Whether this is a machine that MLX is made for."""
    return sys.platform == "darwin" and platform.machine() == "arm64"
