"""How long the UI thread is away while the Models page is open, a library is read anew and two downloads run.

    python tests/benchmarks/bench_models_page.py [--files 300] [--megabytes 400] [--rate 60] [--json FILE]

`late` is how much later than asked a timer of 10 ms comes, without the time for which other programs had the processors
(known on Linux only); `ui_ms` what the UI thread computed between two of them, at most.

With QT_QPA_PLATFORM=offscreen or on a real display. The downloads come from the tests' Hub on loopback, which runs in a
process of its own; `--rate` is its speed in MB/s for both together (0: as fast as it goes). Every model is read cold.
Wanted: no turn over 33 ms after the page is up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests")]

LONG = 0.033
BEAT_MS = 10


def serve(paths: list[Path], rate: float) -> tuple[subprocess.Popen[str], str]:
    files = ", ".join(f"{path.name!r}: Path({str(path)!r})" for path in paths)
    code = f"""
import os
from pathlib import Path
from loopback_hub import LoopbackHub, Repo
with LoopbackHub(rate={rate or None!r}) as hub:
    hub.add(Repo("org/repo", {{{files}}}))
    os.write(1, f"{{hub.endpoint}}\\n".encode())
    os.read(0, 1)
"""
    server = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT / "tests",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "app")},
    )
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


def processor_shares() -> tuple[float, float]:
    """Seconds that this thread has computed, and for which it waited for a processor."""
    try:
        counts = Path(f"/proc/self/task/{os.getpid()}/schedstat").read_text().split()
    except OSError:
        return time.thread_time(), 0.0
    return int(counts[0]) / 1e9, int(counts[1]) / 1e9


def measure(files: int, megabytes: int, rate: float) -> dict[str, object]:
    from PySide6.QtCore import QEventLoop, Qt, QTimer

    from benchmarks.bench_library import write_models
    from forespeak.models.folders import folders
    from forespeak.models.hub_settings import HubSettings, HubSettingsFile
    from forespeak.models.library import Library
    from forespeak.models.library_cache import FactsCache
    from forespeak.ui.app import make_application, make_session, make_window
    from forespeak.ui.garbage import GarbageKeeper
    from forespeak.ui.models_entry import ModelsEntry, _prepared
    from forespeak.ui.preferences import Preferences, PreferencesFile

    home = Path(os.environ["FORESPEAK_HOME"])
    where = folders()
    where.create()
    write_models(where.models / "library", files)
    sources = [home / f"download-{letter}.gguf" for letter in "ab"]
    sample = next((where.models / "library").rglob("*.gguf")).read_bytes()
    for number, source in enumerate(sources):
        with source.open("wb") as file:
            file.write(sample)
            block = os.urandom(1 << 20)
            for _ in range(megabytes):
                file.write(block)
            file.write(bytes([number]))
    server, endpoint = serve(sources, rate * 1e6)
    HubSettingsFile(where.config).write(HubSettings(endpoint))
    application = make_application(["bench"])
    preferences = replace(Preferences(), page="models")
    window, appearance = make_window(application, preferences)
    window.resize(1440, 900)
    session = make_session(window, appearance, PreferencesFile(where.config / "preferences.json"), where)
    keeper = GarbageKeeper(lambda: bool(session.replies.busy_chats), session)
    window.closing.connect(keeper.stop)
    keeper.start()
    window.show()
    entry = session.findChild(ModelsEntry)
    assert entry is not None
    # As the program does a moment after its start.
    _prepared(where.models)
    began = time.perf_counter()
    view = entry.view()
    library = view.library
    assert isinstance(library, Library)
    session.start()
    opening = time.perf_counter() - began

    # A real event loop; each turn is what lies between two moments at which it has nothing to do.
    turns: list[float] = []
    loop = QEventLoop()
    dispatcher = application.eventDispatcher()
    assert dispatcher is not None
    woken = [time.perf_counter()]
    dispatcher.awake.connect(lambda: woken.__setitem__(0, time.perf_counter()))
    dispatcher.aboutToBlock.connect(lambda: turns.append(time.perf_counter() - woken[0]))

    # What a person would notice: how late a timer of 10 ms comes, waits for the interpreter's lock included.
    gaps: list[float] = []
    computed: list[float] = []
    queued: list[float] = []
    beats = [time.perf_counter()]
    shares = [processor_shares()]
    beat = QTimer()
    beat.setTimerType(Qt.TimerType.PreciseTimer)
    beat.setInterval(BEAT_MS)

    def beaten() -> None:
        now, share = time.perf_counter(), processor_shares()
        queue = share[1] - shares[0][1]
        gaps.append(max(0.0, now - beats[0] - BEAT_MS / 1000 - queue))
        computed.append(share[0] - shares[0][0])
        queued.append(queue)
        beats[0], shares[0] = now, share

    beat.timeout.connect(beaten)

    def run_until(done: Callable[[], bool], patience: float = 240.0) -> None:
        end = time.perf_counter() + patience
        reached = False

        def look() -> None:
            nonlocal reached
            reached = reached or done()
            if reached or time.perf_counter() > end:
                loop.quit()

        watch = QTimer()
        watch.setInterval(20)
        watch.timeout.connect(look)
        watch.start()
        beat.start()
        # What was done between two runs of the loop is the bench's own.
        woken[0] = beats[0] = time.perf_counter()
        shares[0] = processor_shares()
        loop.exec()
        beat.stop()
        assert reached, "it took too long"

    controller = view.controller
    run_until(lambda: controller.state.read and controller.state.scan is None)
    first = sorted(turns)
    turns.clear()
    gaps.clear()
    computed.clear()
    queued.clear()

    repo = view.hub.account.hub().repo("org/repo")
    assert repo is not None
    for group in repo.groups:
        view.hub.downloads.add(group)
    run_until(lambda: view.hub.downloads.running == 2)
    shutil.rmtree(where.cache)
    where.cache.mkdir()
    began = time.perf_counter()
    scans = 0
    # Every model is read anew while both downloads run, again and again until they are done.
    while view.hub.downloads.running == 2 or scans == 0:
        library._facts = FactsCache(where.cache)
        controller.rescan()
        run_until(lambda: controller.state.scan is None)
        scans += 1
    both = time.perf_counter() - began
    run_until(lambda: view.hub.downloads.running == 0)
    window.close()
    server.stdin.close() if server.stdin is not None else None
    server.wait(10)
    turns.sort()
    return {
        "files": files,
        "megabytes_each": megabytes,
        "page_opened_ms": round(1000 * opening, 1),
        "first_scan_longest_ms": round(1000 * first[-1], 1),
        "seconds_with_both": round(both, 2),
        "scans": scans,
        "turns": len(turns),
        "p50_ms": round(1000 * turns[len(turns) // 2], 2),
        "p99_ms": round(1000 * turns[len(turns) * 99 // 100], 2),
        "longest_ms": round(1000 * turns[-1], 1),
        "over_33_ms": sum(turn > LONG for turn in turns),
        "late_p99_ms": round(1000 * sorted(gaps)[len(gaps) * 99 // 100], 2),
        "latest_ms": round(1000 * max(gaps), 1),
        "late_over_33_ms": sum(gap > LONG for gap in gaps),
        "beats": len(gaps),
        "ui_ms": round(1000 * max(computed), 1),
        "others_had_the_processors_ms": round(1000 * max(queued), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["FORESPEAK_HOME"] = home
        os.environ["HOME"] = home
        figures = measure(arguments.files, arguments.megabytes, arguments.rate)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
