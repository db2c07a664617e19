"""A comparison on its thread, seen from the window: what comes, in which order, paused, ended, failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from forespeak.compare.plan import Prompt
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Step
from forespeak.ui.compare_controller import CompareController, CompareState
from ui.compare_doubles import TEXT, DeskDouble, plan_double


class Seen:
    """What a controller told, in its order."""

    def __init__(self, controller: CompareController) -> None:
        self.told: list[tuple[str, object]] = []
        self.text = ["", ""]
        self.rates: list[float | None] = [None, None]
        controller.runBegan.connect(self.began)
        controller.stepsCame.connect(self.steps)
        controller.runEnded.connect(self.ended)
        controller.finished.connect(lambda kept: self.told.append(("finished", kept)))
        controller.failed.connect(lambda error: self.told.append(("failed", error.what)))

    def began(self, lane: int) -> None:
        self.told.append(("began", lane))
        self.text[lane] = ""

    def steps(self, lane: int, steps: tuple[Step, ...], rate: float | None) -> None:
        self.text[lane] += "".join(token.text for step in steps for token in step.emitted)
        self.rates[lane] = rate

    def ended(self, lane: int, rate: float | None) -> None:
        self.told.append(("ended", lane))


@pytest.fixture
def desk() -> DeskDouble:
    return DeskDouble()


@pytest.fixture
def controller(qtbot: QtBot, desk: DeskDouble) -> Iterator[CompareController]:
    made = CompareController(desk)
    yield made
    if desk.gate is not None:
        desk.gate.set()
    made.close()


def test_lanes_write_in_turn_until_it_is_kept(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    seen = Seen(controller)
    with qtbot.waitSignal(controller.finished) as finished:
        controller.start(plan_double(), "My work")
        assert controller.status.state is CompareState.RUNNING
        assert controller.status.lanes == ("Off", "Llama 3.2 1B · Auto")
    assert finished.args == ["c1"]
    assert seen.text == [TEXT, TEXT]
    assert seen.rates[1] is not None
    runs = [lane for what, lane in seen.told if what == "began"]
    # A B, B A: neither lane is always first.
    assert runs[:4] == [0, 1, 1, 0]
    assert [what for what, _ in seen.told] == ["began", "ended"] * 6 + ["finished"]
    assert not controller.busy
    assert desk.kept["c1"][0] == "My work"


def test_progress_is_told_in_words_and_numbers(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.gate = threading.Event()
    controller.start(plan_double(), "")
    qtbot.waitUntil(lambda: controller.status.total == 6)
    status = controller.status
    assert (status.done, status.seconds_left) == (0, 72.0)
    assert status.doing == "Off: stem, triangle"
    desk.gate.set()
    qtbot.waitUntil(lambda: not controller.busy)


def test_ones_own_prompts_are_called_so(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.gate = threading.Event()
    controller.start(plan_double((Prompt("own", "typed", "Hello", private=True),)), "")
    qtbot.waitUntil(lambda: controller.status.doing == "Off: your own, typed")
    desk.gate.set()
    qtbot.waitUntil(lambda: not controller.busy)


def test_a_pause_takes_hold_between_two_runs(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.gate = threading.Event()
    controller.start(plan_double(), "")
    qtbot.waitUntil(lambda: controller.status.total == 6)
    controller.pause()
    assert controller.status.state is CompareState.PAUSING
    desk.gate.set()
    qtbot.waitUntil(lambda: controller.status.state is CompareState.PAUSED)
    done = controller.status.done
    qtbot.wait(80)
    assert controller.status.done == done
    assert not desk.kept
    with qtbot.waitSignal(controller.finished):
        controller.go_on()


def test_ended_early_what_is_done_is_kept(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.gate = threading.Event()
    controller.start(plan_double(), "")
    qtbot.waitUntil(lambda: controller.status.total == 6)
    controller.pause()
    desk.gate.set()
    qtbot.waitUntil(lambda: controller.status.state is CompareState.PAUSED)
    with qtbot.waitSignal(controller.finished) as finished:
        controller.stop()
        assert controller.status.state is CompareState.STOPPING
    assert finished.args == ["c1"]
    assert desk.kept["c1"][1].values.resumable


def test_ended_at_once_nothing_is_kept(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.gate = threading.Event()
    controller.start(plan_double(), "")
    qtbot.waitUntil(lambda: controller.status.total == 6)
    with qtbot.waitSignal(controller.finished) as finished:
        controller.stop()
    assert finished.args == [""]
    assert not desk.kept


def test_the_worlds_errors_are_told(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.error = UserFacingError("The model could not be loaded.", "Its file is gone.", "Choose another one.")
    with qtbot.waitSignal(controller.failed) as failed:
        controller.start(plan_double(), "")
    assert failed.args == [desk.error]
    assert not controller.busy


def test_our_own_faults_reach_the_crash_dialog(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.fault = RuntimeError("our fault")
    with qtbot.captureExceptions() as caught:
        controller.start(plan_double(), "")
        qtbot.waitUntil(lambda: bool(caught))
    assert "our fault" in str(caught[0][1])
    assert not controller.busy


def test_a_lane_that_cannot_be_measured_is_said_meanwhile(
    controller: CompareController, desk: DeskDouble, qtbot: QtBot
) -> None:
    desk.failing_pair, desk.gate = "The vocabularies differ.", threading.Event()
    controller.start(plan_double(), "")
    qtbot.waitUntil(lambda: controller.status.problem == "The vocabularies differ.")
    desk.gate.set()
    qtbot.waitUntil(lambda: not controller.busy)


def test_one_at_a_time(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    desk.gate = threading.Event()
    controller.start(plan_double(), "")
    controller.start(plan_double(), "")
    desk.gate.set()
    qtbot.waitUntil(lambda: not controller.busy)
    assert len(desk.measured) == 1


def test_the_chat_makes_room_before_the_first_run(qtbot: QtBot) -> None:
    desk = DeskDouble()
    order: list[str] = []
    thread: list[threading.Thread] = []

    def before() -> None:
        order.append("before")
        thread.append(threading.current_thread())

    controller = CompareController(desk, before)
    controller.runBegan.connect(lambda _: order.append("run"))
    with qtbot.waitSignal(controller.finished):
        controller.start(plan_double(), "")
    assert order[:2] == ["before", "run"]
    assert thread[0] is not threading.main_thread()
    controller.close()


def test_the_window_closes_in_the_middle(qtbot: QtBot) -> None:
    desk = DeskDouble(gate=threading.Event())
    controller = CompareController(desk)
    controller.start(plan_double(), "")
    qtbot.waitUntil(lambda: controller.status.total == 6)
    controller.close()
    assert not desk.kept


def test_what_was_ended_is_gone_on_with(controller: CompareController, desk: DeskDouble, qtbot: QtBot) -> None:
    with qtbot.waitSignal(controller.finished):
        controller.start(plan_double(), "")
    with qtbot.waitSignal(controller.finished) as finished:
        controller.resume("c1", plan_double())
    assert finished.args == ["c1"]
    assert desk.resumed == ["c1"]
