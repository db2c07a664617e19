"""Ten thousand damaged headers: bit flips, cuts, huge counts, lengths that lead into themselves.

    python tests/benchmarks/bench_headers.py [--count 10000] [--seed 5]

None may crash, take longer than a second, or take more than 64 MB of memory at once (as tracemalloc counts it); the
only error is ours. A quarter of the files have 300 MB of zeros behind the header. The slowest and the greediest are
shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forespeak.models.gguf import KnownTexts
from models.hostile_headers import MOST_BYTES, MOST_SECONDS, damaged_headers, read_hostile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    ends: Counter[str] = Counter()
    slowest = greediest = (0.0, -1)
    started = time.monotonic()
    known = KnownTexts()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hostile.gguf"
        for number, content, hole in damaged_headers(Path(folder), options.count, options.seed):
            try:
                outcome = read_hostile(path, content, hole, known if number % 2 else None)
            except Exception:  # noqa: BLE001 - that there is none is what this shows
                ends["crashed"] += 1
                print(f"number {number} crashed:\n{traceback.format_exc()}")
                continue
            ends["refused" if outcome.refused else "read"] += 1
            slowest = max(slowest, (outcome.seconds, number))
            greediest = max(greediest, (float(outcome.peak_bytes), number))
    print(f"{options.count} headers in {time.monotonic() - started:.0f} s: {dict(ends)}")
    print(f"slowest: {slowest[0]:.3f} s (number {slowest[1]}), at most {MOST_SECONDS} s wanted")
    print(f"most memory: {greediest[0] / 1e6:.1f} MB (number {greediest[1]}), at most {MOST_BYTES / 1e6:.1f} MB wanted")
    return 0 if not ends["crashed"] and slowest[0] <= MOST_SECONDS and greediest[0] <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
