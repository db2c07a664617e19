"""Our verdict on every pair of real vocabularies, llama.cpp's own rule, and why the two part where they do.

    python tests/benchmarks/bench_verdicts.py [--folder FOLDER]

FOLDER holds vocabulary-only GGUF files; by default the real vocabularies that the tests use. A second table does the
same for synthetic vocabularies. Times are those of all our verdicts together, files read for the first time: once
without anything remembered, once by a new process' eyes with the verdicts remembered by content. Ends with 1 if the
first takes more than 3 s, or if a difference from llama.cpp's rule is not justified.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forespeak.models import vocabulary as readers
from forespeak.models.gguf import read_header
from forespeak.models.vocabulary import Vocabulary, cached_vocabulary, read_vocabulary
from forespeak.pairing.compatibility import compatibility
from forespeak.pairing.verdict import Verdict
from forespeak.pairing.verdict_cache import VerdictCache
from forespeak.pairing.vocabularies import compare
from models.field_data import VOCABULARIES
from pairing.llama_rule import justification, llama_rule, synthetic

BUDGET_SECONDS = 3.0
Row = tuple[str, Vocabulary, Vocabulary, Verdict]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    paths = VOCABULARIES if options.folder is None else {p.stem: p for p in sorted(options.folder.glob("*.gguf"))}
    unjustified = 0
    seconds = 0.0
    if paths:
        with TemporaryDirectory() as folder:
            seconds, table = timed(paths, VerdictCache(Path(folder)))
            again, _ = timed(paths, VerdictCache(Path(folder)))
        print(f"{len(table)} verdicts on {len(paths)} vocabularies in {seconds:.2f} s, remembered in {again:.2f} s")
        vocabularies = {name: cached_vocabulary(path) for name, path in paths.items()}
        unjustified += show(
            (f"{a} <- {b}", vocabularies[a], vocabularies[b], verdict) for (a, b), verdict in table.items()
        )
    else:
        print("There are no real vocabularies here.")
    print()
    with TemporaryDirectory() as folder:
        unjustified += show(made(Path(folder)))
    return 1 if unjustified or seconds > BUDGET_SECONDS else 0


def timed(paths: dict[str, Path], cache: VerdictCache) -> tuple[float, dict[tuple[str, str], Verdict]]:
    for reader in (readers._header, readers._vocabulary, readers._fingerprint):
        reader.cache_clear()
    start = time.perf_counter()
    table = {(a, b): compatibility(paths[a], paths[b], cache) for a in paths for b in paths}
    return time.perf_counter() - start, table


def made(folder: Path) -> Iterator[Row]:
    for name, files in synthetic().items():
        target, draft = (read_vocabulary(read_header(file.write(folder / "some.gguf"))) for file in files)
        yield name, target, draft, compare(target, draft)


def show(rows: Iterable[Row]) -> int:
    """Print a table of (name, target, draft, verdict); how many differences from llama.cpp's rule are unjustified."""
    unjustified = 0
    print(f"{'target <- draft':42}{'ours':17}{'fits':6}{'llama.cpp':11}why they differ")
    for name, target, draft, verdict in rows:
        fits, theirs = fit(verdict), llama_rule(target, draft)
        why = ""
        if fits != (theirs is None):
            found = justification(target, draft, verdict)
            unjustified += found is None
            why = found or "NOT JUSTIFIED"
        said = "fits" if theirs is None else f"no: {theirs}"
        print(f"{name:42}{verdict.kind.code:17}{'yes' if fits else 'no':6}{said:11}{why}".rstrip())
    return unjustified


def fit(verdict: Verdict) -> bool:
    """What the vocabularies allow, whether or not the files have weights."""
    return bool(verdict.evidence.get("vocabularies_fit", verdict.usable))


if __name__ == "__main__":
    sys.exit(main())
