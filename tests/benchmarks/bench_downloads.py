"""How fast a download is: ours, verified and in its place, against curl and sha256sum of the same file, in turns.

    python tests/benchmarks/bench_downloads.py [--megabytes 1000] [--rounds 5] [--folder /dev/shm]

Both read from the tests' Hub on loopback, which runs in a process of its own and sends without copying. Ours also
brings the file to the disk (fsync), which curl leaves to the system; --sync adds `sync FILE` to curl's side.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests")]

from forespeak.models.download_control import Control
from forespeak.models.downloads import FileDownload
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_files import HubFile
from forespeak.models.hub_settings import HubSettings

NAME = "model.gguf"


def serve(path: Path) -> tuple[subprocess.Popen[str], str]:
    files = f"{{{NAME!r}: Path({str(path)!r})}}"
    code = f"from pathlib import Path; import loopback_hub; loopback_hub.serve_until_closed({files})"
    server = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT / "tests",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "app")},
    )
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


def ours(endpoint: str, file: HubFile, folder: Path) -> float:
    target = folder / "ours" / NAME
    target.unlink(missing_ok=True)
    client = HubClient(HubSettings(endpoint))
    started = time.perf_counter()
    download = FileDownload("org/repo", "main", file, target, lambda: client, Control())
    download.run()
    download.finish()
    download.close()
    seconds = time.perf_counter() - started
    client.close()
    return seconds


def curls(endpoint: str, file: HubFile, folder: Path, *, sync: bool) -> float:
    target = folder / "curl" / NAME
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    started = time.perf_counter()
    subprocess.run(["curl", "-sSL", "-o", target, f"{endpoint}/org/repo/resolve/main/{NAME}"], check=True)
    done = subprocess.run(["sha256sum", target], check=True, capture_output=True, text=True)
    if sync:
        subprocess.run(["sync", target], check=True)
    seconds = time.perf_counter() - started
    assert done.stdout.split()[0] == file.sha256
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--sync", action="store_true")
    options = parser.parse_args()

    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="forespeak-downloads-"))
    server = None
    try:
        source = folder / "source.bin"
        block = os.urandom(1_000_000)
        digest = hashlib.sha256()
        with source.open("wb") as file:
            for number in range(options.megabytes):
                piece = number.to_bytes(8, "little") + block[8:]
                digest.update(piece)
                file.write(piece)
        wanted = HubFile(NAME, source.stat().st_size, digest.hexdigest())
        server, endpoint = serve(source)
        ours(endpoint, wanted, folder)
        rates: dict[str, list[float]] = {"ours": [], "curl": []}
        for number in range(options.rounds):
            ways = [
                ("ours", partial(ours, endpoint, wanted, folder)),
                ("curl", partial(curls, endpoint, wanted, folder, sync=options.sync)),
            ]
            for name, way in ways if number % 2 == 0 else reversed(ways):
                rates[name].append(options.megabytes / way())
        ratios = [a / b for a, b in zip(rates["ours"], rates["curl"], strict=True)]
        print(f"ours      {' '.join(f'{rate:7.0f}' for rate in rates['ours'])}  MB/s")
        print(f"curl+sha  {' '.join(f'{rate:7.0f}' for rate in rates['curl'])}  MB/s")
        print(
            json.dumps({"median ratio": round(statistics.median(ratios), 3), "ratios": [round(r, 3) for r in ratios]})
        )
    finally:
        if server is not None:
            server.communicate(timeout=10)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
