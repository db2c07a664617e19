"""Vocabularies of real model families, where this checkout has them beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "vocab"
VOCABULARIES = {path.stem.removeprefix("ggml-vocab-"): path for path in sorted(_FOLDER.glob("*.gguf"))}

needs_field_data = pytest.mark.skipif(not VOCABULARIES, reason=f"there are no real vocabularies in {_FOLDER.name}")
