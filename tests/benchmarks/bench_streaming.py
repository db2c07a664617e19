"""How long the window is held up while a reply streams in.

    python tests/benchmarks/bench_streaming.py [--tokens 20000] [--rate 2000] [--text mixed|paragraph|code|lines]

Scripted steps go through the real conversation and panel at the given rate, sixty batches a second. A batch is the
work on new steps, a paint the painting of the window, a frame a batch and the paint that follows it; busy is the
processor time of a frame, which other programs on the machine do not lengthen; a gap is the time between two beats of a
timer of one millisecond, whatever the reason. Runs under any Qt platform:
QT_QPA_PLATFORM=offscreen, or a real window under xvfb-run. Ends with 1 if the 99th percentile of frames is above the
budget of 33 ms.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget

from forespeak.engines.engine import Role
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token
from forespeak.ui.conversation import ConversationView, MessageItem
from forespeak.ui.speculation_panel import SpeculationPanel
from forespeak.ui.theme import LIGHT, style_sheet

BUDGET_MILLISECONDS = 33.0
_WORDS = (
    "the",
    "of",
    "a",
    "draft",
    "model",
    "token",
    "writes",
    "and",
    "then",
    "京都",
    "🍁",
    "square",
    "longest",
    "side",
)


def pieces(kind: str, randomness: random.Random) -> Iterator[str]:
    """Endless pieces of text the size of tokens."""
    count = 0
    while True:
        count += 1
        if kind == "paragraph":
            yield f" {randomness.choice(_WORDS)}"
        elif kind == "lines":
            yield from (f" {randomness.choice(_WORDS)}" for _ in range(9))
            yield "\n"
        elif kind == "code":
            yield from ("```", "python", "\n") if count == 1 else ()
            yield from ("    ", "value", " =", " function", "(", "a", ",", " b", ")", "  #", " why", "\n")
        else:
            yield from ("##", " A", " heading", "\n\n") if count % 5 == 0 else ()
            for _ in range(randomness.randrange(60, 400)):
                bold = randomness.random() < 0.02
                yield " **bold**" if bold else f" {randomness.choice(_WORDS)}"
            yield ".\n\n"
            yield from ("-", " an", " item", "\n") * 4 + ("\n",)
            yield from ("```", "python", "\n", "def", " f", "(x", "):", "\n", "    return", " x", "\n", "```", "\n\n")


def scripted_steps(kind: str, tokens: int, seed: int = 1) -> list[Step]:
    randomness = random.Random(seed)
    source = pieces(kind, randomness)
    steps: list[Step] = []
    written = 0
    while written < tokens:
        accepted = randomness.randrange(5)
        name = randomness.choice((Source.DRAFT_MODEL, Source.DRAFT_MODEL, Source.PROMPT_LOOKUP))
        emitted = [Token(1, next(source), Origin.ACCEPTED, name, 0.9, 0.8) for _ in range(accepted)]
        bonus = accepted > 0 and randomness.random() < 0.4
        emitted.append(Token(2, next(source), Origin.BONUS if bonus else Origin.CORRECTED, None, 0.6))
        rejected = () if bonus else (DraftedToken(3, " other", 0.2, 0.5),)
        steps.append(Step(len(steps), tuple(emitted), rejected, (), name, 0.002, 0.02, written))
        written += len(emitted)
    return steps


class Window(QWidget):
    """Measures how long it takes to paint everything that waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.paints: list[float] = []
        self.busy: list[float] = []

    def event(self, event: QEvent) -> bool:
        before, busy = time.perf_counter(), time.thread_time()
        handled = super().event(event)
        if event.type() is QEvent.Type.UpdateRequest:
            self.paints.append((time.perf_counter() - before) * 1e3)
            self.busy.append((time.thread_time() - busy) * 1e3)
        return handled


class Player(QObject):
    """Sends steps to the widgets at a rate and measures."""

    def __init__(
        self, window: Window, view: ConversationView, panel: SpeculationPanel, steps: list[Step], rate: float
    ) -> None:
        super().__init__()
        self._window = window
        self._view, self._panel, self._steps, self._rate = view, panel, steps, rate
        self._next = 0
        self._sent = 0
        self.batches: list[float] = []
        self.busy: list[float] = []
        self.frames: list[float] = []
        self.gaps: list[float] = []
        self._began = self._last_beat = time.perf_counter()
        self._painted = 0
        self._busy = 0.0
        self._flush = QTimer(self, interval=16, timerType=Qt.TimerType.PreciseTimer)
        self._flush.timeout.connect(self._send)
        self._beat = QTimer(self, interval=1, timerType=Qt.TimerType.PreciseTimer)
        self._beat.timeout.connect(self._measure_gap)

    def start(self) -> None:
        self._began = self._last_beat = time.perf_counter()
        self._flush.start()
        self._beat.start()

    @Slot()
    def _send(self) -> None:
        self._close_frame()
        before, busy = time.perf_counter(), time.thread_time()
        elapsed = before - self._began
        batch = []
        while self._next < len(self._steps) and self._sent < elapsed * self._rate:
            batch.append(self._steps[self._next])
            self._sent += len(batch[-1].emitted)
            self._next += 1
        self._view.append_steps(2, batch)
        self._panel.add_steps(batch, elapsed)
        self._panel.set_live_rate(self._rate)
        if self._next == len(self._steps):
            self._flush.stop()
            text = "".join(token.text for step in self._steps for token in step.emitted)
            self._view.finish_message(2, MessageItem(2, Role.ASSISTANT, text, tuple(self._steps)))
        self.batches.append((time.perf_counter() - before) * 1e3)
        self._busy = (time.thread_time() - busy) * 1e3
        if not self._flush.isActive():
            QTimer.singleShot(300, self, self._end)

    def _close_frame(self) -> None:
        if self.batches:
            self.frames.append(self.batches[-1] + sum(self._window.paints[self._painted :]))
            self.busy.append(self._busy + sum(self._window.busy[self._painted :]))
        self._painted = len(self._window.paints)

    @Slot()
    def _end(self) -> None:
        self._close_frame()
        QApplication.quit()

    @Slot()
    def _measure_gap(self) -> None:
        now = time.perf_counter()
        self.gaps.append((now - self._last_beat) * 1e3)
        self._last_beat = now


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--text", choices=("mixed", "paragraph", "code", "lines"), default="mixed")
    arguments = parser.parse_args()
    application = QApplication(sys.argv[:1])
    application.setStyleSheet(style_sheet(LIGHT))
    window = Window()
    row = QHBoxLayout(window)
    row.setContentsMargins(0, 0, 0, 0)
    view, panel = ConversationView(), SpeculationPanel()
    row.addWidget(view, 1)
    row.addWidget(panel)
    window.resize(1440, 900)
    view.set_messages((MessageItem(1, Role.USER, "Write."), MessageItem(2, Role.ASSISTANT, "", state="generating")))
    window.show()
    application.processEvents()
    player = Player(window, view, panel, scripted_steps(arguments.text, arguments.tokens), arguments.rate)
    player.start()
    application.exec()
    print(f"{arguments.text}: {arguments.tokens} tokens at {arguments.rate:.0f}/s, {application.platformName()}")
    measured = (
        ("batch", player.batches),
        ("paint", window.paints),
        ("frame", player.frames),
        ("busy", player.busy),
        ("gap", player.gaps),
    )
    for name, values in measured:
        p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
        print(f"  {name:5s} p50 {p50:5.1f}  p99 {p99:5.1f}  max {max(values):5.1f} ms  ({len(values)})")
    worst = sorted(enumerate(player.frames), key=lambda frame: -frame[1])[:4]
    print("  worst frames:", ", ".join(f"number {number} {took:.1f} ms" for number, took in worst))
    return int(percentile(player.frames, 0.99) > BUDGET_MILLISECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
