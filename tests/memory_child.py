"""What llama.cpp takes, asked of it in processes of their own: reserved without allocating, or measured at the peak."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

_TYPES = {"F32": 0, "F16": 1, "Q8_0": 8}
_MIB = 1 << 20


@dataclass(frozen=True)
class Reserved:
    """Bytes that llama.cpp would allocate, to a hundredth of a MiB, as its log tells them."""

    cache: float
    compute: float


@dataclass(frozen=True)
class Peak:
    """Bytes resident at the peak, and at the end: of our own pages, and of mapped files."""

    peak: int
    own: int
    mapped: int


def ask(*arguments: str) -> Any:
    """Run one of the questions below in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=False, capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


@dataclass(frozen=True)
class Question:
    """A model's file and how its context is to be made."""

    path: Path
    length: int
    batch: int = 128
    kind: str = "F16"
    flash: bool = False
    windows: bool = False


def reserved(questions: Sequence[Question]) -> list[Reserved]:
    """What llama.cpp would allocate for each, all asked in one process."""
    asked = [{**asdict(question), "path": str(question.path)} for question in questions]
    return [Reserved(**answer) for answer in ask("reserve", json.dumps(asked))]


def peak(target: Path, draft: Path | None, length: int, *, reproducible: bool) -> Peak:
    """Load as our engine does, and fill the whole context of each model; Linux only."""
    return Peak(**ask("peak", str(target), str(draft or ""), str(length), str(int(reproducible))))


def _reserve(path: str, length: int, batch: int, kind: str, flash: bool, windows: bool) -> dict[str, float]:
    import llama_cpp.llama_cpp as llama

    from forespeak.engines.llamacpp import bindings

    lines: list[str] = []
    bindings._log.listener = lines.append
    model_params = llama.llama_model_default_params()
    model_params.no_alloc = True
    model_params.load_mode = llama.LLAMA_LOAD_MODE_NONE
    model_params.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(os.fsencode(path), model_params)
    if not model:
        raise RuntimeError(bindings._log.reason("not loaded"))
    params = llama.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_outputs_max = length, batch, batch, 49
    params.type_k = params.type_v = _TYPES[kind]
    params.flash_attn_type = int(flash)
    params.swa_full = not windows
    context = llama.llama_init_from_model(model, params)
    if not context:
        raise RuntimeError(bindings._log.reason("no context"))
    log = "".join(lines)
    bindings._log.listener = None
    llama.llama_free(context)
    llama.llama_model_free(model)

    def told(pattern: str) -> float:
        return _MIB * sum(float(found) for found in re.findall(pattern + r"\s*=\s*([\d.]+) MiB", log))

    return {"cache": told(r"(?:kv_cache|recurrent): size"), "compute": told("compute buffer size")}


def _peak(target: str, draft: str, length: int, reproducible: int) -> dict[str, int]:
    from forespeak.engines.engine import LoadRequest, LoadSettings
    from forespeak.engines.llamacpp.engine import LlamaEngine

    engine = LlamaEngine(lambda _target, _draft: None)
    request = LoadRequest(
        Path(target), Path(draft) if draft else None, LoadSettings(length, reproducible=bool(reproducible))
    )
    engine.load(request, lambda _: None, lambda: False)
    for model in (engine._target, engine._draft):
        if model is None:
            continue
        model.truncate(0)
        left = model.context_length - model.output_limit
        while left > 0:
            count = min(model.batch_limit, left)
            model.evaluate([5] * count, 1)
            left -= count
        model.evaluate([5] * model.output_limit, model.output_limit)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = dict(re.findall(r"^(VmHWM|RssAnon|RssFile):\s+(\d+) kB", status, re.MULTILINE))
    return {
        name: 1024 * int(found[key]) for name, key in (("peak", "VmHWM"), ("own", "RssAnon"), ("mapped", "RssFile"))
    }


if __name__ == "__main__":
    question, rest = sys.argv[1], sys.argv[2:]
    if question == "reserve":
        answer: Any = [_reserve(**question) for question in json.loads(rest[0])]
    else:
        answer = _peak(rest[0], rest[1], int(rest[2]), int(rest[3]))
    sys.stdout.write(json.dumps(answer) + "\n")
