"""Events from the reader thread: order, gathering, strangers, and a flood."""

from __future__ import annotations

import threading
import time

from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Died, EngineEvent, GenerationRequest, Notice
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import FinishReason, GenerationStats, Step
from forespeak.ui.engine_bridge import STEPS_PER_FLUSH, EngineBridge
from ui.scripted_engine import Script, ScriptedEngine, scripted_steps

DONE = Finished(FinishReason.STOP, GenerationStats())


class Heard:
    """What comes out, in order: ("steps", request, count) and ("event", request, body)."""

    def __init__(self, bridge: EngineBridge) -> None:
        self.all: list[tuple[str, int, object]] = []
        self.steps: list[Step] = []
        self.at: list[float] = []
        bridge.stepsArrived.connect(self._steps)
        bridge.eventArrived.connect(self._event)

    def _steps(self, request: int, steps: tuple[Step, ...]) -> None:
        self.all.append(("steps", request, len(steps)))
        self.steps.extend(steps)
        self.at.append(time.perf_counter())

    def _event(self, event: EngineEvent) -> None:
        self.all.append(("event", event.request, event.body))


def step(index: int) -> Step:
    return Step(index, ())


def test_steps_that_wait_together_come_together_and_in_order(qtbot: QtBot) -> None:
    bridge = EngineBridge()
    heard = Heard(bridge)
    bridge.watch(1)
    for number in range(3):
        bridge.listen(EngineEvent(1, step(number)))
    bridge.listen(EngineEvent(1, Notice("note")))
    bridge.listen(EngineEvent(1, step(3)))
    bridge.listen(EngineEvent(1, DONE))
    qtbot.waitUntil(lambda: len(heard.all) == 4)
    assert heard.all == [("steps", 1, 3), ("event", 1, Notice("note")), ("steps", 1, 1), ("event", 1, DONE)]


def test_strangers_and_forgotten_requests_are_dropped_but_not_a_death(qtbot: QtBot) -> None:
    bridge = EngineBridge()
    heard = Heard(bridge)
    bridge.watch(1)
    bridge.watch(2)
    bridge.forget(1)
    death = Died("a", "b", "c")
    for request, body in ((1, step(0)), (7, step(0)), (2, step(0)), (7, DONE), (0, death)):
        bridge.listen(EngineEvent(request, body))
    qtbot.waitUntil(lambda: len(heard.all) == 2)
    assert heard.all == [("steps", 2, 1), ("event", 0, death)]


def test_letting_go_inside_a_flush_holds_at_once(qtbot: QtBot) -> None:
    bridge = EngineBridge()
    heard = Heard(bridge)
    bridge.watch(1)
    bridge.eventArrived.connect(lambda event: bridge.forget(event.request))
    bridge.listen(EngineEvent(1, Notice("last")))
    bridge.listen(EngineEvent(1, step(0)))
    bridge.listen(EngineEvent(1, DONE))
    qtbot.waitUntil(lambda: len(heard.all) == 1)
    qtbot.wait(40)
    assert heard.all == [("event", 1, Notice("last"))]


def test_receivers_run_on_the_ui_thread(qtbot: QtBot) -> None:
    bridge = EngineBridge()
    threads: list[QThread] = []
    bridge.eventArrived.connect(lambda _event: threads.append(QThread.currentThread()))
    bridge.watch(1)
    other = threading.Thread(target=bridge.listen, args=(EngineEvent(1, DONE),))
    other.start()
    other.join()
    qtbot.waitUntil(lambda: len(threads) == 1)
    assert threads == [bridge.thread()]


def test_a_flood_is_given_out_in_portions_and_ends_with_the_end(qtbot: QtBot) -> None:
    bridge = EngineBridge()
    heard = Heard(bridge)
    bridge.watch(1)
    for number in range(5 * STEPS_PER_FLUSH):
        bridge.listen(EngineEvent(1, step(number)))
    bridge.listen(EngineEvent(1, DONE))
    qtbot.waitUntil(lambda: ("event", 1, DONE) in heard.all)
    assert [each.index for each in heard.steps] == list(range(5 * STEPS_PER_FLUSH))
    assert max(count for kind, _, count in heard.all if kind == "steps" and isinstance(count, int)) <= STEPS_PER_FLUSH
    assert heard.all[-1] == ("event", 1, DONE)


def test_a_fast_stream_is_gathered_and_complete(qtbot: QtBot) -> None:
    bridge = EngineBridge()
    heard = Heard(bridge)
    steps = scripted_steps("word " * 1000, None)
    engine = ScriptedEngine(bridge.listen, [Script(steps, rate=2000)])
    request = engine.generate(GenerationRequest(()))
    bridge.watch(request)
    began = time.perf_counter()
    qtbot.waitUntil(lambda: any(isinstance(body, Finished) for _, _, body in heard.all))
    seconds = time.perf_counter() - began
    engine.close()
    assert heard.steps == steps
    assert len(heard.at) <= seconds * 60 + 3, "more flushes than sixty a second"
    assert len(heard.at) < len(steps) / 2
