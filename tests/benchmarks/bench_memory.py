"""What the memory plan says against what a loaded pair takes at its peak. Linux only.

    python tests/benchmarks/bench_memory.py             planned against measured, a fresh process for each cell
    python tests/benchmarks/bench_memory.py --quick     without the contexts of 8,192
    python tests/benchmarks/bench_memory.py --reserved  caches and compute buffers of a dozen architectures of real
                                                        sizes, against what llama.cpp reserves (no_alloc)

Measured is the process' largest resident size (VmHWM): its own pages and those of mapped files, the interpreter and
the libraries among them, after each model's whole context was filled. The weights are the process' own pages here,
because the engine copies them where there is room; where it maps them, the same bytes are the file's pages.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.relatives import NAMES, relative
from forespeak.engines.engine import LoadRequest, LoadSettings
from forespeak.models.machine_memory import now
from forespeak.models.model_layout import layout_of_file
from forespeak.models.model_memory import ContextSettings, cache_bytes, compute_bytes
from forespeak.pairing.load_plan import plan_load
from memory_child import Question, peak, reserved
from models.architectures import ALL

_MB = 1e6
CELLS: list[tuple[str, str | None, int, bool]] = [
    (name, None, length, False) for name in NAMES for length in (512, 2048)
]
CELLS += [(name, None, length, True) for name in ("F32", "Q2_K") for length in (512, 2048)]
CELLS += [
    (name, "Q4_1", length, exact) for name in ("F32", "Q8_0") for length in (512, 2048) for exact in (False, True)
]
LONG: list[tuple[str, str | None, int, bool]] = [
    ("Q2_K", None, 8192, False),
    ("Q4_1", None, 8192, True),
    ("Q8_0", "Q2_K", 8192, False),
]


def peaks(*, quick: bool) -> None:
    print(
        f"{'target':7}{'draft':7}{'context':>8} {'cache':6}{'planned':>9}{'measured':>10}{'own':>8}{'mapped':>8}{'':>8}"
    )
    deviations = []
    for target, draft, length, exact in [*CELLS, *([] if quick else LONG)]:
        paths = relative(target), relative(draft) if draft else None
        plan = plan_load(LoadRequest(paths[0], paths[1], LoadSettings(length, reproducible=exact)), now())
        found = peak(paths[0], paths[1], length, reproducible=exact)
        deviation = plan.needed_bytes / found.peak - 1
        deviations.append(deviation)
        figures = plan.needed_bytes / _MB, found.peak / _MB, found.own / _MB, found.mapped / _MB
        cells = f"{figures[0]:9.1f}{figures[1]:10.1f}{figures[2]:8.1f}{figures[3]:8.1f}"
        print(f"{target:7}{draft or '-':7}{length:8} {'F32' if exact else 'F16':6}{cells}{deviation:+8.1%}", flush=True)
    print(f"{len(deviations)} cells, in MB; the largest deviation is {max(deviations, key=abs):+.1%}")


def reservations() -> None:
    print(f"{'model':11}{'context':>8}{'batch':>6} {'cache planned':>14}{'reserved':>10}", end="")
    print(f"{'compute planned':>17}{'reserved':>10}")
    caches, buffers = [], []
    with tempfile.TemporaryDirectory() as folder:
        for make in ALL:
            path = make().write(Path(folder) / f"{make.__name__}.gguf")
            layout = layout_of_file(path)
            for length, batch, kind, flash, windows in (
                (512, 128, "F16", False, False),
                (8192, 128, "F32", False, False),
                (8192, 512, "F16", True, True),
            ):
                found = reserved([Question(path, length, batch, kind, flash, windows)])[0]
                settings = ContextSettings(length, kind, flash, batch, 49, windows)
                cache, compute = sum(cache_bytes(layout, settings)), compute_bytes(layout, settings)
                caches.append(cache / found.cache - 1)
                buffers.append(compute / found.compute - 1)
                print(
                    f"{make.__name__:11}{length:8}{batch:6} {cache / _MB:14.2f}{found.cache / _MB:10.2f}"
                    f"{compute / _MB:17.2f}{found.compute / _MB:10.2f}  {caches[-1]:+.1%} {buffers[-1]:+.1%}",
                    flush=True,
                )
            path.unlink()
    print(f"largest deviation: caches {max(caches, key=abs):+.1%}, compute buffers {max(buffers, key=abs):+.1%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--reserved", action="store_true")
    options = parser.parse_args()
    if options.reserved:
        reservations()
    else:
        peaks(quick=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
