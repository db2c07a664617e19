"""Figures of the window, printed: how soon it is up, and how long the UI thread is away while a reply streams.

Run as `python tests/benchmarks/bench_window.py`, with QT_QPA_PLATFORM=offscreen or on a real display.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ui.scripted_engine import Script, ScriptedEngine, scripted_steps

WORDS = 20_000
RATE = 2_000.0
START = """
import sys, time
began = float(sys.argv[1])
from forespeak.ui import app
problem = app.ui_problem()
assert problem is None, problem
from PySide6.QtCore import QEvent, QObject, QTimer
from forespeak.ui.main_window import MainWindow
shown = MainWindow.showEvent
paint = MainWindow.paintEvent
def painted(self, event):
    paint(self, event)
    if not hasattr(self, "timed"):
        self.timed = True
        print(f"{time.time() - began:.3f}", flush=True)
        QTimer.singleShot(300, self.close)
MainWindow.paintEvent = painted
raise SystemExit(app.run_window(["forespeak"]))
"""


def prose(words: int) -> str:
    """Paragraphs of a hundred words, each word a token."""
    line = "the square of the longest side equals the sum of the squares of the other two sides in every such triangle"
    vocabulary = line.split()
    out = []
    for at in range(words):
        out.append(vocabulary[(at * 7) % len(vocabulary)])
        out.append("\n\n" if at % 100 == 99 else " ")
    return "".join(out)


def starts(times: int) -> list[float]:
    """Seconds from the process's creation to the first painted window."""
    seconds = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as home:
            environment = os.environ | {"FORESPEAK_HOME": home}
            began = time.time()
            done = subprocess.run(
                [sys.executable, "-c", START, str(began)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
        seconds.append(float(done.stdout.split()[0]))
    return seconds


def streaming() -> tuple[list[float], float]:
    """How long each turn of the UI thread took, in seconds, while the reply came; and how long the reply took."""
    from dataclasses import replace

    from PySide6.QtCore import QEventLoop

    from forespeak.chats.store import ChatStore
    from forespeak.ui.app import make_application, make_window
    from forespeak.ui.garbage import GarbageKeeper
    from forespeak.ui.preferences import Preferences, PreferencesFile
    from forespeak.ui.session import Session
    from ui.conftest import FakeModels

    application = make_application(["bench"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = FakeModels(folder)
        starter = models.starter()
        assert starter is not None
        preferences = replace(Preferences(), target=starter.target, draft=starter.draft)
        window, _appearance = make_window(application, preferences)
        script = Script(scripted_steps(prose(WORDS)), rate=RATE)
        session = Session(
            window,
            ChatStore(folder / "chats.db"),
            preferences,
            PreferencesFile(folder / "preferences.json"),
            models,
            # No processor writes 2,000 tokens a second.
            lambda listener: ScriptedEngine(listener, [script], computes_on_cpu=False),
        )
        window.closing.connect(session.close)
        keeper = GarbageKeeper(lambda: bool(session.replies.busy_chats), session)
        window.closing.connect(keeper.stop)
        keeper.start()
        window.show()
        session.start()
        while session.pair.status.loaded is None:
            application.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        session.chats.send("Go on.")
        turns: list[float] = []
        began = time.perf_counter()
        while not session.chats.items or session.chats.busy:
            before = time.perf_counter()
            application.processEvents()
            turns.append(time.perf_counter() - before)
            time.sleep(0.0005)
        took = time.perf_counter() - began
        window.close()
    return turns, took


def main() -> None:
    seconds = starts(5)
    print(f"window painted after {min(seconds):.2f} s at best, {statistics.median(seconds):.2f} s in the middle of 5")
    turns, took = streaming()
    turns.sort()
    # Turns without work are not blocks.
    busy = [turn for turn in turns if turn > 0.0002]
    print(
        f"{WORDS:,} tokens at {RATE:,.0f}/s in {took:.1f} s: turns of the UI thread in ms: "
        f"p50 {1000 * busy[len(busy) // 2]:.1f}, p99 {1000 * busy[len(busy) * 99 // 100]:.1f}, "
        f"longest {1000 * busy[-1]:.1f}; over 33 ms: {sum(turn > 0.033 for turn in busy)} of {len(busy)}"
    )


if __name__ == "__main__":
    main()
