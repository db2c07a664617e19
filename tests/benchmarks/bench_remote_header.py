"""Requests, bytes and time for headers on a Hub on loopback: python tests/benchmarks/bench_remote_header.py GGUF..."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from forespeak.models.hub_files import HubFile
from forespeak.models.remote_header import read_remote_header
from forespeak.models.vocabulary import read_vocabulary
from loopback_api import big_vocabulary, hub_at
from loopback_hub import LoopbackHub, Repo


def main() -> None:
    files: dict[str, bytes | Path] = {path.name: path for path in map(Path, sys.argv[1:])}
    files["made-152k.gguf"] = big_vocabulary(151_936) + bytes(100_000_000)
    files["made-262k.gguf"] = big_vocabulary(262_144, 400_000) + bytes(100_000_000)
    print(f"{'file':36} {'tokens':>8} {'header':>9} {'requests':>8} {'read':>9} {'header in':>10} {'tokens in':>10}")
    with LoopbackHub() as hub, tempfile.TemporaryDirectory() as cache:
        repo = hub.add(Repo("o/m", files))
        client = hub_at(hub.endpoint).client
        # What is imported and looked up once does not count.
        client.locate("o/m", repo.commit, next(iter(files)))
        for name, stored in repo.files.items():
            asked, sent = len(hub.requests), hub.sent()
            begun = time.perf_counter()
            header = read_remote_header(client, "o/m", repo.commit, HubFile(name, stored.size), Path(cache))
            read = time.perf_counter()
            assert header is not None
            tokens = read_vocabulary(header).size
            done = time.perf_counter()
            print(
                f"{name:36} {tokens:8,} {header.data_offset / 1e6:6.1f} MB {len(hub.requests) - asked:8} "
                f"{(hub.sent() - sent) / 1e6:6.1f} MB {read - begun:8.2f} s {done - read:8.2f} s"
            )
        client.close()


if __name__ == "__main__":
    main()
