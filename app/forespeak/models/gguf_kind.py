"""What a GGUF file is for. Apart from what reads one, which needs numpy."""

from __future__ import annotations

from enum import Enum


class GgufKind(Enum):
    """What a GGUF file is for."""

    MODEL = "model"
    VOCABULARY_ONLY = "vocabulary only"
    PROJECTOR = "projector"
    ADAPTER = "adapter"
    IMATRIX = "importance matrix"
    ENCODER = "encoder"
    DRAFT_HEAD = "draft head"
    LATER_SHARD = "later part of a split model"
    OTHER = "other"
