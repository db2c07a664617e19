"""What there is to compute on is asked off the UI thread, and only the newest question about memory counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot

from forespeak.engines.device_list import EngineFacts
from forespeak.engines.engine import LoadRequest, LoadSettings
from forespeak.errors import UserFacingError
from forespeak.ui import hardware_controller
from forespeak.ui.hardware_controller import Findings, HardwareController, ask_engine
from ui.machines import CPU, FIRST, ScriptedMachine


@pytest.fixture
def machine() -> ScriptedMachine:
    return ScriptedMachine((FIRST, CPU))


@pytest.fixture
def controller(machine: ScriptedMachine) -> Iterator[HardwareController]:
    made = machine.controller()
    yield made
    made.close()


def waits_for(controller: HardwareController) -> tuple[bool, bool]:
    """Devices, and a plan."""
    return controller.asking, controller.weighing


def found(controller: HardwareController) -> Findings | None:
    return controller.findings


def test_devices_are_asked_for_once_at_a_time(
    qtbot: QtBot, machine: ScriptedMachine, controller: HardwareController
) -> None:
    gate = threading.Event()

    def slow() -> Findings:
        assert threading.current_thread() is not threading.main_thread()
        gate.wait(5)
        return machine.ask()

    controller.ask = slow
    controller.look()
    controller.look()
    assert waits_for(controller) == (True, False)
    assert found(controller) is None
    with qtbot.waitSignal(controller.changed):
        gate.set()
    assert waits_for(controller) == (False, False)
    assert controller.findings == Findings((FIRST, CPU))
    assert controller.findings.gpus == (FIRST,)
    assert machine.asked == 1


def test_a_driver_that_fails_is_told_and_may_be_asked_again(
    qtbot: QtBot, machine: ScriptedMachine, controller: HardwareController
) -> None:
    machine.problem = UserFacingError("No answer.", "It ended.")
    controller.look()
    qtbot.waitUntil(lambda: controller.problem is machine.problem)
    assert found(controller) is None
    machine.problem = None
    controller.look()
    qtbot.waitUntil(lambda: controller.findings is not None)
    assert controller.problem is None


def test_a_fault_of_ours_is_not_swallowed(
    qtbot: QtBot, machine: ScriptedMachine, controller: HardwareController
) -> None:
    machine.problem = RuntimeError("a bug")
    with capture_exceptions() as caught:
        controller.look()
        qtbot.waitUntil(lambda: not controller.asking)
    assert [str(error) for _, error, _ in caught] == ["a bug"]


def test_only_the_newest_request_is_weighed(
    qtbot: QtBot, machine: ScriptedMachine, controller: HardwareController
) -> None:
    for layers in range(5):
        controller.plan_for(LoadRequest(Path("t.gguf"), settings=LoadSettings(gpu_layers=layers)))
    assert waits_for(controller) == (False, True)
    qtbot.waitUntil(lambda: controller.plan is not None)
    assert waits_for(controller) == (False, False)
    assert [request.settings.gpu_layers for request in machine.weighed] == [4]
    with qtbot.waitSignal(controller.planned, check_params_cb=lambda: controller.plan is None):
        controller.plan_for(None)
    assert len(machine.weighed) == 1


def test_without_anybody_to_ask_nothing_is_known(qtbot: QtBot) -> None:
    controller = HardwareController()
    controller.look()
    controller.plan_for(LoadRequest(Path("t.gguf")))
    assert waits_for(controller) == (False, False)
    controller.close()


def test_the_engine_is_asked_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware_controller, "engine_facts", lambda: EngineFacts("1", devices=(FIRST, CPU)))
    assert ask_engine().devices == (FIRST, CPU)
    monkeypatch.setattr(hardware_controller, "engine_facts", lambda: EngineFacts(problem="It ended its process."))
    with pytest.raises(UserFacingError) as raised:
        ask_engine()
    assert raised.value.why == "It ended its process."
