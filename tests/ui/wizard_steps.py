"""The Pair page's wizard walked through as a person does, to the step that a test begins at."""

from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from forespeak.ui.theme import LIGHT
from forespeak.ui.wizard_state import WizardStep
from forespeak.ui.wizard_tester import TestPhase
from ui.scripted_engine import ScriptedEngine
from ui.wizard_doubles import Wizard

PATIENCE = 20_000


def focus() -> QWidget | None:
    return QApplication.focusWidget()


def press(key: Qt.Key, times: int = 1) -> None:
    for _ in range(times):
        widget = focus()
        assert widget is not None
        QTest.keyClick(widget, key)


def walk_to(widget: QWidget) -> None:
    """With Tab alone."""
    met = []
    for _ in range(60):
        if focus() is widget:
            return
        press(Qt.Key.Key_Tab)
        met.append(focus())
    raise AssertionError(f"the keyboard does not reach {widget}, but {met}")


def shown(qtbot: QtBot, world: Wizard, width: int = 1180) -> Wizard:
    page = world.page
    page.set_theme(LIGHT)
    page.resize(width, 820)
    page.show()
    qtbot.waitExposed(page)
    page.activateWindow()
    qtbot.waitUntil(lambda: world.controller.library_read and world.controller.keeper.read, timeout=PATIENCE)
    page.take_focus()
    return world


def found(qtbot: QtBot, world: Wizard) -> None:
    controller = world.controller
    qtbot.waitUntil(lambda: controller.found is not None and not controller.finding, timeout=PATIENCE)


def with_target(qtbot: QtBot, world: Wizard) -> None:
    world.page.find_draft(world.controller.targets[0].path)
    found(qtbot, world)


def measured(qtbot: QtBot, world: Wizard) -> None:
    qtbot.waitUntil(lambda: world.controller.state.measurement is not None, timeout=PATIENCE)


def at_drafts(qtbot: QtBot, world: Wizard) -> None:
    """At the second step, with what could draft for the first target."""
    shown(qtbot, world)
    with_target(qtbot, world)


def at_test(qtbot: QtBot, world: Wizard) -> None:
    """At the third step, its button pressed."""
    at_drafts(qtbot, world)
    world.controller.go(WizardStep.TEST)
    world.page.test.start_button.click()


def after_test(qtbot: QtBot, world: Wizard) -> None:
    at_test(qtbot, world)
    measured(qtbot, world)


def loading_for_test(qtbot: QtBot, world: Wizard) -> None:
    """The test's engine loads, and is held there."""
    at_test(qtbot, world)
    qtbot.waitUntil(lambda: world.controller.tester.status.phase is TestPhase.LOADING, timeout=PATIENCE)


def held(gate: threading.Event) -> Callable[[ScriptedEngine], None]:
    """Engines load once the gate opens."""

    def prepare(engine: ScriptedEngine) -> None:
        engine.load_gate = gate

    return prepare
