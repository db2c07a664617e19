"""How long the window does not answer while the Models page is open, a library is read and two downloads run.

    python tests/benchmarks/bench_models_page.py [--files 300] [--megabytes 600] [--rate 60] [--json FILE]

A timer of 5 ms beats in the UI thread's event loop. `late` is how much later than asked a beat comes: what a person
would feel, whatever the reason. Where the system tells (Linux), the reasons are taken apart, each at most:

`computed`  what the UI thread computed between two beats: handlers, layout and painting
`queued`    for how long it waited for a processor, because others had all of them; `shares` tells who they were
`held`      the rest: for how long it waited for the interpreter, which another thread of the window's process had

`own` is `late` without `queued`. Wanted: no `own` over 33 ms, and no `late` either where nothing else runs.

Each scan begins with nothing known of 300 models, whose headers are read cold while both downloads run; between two
scans the page weighs what it found, as it does in use. The downloads come from the tests' Hub on loopback, in a process
of its own; `--rate` is its speed in MB/s for each connection (0: as fast as it goes). With QT_QPA_PLATFORM=offscreen or
on a real display.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests")]

LONG = 0.033
BEAT_SECONDS = 0.005
REST_SECONDS = 2.0
"""Between the end of a scan and the next one."""


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


@dataclass(frozen=True, slots=True)
class Shares:
    """Processor seconds until now. `queued` is time in which the UI thread waited for a processor."""

    at: float
    computed: float
    queued: float

    @staticmethod
    def now() -> Shares:
        try:
            counts = Path(f"/proc/self/task/{os.getpid()}/schedstat").read_text().split()
        except OSError:
            return Shares(time.perf_counter(), time.thread_time(), 0.0)
        return Shares(time.perf_counter(), int(counts[0]) / 1e9, int(counts[1]) / 1e9)


def processors_used(server: int) -> dict[str, float]:
    """Processor seconds until now: of this process, of the Hub's, and of everybody."""
    own = time.process_time()
    try:
        ticks = os.sysconf("SC_CLK_TCK")
        stat = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
        hub = (int(stat[11]) + int(stat[12])) / ticks
        counts = [int(count) for count in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
        everybody = (sum(counts) - counts[3] - counts[4]) / ticks
    except OSError:
        return {"window": own}
    return {"window": own, "hub": hub, "everybody": everybody}


@dataclass(frozen=True, slots=True)
class Beat:
    """In seconds."""

    late: float
    computed: float
    queued: float

    @property
    def own(self) -> float:
        return max(0.0, self.late - self.queued)

    @property
    def held(self) -> float:
        return max(0.0, self.own - self.computed)


def figures_of(beats: list[Beat]) -> dict[str, object]:
    def figures(values: list[float]) -> dict[str, float]:
        ordered = sorted(values)
        return {
            "p50_ms": round(1000 * ordered[len(ordered) // 2], 2),
            "p99_ms": round(1000 * ordered[len(ordered) * 99 // 100], 2),
            "longest_ms": round(1000 * ordered[-1], 1),
            "over_33_ms": sum(value > LONG for value in ordered),
        }

    return {
        "beats": len(beats),
        "late": figures([beat.late for beat in beats]),
        "own": figures([beat.own for beat in beats]),
        "computed": figures([beat.computed for beat in beats]),
        "held": figures([beat.held for beat in beats]),
        "queued": figures([beat.queued for beat in beats]),
    }


def measure(files: int, megabytes: int, rate: float) -> dict[str, object]:
    from forespeak.ui.app import make_application, make_session, make_window, ui_problem

    # As the program begins.
    if (problem := ui_problem()) is not None:
        raise SystemExit(str(problem))
    from PySide6.QtCore import QEventLoop, Qt, QTimer

    from benchmarks.bench_library import write_models
    from forespeak.models.folders import folders
    from forespeak.models.hub_settings import HubSettings, HubSettingsFile
    from forespeak.models.known_texts import KnownTexts
    from forespeak.models.library import Library
    from forespeak.models.library_cache import FactsCache
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
    os.sync()
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

    loop = QEventLoop()
    beats: list[Beat] = []
    last = [Shares.now()]
    beat = QTimer()
    beat.setTimerType(Qt.TimerType.PreciseTimer)
    beat.setInterval(round(1000 * BEAT_SECONDS))

    def beaten() -> None:
        before, now = last[0], Shares.now()
        late = max(0.0, now.at - before.at - BEAT_SECONDS)
        beats.append(Beat(late, now.computed - before.computed, min(late, now.queued - before.queued)))
        last[0] = now

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
        last[0] = Shares.now()
        loop.exec()
        beat.stop()
        assert reached, "it took too long"

    def rest(seconds: float) -> None:
        end = time.perf_counter() + seconds
        run_until(lambda: time.perf_counter() > end)

    controller = view.controller
    run_until(lambda: controller.state.read and controller.state.scan is None)
    alone = figures_of(beats)
    rest(REST_SECONDS)

    repo = view.hub.account.hub().repo("org/repo")
    assert repo is not None
    beats.clear()
    used = processors_used(server.pid)
    began = time.perf_counter()
    for group in repo.groups:
        view.hub.downloads.add(group)
    run_until(lambda: view.hub.downloads.running == 2)
    scans: list[float] = []
    while view.hub.downloads.running == 2:
        # Nothing is known any more: each of the headers is read and walked through, and its vocabulary hashed.
        (where.cache / "library.json").unlink(missing_ok=True)
        library._facts, library._texts = FactsCache(where.cache), KnownTexts()
        scan_began = time.perf_counter()
        controller.rescan()
        run_until(lambda: controller.state.scan is None)
        scans.append(round(time.perf_counter() - scan_began, 2))
        rest(REST_SECONDS)
    run_until(lambda: view.hub.downloads.running == 0)
    seconds = time.perf_counter() - began
    shares = {name: spent - used[name] for name, spent in processors_used(server.pid).items()}
    if "everybody" in shares:
        shares["others"] = max(0.0, shares.pop("everybody") - shares["window"] - shares["hub"])
    window.close()
    server.stdin.close() if server.stdin is not None else None
    server.wait(10)
    count = os.cpu_count() or 1
    return {
        "files": files,
        "megabytes_each": megabytes,
        "page_opened_ms": round(1000 * opening, 1),
        "seconds": round(seconds, 2),
        "scan_seconds": scans,
        "shares": {name: round(spent / seconds / count, 3) for name, spent in shares.items()},
        "first_scan_alone": alone,
        "downloads_and_scans": figures_of(beats),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--megabytes", type=int, default=600)
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
