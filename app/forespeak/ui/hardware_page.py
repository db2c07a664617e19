"""On what models compute: the page of the settings about devices, layers on GPUs and threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QComboBox,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QWidget,
)

from forespeak.engines.devices import Device, automatic_gpus, draft_setting, target_setting
from forespeak.engines.engine import CPU_DEVICE, MOST_THREADS, Loaded, LoadSettings, Split
from forespeak.errors import UserFacingError
from forespeak.models.memory import Fit
from forespeak.ui.devices_view import DevicesView
from forespeak.ui.form import CheckedRow, add_heading, caption, form_of, whole_box
from forespeak.ui.hardware_controller import HardwareController
from forespeak.ui.hardware_words import placement_lines
from forespeak.ui.preferences import Preferences
from forespeak.ui.restyle import restyle
from forespeak.ui.tool_tips import plain_tip

_ALL, _AS_TARGET = -1, -2
"""In a box of layers: as many as fit, and as many as of the target."""
_MOST_LAYERS = 999


class LayersBox(QSpinBox):
    """A number of layers, or one of the words for those below 0."""

    def __init__(self, words: dict[int, str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = words
        self.setRange(min(words), _MOST_LAYERS)
        # Qt itself reads and writes the word for the lowest one only.
        self.setSpecialValueText(words[min(words)])
        self.setKeyboardTracking(False)
        self.lineEdit().setTextMargins(8, 0, 0, 0)

    def textFromValue(self, value: int) -> str:
        return self._words.get(value) or super().textFromValue(value)


class HardwarePage(QWidget):
    """Emits `changed` after each change; what is chosen then is `taken_into`. Devices are asked for by `begin`."""

    changed = Signal()

    def __init__(self, controller: HardwareController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._shown = Preferences()
        # A list of choices tells of its first entry.
        self._filling = True
        form = form_of(self)
        form.addRow(
            caption(self.tr("These take effect when the model is loaded again, which happens as this window closes."))
        )
        self.devices = DevicesView(controller)
        form.addRow(self.devices)
        add_heading(form, self.tr("Target"), self.tr("Layers that are on no GPU are computed by the processor."))
        self.device = _combo(self._take)
        self.layers = LayersBox({_ALL: self.tr("As many as fit")})
        self.split = _combo(self._take)
        for split, words in (
            (Split.LAYER, self.tr("By layers")),
            (Split.ROW, self.tr("By rows of each matrix")),
            (Split.NONE, self.tr("Not at all: the one with the most memory")),
        ):
            self.split.addItem(words, split)
        self._device_row = CheckedRow(form, self.tr("Device"), self.device)
        self._layers_row = CheckedRow(form, self.tr("GPU layers"), self.layers)
        self._split_row = CheckedRow(
            form, self.tr("Shared out"), self.split, self.tr("How several GPUs share the target.")
        )
        add_heading(
            form,
            self.tr("Draft model"),
            self.tr("It writes several tokens for each check, so it gains most from a fast device."),
        )
        self.draft_device = _combo(self._take)
        self.draft_layers = LayersBox({_AS_TARGET: self.tr("As the target"), _ALL: self.tr("As many as fit")})
        self._draft_device_row = CheckedRow(form, self.tr("Device"), self.draft_device)
        self._draft_layers_row = CheckedRow(form, self.tr("GPU layers"), self.draft_layers)
        self.draft_device.setAccessibleName(self.tr("Device of the draft model"))
        self.draft_layers.setAccessibleName(self.tr("GPU layers of the draft model"))
        add_heading(form, self.tr("Processor"), self.tr("For all that is on no GPU."))
        self.threads = whole_box(0, MOST_THREADS, self._take)
        self.threads.setSpecialValueText(self.tr("Chosen for this machine"))
        self._threads_row = CheckedRow(form, self.tr("Threads"), self.threads)
        add_heading(form, self.tr("Memory"), self.tr("What the chosen pair would take with these settings."))
        self.plan = caption("")
        self.plan.setObjectName("hardwarePlan")
        form.addRow(self.plan)
        add_heading(form, self.tr("In use now"), self.tr("What the engine really did when it loaded the pair."))
        self.used = caption("")
        self.used.setObjectName("hardwareUsed")
        form.addRow(self.used)
        for box in (self.layers, self.draft_layers):
            box.valueChanged.connect(self._take)
        controller.changed.connect(self._show)
        controller.planned.connect(self._show_plan)
        self.show_loaded(None)
        self._show_plan()
        self.show_preferences(self._shown)

    def begin(self) -> None:
        """The page is looked at."""
        self._controller.look()
        self._weigh()

    def show_preferences(self, preferences: Preferences) -> None:
        """Show these, without telling anyone."""
        self._shown = preferences
        self._show()

    def show_loaded(self, loaded: Loaded | None) -> None:
        lines = [] if loaded is None else placement_lines(loaded)
        nothing = self.tr("No model is loaded.") if loaded is None else self.tr("This engine does not tell.")
        self.used.setText("\n".join(lines) or nothing)

    def taken_into(self, before: Preferences) -> Preferences:
        """`before` with what the page shows."""
        of_draft = self.draft_layers.value()
        return replace(
            before,
            load_settings=replace(
                before.load_settings,
                threads=self.threads.value() or None,
                device=self.device.currentData(),
                gpu_layers=self.layers.value(),
                split=self.split.currentData(),
                draft_device=self.draft_device.currentData(),
                draft_gpu_layers=None if of_draft == _AS_TARGET else of_draft,
            ),
        )

    # -- what is shown

    @Slot()
    def _show(self) -> None:
        settings = self._shown.load_settings
        self._filling = True
        self._fill_devices(self.device, self.tr("Automatic"), settings.device)
        self._fill_devices(self.draft_device, self.tr("As the target"), settings.draft_device)
        self.layers.setValue(settings.gpu_layers)
        of_draft = settings.draft_gpu_layers
        self.draft_layers.setValue(_AS_TARGET if of_draft is None else of_draft)
        self.split.setCurrentIndex(self.split.findData(settings.split))
        self.threads.setValue(settings.threads or 0)
        self._filling = False
        self._show_what_counts(settings)

    def _show_what_counts(self, settings: LoadSettings) -> None:
        """What can be chosen now, and what is wrong with what was chosen before."""
        devices = self._devices
        known = devices is not None
        processor = settings.device == CPU_DEVICE
        of_draft = settings.device_of_draft
        none = known and not automatic_gpus(devices or ())
        nothing_there = self.tr("There is no GPU that the engine can use.") if none else ""
        on_processor = self.tr("The processor takes all of them.")
        self._layers_row.overrule(nothing_there or (on_processor if processor else ""))
        self._draft_layers_row.overrule(nothing_there or (on_processor if of_draft == CPU_DEVICE else ""))
        one = known and len(automatic_gpus(devices or ())) < 2
        why = nothing_there or (self.tr("There is only one GPU.") if one else "")
        if settings.device is not None and not why:
            why = self.tr("One device was chosen.")
        self._split_row.overrule(why)
        for row, name in (
            (self._device_row, settings.device),
            (self._draft_device_row, settings.draft_device),
        ):
            gone = known and name is not None and not self._is_there(name)
            missing = self.tr("The engine does not find {name} now, and loads nothing. Choose another device.")
            row.say(missing.format(name=name) if gone else "")
        for each in (self._layers_row, self._split_row, self._draft_layers_row):
            each.say("")

    @property
    def _devices(self) -> Sequence[Device] | None:
        findings = self._controller.findings
        return None if findings is None else findings.devices

    def _is_there(self, name: str) -> bool:
        return name == CPU_DEVICE or any(each.name == name for each in self._devices or () if each.is_gpu)

    def _fill_devices(self, combo: QComboBox, otherwise: str, chosen: str | None) -> None:
        items: list[tuple[str, str | None]] = [(otherwise, None)]
        items += [(f"{each.name} · {each.description}", each.name) for each in self._devices or () if each.is_gpu]
        items.append((self.tr("Processor only"), CPU_DEVICE))
        if chosen is not None and chosen not in {value for _, value in items}:
            items.append((chosen, chosen))
        if items != [(combo.itemText(place), combo.itemData(place)) for place in range(combo.count())]:
            combo.clear()
            for words, value in items:
                combo.addItem(words, value)
        combo.setCurrentIndex(next(place for place, (_, value) in enumerate(items) if value == chosen))

    @Slot()
    def _show_plan(self) -> None:
        plan = self._controller.plan
        if plan is not None:
            words = plan.sentence
        elif self._controller.weighing:
            words = self.tr("Counting…")
        else:
            words = self.tr("No model is chosen.") if self._shown.target is None else self.tr("Not known.")
        self.plan.setText(words)
        self.plan.setToolTip("" if plan is None else "\n".join(f"{part}: {size}" for part, size in plan.rows()))
        restyle(self.plan, danger=plan is not None and plan.fit is Fit.TOO_LARGE)

    def _weigh(self) -> None:
        target = self._shown.target
        self._controller.plan_for(None if target is None else self._shown.load_request(target, self._shown.draft))

    # -- changes

    @Slot()
    def _take(self) -> None:
        """What the engine would refuse is not taken: the choice before it comes back, with the reason."""
        if self._filling:
            return
        wanted = self.taken_into(self._shown)
        refusal = self._refusal(wanted)
        if refusal is not None and self._refusal(self._shown) is None:
            row = self._row_of(wanted.load_settings)
            self._show()
            row.say(f"{refusal.what} {refusal.why} {refusal.remedy}")
            return
        self._shown = wanted
        self._show_what_counts(wanted.load_settings)
        self._weigh()
        self.changed.emit()

    def _refusal(self, preferences: Preferences) -> UserFacingError | None:
        devices = self._devices
        if devices is None or preferences.target is None:
            return None
        try:
            target_setting(preferences.load_settings, devices)
            draft_setting(preferences.load_settings, devices)
        except UserFacingError as error:
            return error
        return None

    def _row_of(self, wanted: LoadSettings) -> CheckedRow:
        """Where something else stands than before."""
        before = self._shown.load_settings
        rows = {
            "device": self._device_row,
            "gpu_layers": self._layers_row,
            "split": self._split_row,
            "draft_device": self._draft_device_row,
            "draft_gpu_layers": self._draft_layers_row,
        }
        return next(row for name, row in rows.items() if getattr(wanted, name) != getattr(before, name))


class _DeviceBox(QComboBox):
    """Cuts a name that is too long where its room ends; the tool tip has all of it."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, self).width()
        words = option.currentText
        option.currentText = option.fontMetrics.elidedText(words, Qt.TextElideMode.ElideRight, room)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            self.setToolTip(plain_tip(self.currentText()))
        return super().event(event)


def _combo(changed: object) -> QComboBox:
    combo = _DeviceBox()
    # A long name of a card must not make the page as wide.
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(18)
    combo.currentIndexChanged.connect(changed)
    return combo
