"""The two formats in which models come."""

from __future__ import annotations

from enum import Enum


class ModelFormat(Enum):
    """`GGUF`: one file, or a set of parts. `MLX`: a folder with config.json and safetensors files."""

    GGUF = "GGUF"
    MLX = "MLX"
