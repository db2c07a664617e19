"""What the window needs of the processor while a reply streams: milliseconds of every second, by thread.

    python tests/benchmarks/bench_window_cpu.py [--seconds 20] [--phases] [--picture FOLDER]

A scripted child process writes Markdown at 30 tokens a second, without speculation and with drafts of four, into the
real window: pipe, saving, panel and painting are all there. Processor time stays meaningful while others use the
machine. Runs under any Qt platform: QT_QPA_PLATFORM=offscreen, or a real window under xvfb-run. With --phases also what
each part of the UI thread's work takes; measuring that costs a little itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

WARM_UP = 3.0


def processor_seconds() -> dict[str, float]:
    """Of every thread of this process, by name."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    used: dict[str, float] = defaultdict(float)
    for task in Path("/proc/self/task").iterdir():
        name = names.get(int(task.name)) or (task / "comm").read_text().strip()
        # In nanoseconds; stat counts in hundredths of a second only.
        used[name] += int((task / "schedstat").read_text().split()[0]) / 1e9
    return used


class Phases:
    """Processor time of some methods, those that they call included."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = defaultdict(list)

    def watch(self, owner: type, method: str, name: str, when: Callable[..., bool] = lambda *_: True) -> None:
        wrapped = getattr(owner, method)

        def timed(*arguments: object, **keywords: object) -> object:
            before = time.thread_time()
            try:
                return wrapped(*arguments, **keywords)
            finally:
                if when(*arguments):
                    self.took[name].append(time.thread_time() - before)

        setattr(owner, method, timed)

    def report(self, seconds: float) -> None:
        for name, took in self.took.items():
            total, middle = sum(took) * 1000 / seconds, statistics.median(took) * 1000
            print(f"    {name:16s} {total:6.2f} ms/s   {len(took) / seconds:5.1f}/s of {middle:.2f} ms in the middle")


def watch_all(phases: Phases) -> None:
    from PySide6.QtCore import QEvent

    from forespeak.ui import live_reply
    from forespeak.ui.conversation import ConversationView
    from forespeak.ui.engine_bridge import EngineBridge
    from forespeak.ui.garbage import GarbageKeeper
    from forespeak.ui.live_reply import ReplySaver
    from forespeak.ui.main_window import MainWindow
    from forespeak.ui.message_document import MessageDocument
    from forespeak.ui.panel_feed import PanelFeed

    phases.watch(EngineBridge, "_give_out", "flush")
    phases.watch(EngineBridge, "_wake", "  wake (no flush)")
    phases.watch(ConversationView, "append_steps", "  conversation")
    phases.watch(MessageDocument, "append", "    text")
    phases.watch(MessageDocument, "paint", "  text painted")
    phases.watch(PanelFeed, "flush", "panel")
    phases.watch(ReplySaver, "save_all", "save, UI thread")
    phases.watch(live_reply._Job, "__call__", "save, worker")
    phases.watch(GarbageKeeper, "tick", "garbage")
    phases.watch(MainWindow, "event", "paint", lambda _, event: event.type() == QEvent.Type.UpdateRequest)


class Bench:
    """The window with the scripted child, and one reply after the other in it."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        from PySide6.QtCore import QEventLoop

        from forespeak.chats.store import ChatStore
        from forespeak.engines.host import EngineProcess
        from forespeak.pairing.compatibility import refusal
        from forespeak.ui.app import make_application, make_window
        from forespeak.ui.garbage import GarbageKeeper
        from forespeak.ui.preferences import Appearance, Preferences, PreferencesFile
        from forespeak.ui.session import Session
        from streaming_child import TOKENS_PER_SECOND, streaming_engine
        from ui.conftest import FakeModels

        self._arguments = arguments
        self.application = make_application(["bench"])
        self.phases = Phases()
        if arguments.phases:
            watch_all(self.phases)
        models = FakeModels(folder)
        starter = models.starter()
        assert starter is not None
        preferences = replace(
            Preferences(),
            target=starter.target,
            draft=starter.draft,
            draft_length=4,
            appearance=Appearance.DARK if arguments.dark else Appearance.LIGHT,
            max_tokens=round((arguments.seconds + WARM_UP + 1) * TOKENS_PER_SECOND),
        )
        self.window, self._appearance = make_window(self.application, preferences)
        self.window.resize(1440, 900)
        self.session = Session(
            self.window,
            ChatStore(folder / "chats.db"),
            preferences,
            PreferencesFile(folder / "preferences.json"),
            models,
            lambda listener: EngineProcess(
                listener, log_path=folder / "log", pair_check=refusal, engine=streaming_engine
            ),
        )
        keeper = GarbageKeeper(lambda: bool(self.session.replies.busy_chats), self.session)
        self.window.closing.connect(keeper.stop)
        self.window.closing.connect(self.session.close)
        self._loop = QEventLoop()
        self._flushes: list[float] = []
        self.session.bridge.stepsArrived.connect(lambda *_: self._flushes.append(time.perf_counter()))
        self.window.show()
        self.session.start()
        keeper.start()
        self._until(self.session.pair.changed, lambda: self.session.pair.status.can_send)
        self.window.composer.setFocus()

    def _until(self, signal: Any, condition: Callable[[], bool]) -> None:
        # A real event loop, as the app has, and nothing that ticks in it.
        connection = signal.connect(lambda *_: self._loop.quit() if condition() else None)
        while not condition():
            self._loop.exec()
        signal.disconnect(connection)

    def _wait(self, seconds: float) -> None:
        from PySide6.QtCore import QTimer

        QTimer.singleShot(round(1000 * seconds), self._loop.quit)
        self._loop.exec()

    def stream(self, speculate: bool) -> None:
        session, flushes = self.session, self._flushes
        session.set_preferences(replace(session.preferences, speculate=speculate))
        session.chats.new_chat()
        flushes.clear()
        session.chats.send("How does a bicycle stay upright?")
        self._until(session.replies.grew, lambda: bool(flushes))
        self._wait(WARM_UP)
        flushes.clear()
        self.phases.took.clear()
        before, began = processor_seconds(), time.perf_counter()
        self._wait(self._arguments.seconds)
        took = time.perf_counter() - began
        used = {name: spent - before.get(name, 0.0) for name, spent in processor_seconds().items()}
        gaps = sorted(b - a for a, b in pairwise(flushes))
        print(
            f"{'drafts of 4' if speculate else 'plain'}, {self.application.platformName()}: "
            f"{100 * sum(used.values()) / took:.2f} % of a core; "
            f"{len(flushes) / took:.1f} updates/s, between two {1000 * statistics.median(gaps):.0f} ms in the middle, "
            f"{1000 * gaps[len(gaps) * 95 // 100]:.0f} in the 95th percentile"
        )
        threads = sorted(used.items(), key=lambda item: -item[1])
        print("   ", ", ".join(f"{name} {1000 * spent / took:.2f}" for name, spent in threads), "ms/s", flush=True)
        self.phases.report(took)
        self._until(session.replies.stored, lambda: not session.chats.busy)
        self._wait(0.5)
        if self._arguments.picture:
            look = f"{'drafts' if speculate else 'plain'}-{'dark' if self._arguments.dark else 'light'}"
            picture = Path(self._arguments.picture, f"{self.application.platformName()}-{look}.png")
            self.window.conversation.grab().save(str(picture))

    def close(self) -> None:
        self.window.close()
        self._wait(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--picture", metavar="FOLDER", help="save the finished conversation there")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--only", choices=("plain", "drafts"))
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), arguments)
        for speculate in (False, True):
            if arguments.only != ("plain" if speculate else "drafts"):
                bench.stream(speculate)
        bench.close()


if __name__ == "__main__":
    main()
