"""The list of devices while it is asked for, when it is there, and when it cannot be had."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.ui.devices_view import DevicesView
from forespeak.ui.hardware_controller import Findings, HardwareController
from ui.machines import CPU, FIRST, ScriptedMachine


@pytest.fixture
def machine() -> ScriptedMachine:
    return ScriptedMachine()


@pytest.fixture
def controller(machine: ScriptedMachine) -> Iterator[HardwareController]:
    made = machine.controller()
    yield made
    made.close()


@pytest.fixture
def view(qtbot: QtBot, controller: HardwareController) -> DevicesView:
    made = DevicesView(controller)
    qtbot.addWidget(made)
    made.show()
    return made


def test_each_device_with_its_memory(qtbot: QtBot, machine: ScriptedMachine, view: DevicesView) -> None:
    machine.devices = (FIRST, CPU)
    view.again.click()
    assert view.state.text() == "Looking for devices…"
    assert not view.again.isEnabled()
    qtbot.waitUntil(lambda: bool(view.words))
    assert view.words == [
        "CUDA0",
        "A card, GPU (CUDA), 22 GB of 24 GB free",
        "CPU",
        "A processor, CPU, 20 GB of 64 GB free",
    ]
    assert not view.state.isVisible()
    assert not view.why.isVisible()
    machine.devices = (CPU,)
    view.again.click()
    assert view.words[0] == "CUDA0", "the list stays while it is asked again"
    qtbot.waitUntil(lambda: view.words[0] == "CPU")
    assert len(view.words) == 2


def test_a_machine_without_a_gpu_says_so_and_why(qtbot: QtBot, machine: ScriptedMachine, view: DevicesView) -> None:
    machine.unused = ("A card is there.", "Its driver is not.")
    view.again.click()
    qtbot.waitUntil(lambda: bool(view.words))
    assert view.state.text() == "There is no GPU that the engine can use: the processor computes everything."
    assert view.why.isVisible()
    assert not view.reasons.isVisible()
    view.why.click()
    assert view.reasons.isVisible()
    assert view.reasons.text() == "A card is there.\n\nIts driver is not."
    view.why.click()
    assert not view.reasons.isVisible()


def test_commands_are_copied_as_they_are_typed(qtbot: QtBot, machine: ScriptedMachine, view: DevicesView) -> None:
    machine.unused = ("A card is there. Build it anew:",)
    machine.commands = ("set UP", "build --no-binary everything")
    view.again.click()
    qtbot.waitUntil(lambda: bool(view.words))
    assert not view.commands.isVisible()
    view.why.click()
    assert view.commands.isVisible()
    view.copy.click()
    assert QGuiApplication.clipboard().text() == "set UP\nbuild --no-binary everything"
    machine.commands = ()
    view.again.click()
    qtbot.waitUntil(lambda: not view.commands.isVisible())
    assert view.reasons.isVisible()
    assert not view.copy.isVisible()


def test_no_name_makes_the_page_wide(qtbot: QtBot, machine: ScriptedMachine, view: DevicesView) -> None:
    long = "a_name_without_any_place_to_break_" * 5
    machine.devices = (replace(FIRST, name=long, description=long), replace(CPU, description="圖形處理器🚀" * 20))
    view.again.click()
    qtbot.waitUntil(lambda: bool(view.words))
    assert view.minimumSizeHint().width() < 420
    assert view.words[0].replace("\u200b", "") == long
    assert "圖形處理器🚀" * 20 in view.words[3]


def test_a_driver_that_ends_its_process_is_told(qtbot: QtBot, machine: ScriptedMachine, view: DevicesView) -> None:
    machine.problem = UserFacingError("Not known.", "llama.cpp ended its process (exit code -6).")
    view.again.click()
    qtbot.waitUntil(view.again.isEnabled)
    assert "exit code -6" in view.state.text()
    assert view.state.property("danger")
    machine.problem = None
    view.again.click()
    assert not view.state.property("danger")
    qtbot.waitUntil(lambda: bool(view.words))


def test_a_view_that_is_gone_is_not_told(qtbot: QtBot, controller: HardwareController) -> None:
    view = DevicesView(controller)
    gate = threading.Event()

    def slow() -> Findings:
        gate.wait(5)
        return Findings((CPU,))

    controller.ask = slow
    controller.look()
    view.deleteLater()
    with qtbot.waitSignal(view.destroyed):
        pass
    gate.set()
    qtbot.waitUntil(lambda: controller.findings is not None)
