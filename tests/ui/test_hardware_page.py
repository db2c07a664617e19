"""On what models compute: chosen from what there is, and refused with the reason where it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.engines.devices import Device
from forespeak.engines.engine import CacheType, Loaded, LoadRequest, LoadSettings, Placement, Split
from forespeak.models.memory import Fit
from forespeak.ui.hardware_page import HardwarePage
from forespeak.ui.preferences import Preferences
from forespeak.ui.settings_dialog import HARDWARE_PAGE
from ui.conftest import AppMaker
from ui.machines import CPU, FIRST, SECOND, ScriptedMachine
from ui.scripted_engine import ScriptedEngine, summary

PAIR = replace(Preferences(), target=Path("t.gguf"), draft=Path("d.gguf"))


class Desk:
    """A page, its machine, and the preferences that are kept of it."""

    def __init__(self, qtbot: QtBot, machine: ScriptedMachine) -> None:
        self.machine = machine
        self.controller = machine.controller()
        self.page = HardwarePage(self.controller)
        self.told: list[Preferences] = []
        self.page.changed.connect(self._take)
        self._qtbot = qtbot
        qtbot.addWidget(self.page)
        self.page.show()
        self.page.show_preferences(PAIR)

    def _take(self) -> None:
        preferences = self.page.taken_into(self.told[-1] if self.told else PAIR)
        self.told.append(preferences)
        self.page.show_preferences(preferences)

    def find(self, *devices: Device) -> None:
        self.machine.devices = devices
        self.page.begin()
        self._qtbot.waitUntil(lambda: not self.controller.asking)

    @property
    def settings(self) -> LoadSettings:
        return self.page._shown.load_settings


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[Desk]:
    made = Desk(qtbot, ScriptedMachine())
    yield made
    made.controller.close()


def choose(combo: object, value: object) -> None:
    places = [place for place in range(combo.count()) if combo.itemData(place) == value]  # type: ignore[attr-defined]
    combo.setCurrentIndex(places[0])  # type: ignore[attr-defined]


def choices(combo: object) -> list[str]:
    return [combo.itemText(place) for place in range(combo.count())]  # type: ignore[attr-defined]


def test_every_choice_is_taken(desk: Desk) -> None:
    desk.find(FIRST, replace(SECOND, splits_rows=True), CPU)
    page = desk.page
    page.layers.setValue(20)
    choose(page.split, Split.ROW)
    choose(page.draft_device, "Vulkan1")
    page.draft_layers.setValue(-1)
    page.threads.setValue(3)
    wanted = LoadSettings(threads=3, gpu_layers=20, draft_gpu_layers=-1, draft_device="Vulkan1", split=Split.ROW)
    assert desk.told[-1] == replace(PAIR, load_settings=wanted)
    choose(page.device, "CUDA0")
    assert desk.settings.device == "CUDA0"
    assert not page.split.isEnabled(), "one device shares with nobody"
    page.show_preferences(PAIR)
    assert page.taken_into(PAIR) == PAIR


def test_what_there_is_can_be_chosen_beside_automatic(desk: Desk) -> None:
    assert choices(desk.page.device) == ["Automatic", "Processor only"]
    desk.find(FIRST, CPU)
    assert choices(desk.page.device) == ["Automatic", "CUDA0 · A card", "Processor only"]
    assert choices(desk.page.draft_device) == ["As the target", "CUDA0 · A card", "Processor only"]
    assert desk.told == [], "finding something changes no setting"


def test_a_long_name_is_cut_and_told_whole(qtbot: QtBot, desk: Desk) -> None:
    long = "A card with <b>a name</b> " * 8
    desk.find(replace(FIRST, description=long), CPU)
    choose(desk.page.device, "CUDA0")
    desk.page.resize(300, 900)
    box = desk.page.device
    assert box.width() < box.fontMetrics().horizontalAdvance(box.currentText())
    cut = box.grab().toImage()
    box.setItemText(box.currentIndex(), box.currentText() + "and more")
    assert box.grab().toImage() == cut, "what lies beyond the cut is not painted over the arrow"
    help_event = QHelpEvent(QEvent.Type.ToolTip, QPoint(5, 5), box.mapToGlobal(QPoint(5, 5)))
    QApplication.sendEvent(box, help_event)
    assert "&lt;b&gt;a name&lt;/b&gt;" in box.toolTip()


def test_layers_have_words_below_nought(desk: Desk) -> None:
    desk.find(FIRST, CPU)
    layers, of_draft = desk.page.layers, desk.page.draft_layers
    assert layers.text() == "As many as fit"
    assert of_draft.text() == "As the target"
    QTest.keyClick(of_draft, Qt.Key.Key_Up)
    assert of_draft.text() == "As many as fit"
    assert desk.settings.draft_gpu_layers == -1
    QTest.keyClick(of_draft, Qt.Key.Key_Up)
    assert of_draft.text() == "0"
    of_draft.selectAll()
    QTest.keyClicks(of_draft, "17")
    QTest.keyClick(of_draft, Qt.Key.Key_Return)
    assert desk.settings.draft_gpu_layers == 17
    QTest.keyClick(layers, Qt.Key.Key_Up)
    assert desk.settings.gpu_layers == 0
    of_draft.setValue(-2)
    assert desk.settings.draft_gpu_layers is None


def test_without_a_gpu_there_are_no_layers_to_place(desk: Desk) -> None:
    assert desk.page.layers.isEnabled(), "nothing is known before it was asked"
    desk.find(CPU)
    for box in (desk.page.layers, desk.page.draft_layers, desk.page.split):
        assert not box.isEnabled()
        assert "There is no GPU that the engine can use." in box.accessibleDescription()
    assert desk.page.threads.isEnabled()
    assert choices(desk.page.device) == ["Automatic", "Processor only"]


def test_a_processor_takes_all_layers(desk: Desk) -> None:
    desk.find(FIRST, CPU)
    choose(desk.page.device, "CPU")
    assert not desk.page.layers.isEnabled()
    assert not desk.page.draft_layers.isEnabled(), "the draft goes where the target is"
    choose(desk.page.draft_device, "CUDA0")
    assert desk.page.draft_layers.isEnabled()
    assert desk.settings == LoadSettings(device="CPU", draft_device="CUDA0")


def test_what_a_build_cannot_do_is_refused_at_the_control(desk: Desk) -> None:
    desk.find(FIRST, SECOND, CPU)
    choose(desk.page.split, Split.ROW)
    assert desk.told == []
    assert desk.page.split.currentData() is Split.LAYER
    problem = desk.page._split_row.problem
    assert problem.isVisible()
    assert "Vulkan1" in problem.text()
    assert problem.text() in desk.page.split.accessibleDescription()
    choose(desk.page.split, Split.NONE)
    assert not problem.isVisible()
    assert desk.settings == LoadSettings(split=Split.NONE)


def test_a_device_that_is_gone_is_named_and_can_be_left(desk: Desk) -> None:
    gone = replace(PAIR, load_settings=LoadSettings(device="Vulkan1", draft_device="Vulkan7"))
    desk.page.show_preferences(gone)
    assert desk.page.taken_into(PAIR) == gone
    desk.find(FIRST, CPU)
    assert desk.page.device.currentText() == "Vulkan1"
    for row, name in ((desk.page._device_row, "Vulkan1"), (desk.page._draft_device_row, "Vulkan7")):
        assert f"does not find {name} now" in row.problem.text()
    desk.page.threads.setValue(2)
    assert desk.told[-1].load_settings.threads == 2, "one thing that is wrong does not forbid to change another"
    choose(desk.page.device, None)
    choose(desk.page.draft_device, None)
    assert desk.settings == LoadSettings(threads=2)
    assert not desk.page._device_row.problem.text()
    assert "Vulkan1" not in " ".join(choices(desk.page.device))


def test_memory_is_counted_with_what_is_chosen(qtbot: QtBot, desk: Desk) -> None:
    desk.find(FIRST, CPU)
    qtbot.waitUntil(lambda: desk.page.plan.text() == "With -1 layers it fits.")
    desk.page.layers.setValue(12)
    qtbot.waitUntil(lambda: desk.page.plan.text() == "With 12 layers it fits.")
    assert desk.machine.weighed[-1] == desk.told[-1].load_request(Path("t.gguf"), Path("d.gguf"))
    assert not desk.page.plan.property("danger")
    desk.machine.fit = Fit.TOO_LARGE
    desk.page.layers.setValue(13)
    qtbot.waitUntil(lambda: bool(desk.page.plan.property("danger")))


def test_what_was_used_is_shown(desk: Desk) -> None:
    assert desk.page.used.text() == "No model is loaded."
    loaded = Loaded(summary(Path("t.gguf")))
    desk.page.show_loaded(loaded)
    assert desk.page.used.text() == "This engine does not tell."
    placement = Placement(("CUDA0", "CPU"), 24, 30, CacheType.F16, flash_attention=False, threads=2)
    desk.page.show_loaded(replace(loaded, placement=placement))
    assert desk.page.used.text().startswith("Target: 24 of 30 layers on CUDA0, the rest on the processor, cache F16")


def test_from_the_settings_to_a_load_and_back(qtbot: QtBot, make_app: AppMaker) -> None:
    """The whole way: chosen, loaded again as the settings close, and what was used is said in the window."""
    machine = ScriptedMachine((FIRST, CPU))

    def prepare(engine: ScriptedEngine) -> None:
        def answer(request: LoadRequest) -> Loaded:
            layers = 31 if request.settings.gpu_layers < 0 else request.settings.gpu_layers
            where = Placement(("CUDA0", "CPU"), layers, 31, CacheType.F16, flash_attention=True, threads=2)
            return Loaded(summary(request.target), placement=where)

        engine.load_answer = answer

    app = make_app(prepare=prepare)
    top = app.window.top
    assert top.target.words()[0] == "Target · on CUDA0"
    app.session.hardware.ask, app.session.hardware.weigh = machine.ask, machine.weigh
    app.session.open_settings()
    dialog = app.session._settings
    assert dialog is not None
    assert machine.asked == 0, "no driver is asked before somebody looks"
    dialog.tabs.setCurrentIndex(HARDWARE_PAGE)
    qtbot.waitUntil(lambda: len(choices(dialog.hardware.device)) == 3)
    assert "all 31 layers on CUDA0" in dialog.hardware.used.text()
    dialog.hardware.layers.setValue(24)
    assert app.session.preferences.load_settings == LoadSettings(gpu_layers=24)
    assert len(app.engine.loads) == 1
    dialog.close()
    qtbot.waitUntil(lambda: top.target.words()[0] == "Target · 24 of 31 layers on CUDA0")
    assert app.engine.loads[-1].settings.gpu_layers == 24
    assert "24 of 31 layers on CUDA0, the rest on the processor" in top.target.toolTip()
