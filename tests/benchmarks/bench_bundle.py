"""How soon a frozen program's window is there, against the same from source, printed: both seen from outside, in turns.

Run as `python tests/benchmarks/bench_bundle.py dist/forespeak/forespeak` by the Python that has Forespeak. It looks at
one pixel of an Xvfb of its own, so it needs Xvfb and runs on Linux only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 9
DISPLAY = ":87"
PLACE = (700, 300)
"""A pixel of the window, where nothing is before."""
MOST_SECONDS = 60.0


def painted(command: list[str]) -> float:
    """Seconds from the process's creation until the window has its ground colour on the screen."""
    from PySide6.QtGui import QGuiApplication

    screen = QGuiApplication.primaryScreen()

    def seen() -> int:
        return screen.grabWindow(0, *PLACE, 1, 1).toImage().pixel(0, 0) & 0xFFFFFF

    with tempfile.TemporaryDirectory() as home:
        before = seen()
        began = time.perf_counter()
        child = subprocess.Popen(
            command, env=os.environ | {"FORESPEAK_HOME": home}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while seen() == before:
                if time.perf_counter() - began > MOST_SECONDS:
                    raise TimeoutError(f"{command[0]} shows nothing")
                time.sleep(0.002)
            took = time.perf_counter() - began
            time.sleep(1.0)
        finally:
            child.terminate()
            child.wait()
        while seen() != before:
            time.sleep(0.05)
    return took


def main() -> None:
    ways = {"source": [str(Path(sys.executable).with_name("forespeak"))], "frozen": [sys.argv[1]]}
    server = subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", "1440x900x24", "-nolisten", "tcp"])
    try:
        time.sleep(2.0)
        os.environ |= {"DISPLAY": DISPLAY, "QT_QPA_PLATFORM": "xcb"}
        # An installed program has its code compiled: so must the one from source, though not beside its files.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        from PySide6.QtGui import QGuiApplication

        application = QGuiApplication([])
        with tempfile.TemporaryDirectory() as compiled:
            os.environ["PYTHONPYCACHEPREFIX"] = compiled
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for command in ways.values():
                painted(command)
            for turn in range(RUNS):
                for name in sorted(ways, reverse=bool(turn % 2)):
                    seconds[name].append(painted(ways[name]))
        for name, each in seconds.items():
            print(f"{name}: {min(each):.2f} s at best, {statistics.median(each):.2f} s in the middle of {RUNS}")
        ratios = [frozen / source for frozen, source in zip(seconds["frozen"], seconds["source"], strict=True)]
        print(f"frozen / source: {statistics.median(ratios):.2f} in the middle, {min(ratios):.2f} to {max(ratios):.2f}")
        del application
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
