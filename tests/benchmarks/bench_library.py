"""How fast the library is: one large header, a folder of many models read for the first time, and again.

    python tests/benchmarks/bench_library.py [--files 300] [--folder DIR] [--json FILE]

Every model has a real vocabulary, of the nine families in turn, in a file of its own. They are written to a temporary
folder (some 1.5 GB) and removed afterwards. "First" means that nothing is known of the headers; the system has the
files in memory. Wanted: 0.1 s for a header with 152,000 tokens, 2 s for 300 models, 0.1 s for those again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forespeak.models.fingerprint import vocabulary_fingerprint
from forespeak.models.gguf import read_header
from forespeak.models.library import Library
from models.field_data import VOCABULARIES
from models.gguf_writer import text

HEADER_SECONDS, FIRST_SECONDS, AGAIN_SECONDS = 0.1, 2.0, 0.1
_RUNS = 5


def with_weights(vocabulary: bytes, number: int) -> bytes:
    """The file with one small tensor, so that it is a model: the tensor's entry goes behind the metadata."""
    tensor = text(f"blk.{number}.weight") + struct.pack("<IQQIQ", 2, 32, 4, 0, 0)
    head = vocabulary[:8] + struct.pack("<Q", 1) + vocabulary[16:] + tensor
    return head + bytes(-len(head) % 32) + bytes(32 * 4 * 4)


def write_models(folder: Path, count: int) -> int:
    """Write the models, two levels deep as downloads are; their size in bytes."""
    contents = [(path.stem, path.read_bytes()) for path in VOCABULARIES.values()]
    total = 0
    for number in range(count):
        name, data = contents[number % len(contents)]
        place = folder / f"owner-{number % 20}" / f"repo-{number}"
        place.mkdir(parents=True)
        total += (place / f"{name}-{number}.gguf").write_bytes(with_weights(data, number))
    return total


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not VOCABULARIES:
        print("There are no real vocabularies beside this checkout.")
        return 1
    large = VOCABULARIES["qwen2"]
    headers = [timed(lambda: read_header(large)) for _ in range(_RUNS)]
    prints = [timed(lambda: vocabulary_fingerprint(read_header(large))) for _ in range(_RUNS)]
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        models, cache = Path(place) / "models", Path(place) / "cache"
        size = write_models(models, options.files)
        first, again = [], []
        for _ in range(_RUNS):
            (cache / "library.json").unlink(missing_ok=True)
            library = Library(models, (), cache)
            first.append(timed(library.scan))
            # A new library reads its cache from the disk, as after a start.
            later = Library(models, (), cache)
            again.append(timed(later.scan))
        usable = sum(item.usable for item in library.scan())
    figures = {
        "header_seconds": headers,
        "header_and_fingerprint_seconds": prints,
        "files": options.files,
        "bytes": size,
        "usable": usable,
        "first_seconds": first,
        "again_seconds": again,
    }
    rows = (
        (f"header of {large.stem}", headers, HEADER_SECONDS),
        ("  with its fingerprint", prints, HEADER_SECONDS),
        (f"{options.files} models, {size / 1e9:.2f} GB of headers, first", first, FIRST_SECONDS),
        (f"{options.files} models again", again, AGAIN_SECONDS),
    )
    kept = True
    for name, seconds, most in rows:
        middle = statistics.median(seconds)
        kept &= middle <= most
        verdict = "yes" if middle <= most else "NO"
        print(f"{name:48} {middle:7.4f} s (best {min(seconds):.4f}), wanted {most} s: {verdict}")
    print(f"{usable} of {options.files} are usable models")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0 if kept and usable == options.files else 1


if __name__ == "__main__":
    sys.exit(main())
