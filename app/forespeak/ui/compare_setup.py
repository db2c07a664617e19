"""Setting a comparison up: lanes, prompts, how often and how long, with an estimate before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFormLayout, QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from forespeak.compare.lanes import Plan
from forespeak.engines.engine import ChatMessage
from forespeak.ui.compare_lanes_edit import LaneOption, LanesEdit
from forespeak.ui.compare_parts import SideBySide, card, time_words, words_label
from forespeak.ui.compare_prompts_edit import PromptsEdit
from forespeak.ui.compare_values import Forecast, PromptKind, Setup
from forespeak.ui.form import add_row, number_box, scrolled, whole_box
from forespeak.ui.theme import LIGHT, Theme

ESTIMATE_DELAY_MS = 200
ON_ONE_PROMPT = 6
"""Repeats from which on an interval is a 95 % one."""


class CompareSetup(QWidget):
    """`changed` when an estimate is wanted anew; `startRequested` with the Setup."""

    startRequested = Signal(object)
    changed = Signal()
    todayRequested = Signal()
    """With the settings of today, and not with those of the comparison that is set up again"""
    modelsRequested = Signal()
    """There is no target: go and choose one."""

    def __init__(self, suites: Sequence[tuple[str, int]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._obstacle = ""
        self._target: str | None = None
        self._told = False
        """A problem stands where the estimate would be."""
        self.target = words_label()
        self.lanes = LanesEdit()
        self.prompts = PromptsEdit(suites)
        self.estimate = words_label()
        self.estimate.setStyleSheet("font-weight: 600;")
        self.basis = words_label(variant="caption")
        self.start_button = QPushButton(self.tr("Start"))
        self.start_button.setProperty("primary", True)
        self.start_button.clicked.connect(self._start)
        self.models_button = QPushButton(self.tr("Choose a model"))
        self.models_button.clicked.connect(self.modelsRequested)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(ESTIMATE_DELAY_MS)
        self._later.timeout.connect(self.changed)
        self.repeats = whole_box(1, 50, self._changed)
        self.repeats.setValue(3)
        self.tokens = whole_box(8, 4096, self._changed)
        self.tokens.setValue(128)
        self.tokens.setSuffix(self.tr(" tokens"))
        self.temperature = number_box(0.0, 2.0, 0.1, self._changed)
        self.minutes = whole_box(0, 600, self._changed)
        self.minutes.setSpecialValueText(self.tr("No limit"))
        self.minutes.setSuffix(self.tr(" min"))
        self.conditions = words_label(variant="caption")
        self.today_button = QPushButton(self.tr("Use today’s settings"))
        self._lay_out()
        self.today_button.clicked.connect(self._today)
        self.show_conditions("")
        self.lanes.changed.connect(self._changed)
        self.prompts.changed.connect(self._changed)
        self._check()

    def _lay_out(self) -> None:
        inside = QWidget()
        inside.setObjectName("compareSetup")
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 6, 8)
        column.setSpacing(16)
        lanes, lanes_column = card(self.tr("LANES"))
        lanes_column.addWidget(self.target)
        lanes_column.addWidget(self.lanes)
        lanes_column.addStretch(1)
        settings, settings_column = card(self.tr("RUNS"))
        form = QFormLayout()
        form.setHorizontalSpacing(20)
        form.setVerticalSpacing(10)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        add_row(form, self.tr("Repeats"), self.repeats, self.tr("How often each prompt is answered in each lane."))
        add_row(form, self.tr("Longest reply"), self.tokens)
        add_row(form, self.tr("Temperature"), self.temperature, self.tr("At 0 the lanes should write the same words."))
        add_row(form, self.tr("Time limit"), self.minutes, self.tr("What is done by then is kept."))
        settings_column.addLayout(form)
        settings_column.addWidget(self.conditions)
        settings_column.addWidget(self.today_button, 0, Qt.AlignmentFlag.AlignLeft)
        settings_column.addStretch(1)
        both = SideBySide()
        both.add(lanes)
        both.add(settings)
        column.addWidget(both)
        prompts, prompts_column = card(self.tr("PROMPTS"))
        prompts_column.addWidget(self.prompts)
        column.addWidget(prompts)
        column.addStretch(1)
        self._area = scrolled(inside, parts_have_focus=True)
        below = QFrame()
        row = QHBoxLayout(below)
        row.setContentsMargins(0, 8, 6, 0)
        row.setSpacing(12)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.estimate)
        words.addWidget(self.basis)
        row.addLayout(words, 1)
        row.addWidget(self.models_button, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.start_button, 0, Qt.AlignmentFlag.AlignTop)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(4)
        outer.addWidget(self._area, 1)
        outer.addWidget(below)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.lanes.set_theme(theme)

    # -- what it is told

    def set_target(self, name: str) -> None:
        """The chat's target; nothing if none is chosen."""
        if name != self._target:
            self._target = name
            self.set_former_target("")
        self.models_button.setVisible(not name)
        self.set_obstacle("" if name else self.tr("Choose a model in the chat first: its target is what is compared."))

    def set_former_target(self, name: str) -> None:
        """What an earlier comparison was of, which is set up again with the target of now."""
        words = self.tr("Target: {0}").format(self._target) if self._target else self.tr("No target is chosen.")
        if name:
            words = self.tr("{0}. The earlier comparison was of {1}.").format(words, name)
        self.target.setText(words)

    def show_conditions(self, words: str) -> None:
        """How it is measured, where that is not as the chat is set; nothing where it is."""
        if not words and self.today_button.hasFocus():
            self.take_focus()
        self.conditions.setText(words)
        self.conditions.setVisible(bool(words))
        self.today_button.setVisible(bool(words))

    def set_obstacle(self, words: str) -> None:
        """Why nothing can start now, whatever is set here."""
        gone = bool(self._obstacle) and not words
        self._obstacle = words
        self._check()
        if gone:
            # The estimate comes back in its place.
            self._later.start()

    def set_options(self, options: Sequence[LaneOption]) -> None:
        self.lanes.set_options(options)
        self._changed()

    def set_chat(self, messages: Sequence[ChatMessage]) -> None:
        self.prompts.set_chat(messages)

    def set_forecast(self, forecast: Forecast | None) -> None:
        """None while there is nothing to estimate."""
        if self._problem():
            return
        if forecast is None:
            self.estimate.setText("")
            self.basis.setText("")
            return
        runs = self.tr("1 run") if forecast.runs == 1 else self.tr("{0} runs").format(f"{forecast.runs:,}")
        if forecast.least is None or forecast.most is None:
            self.estimate.setText(self.tr("{0}. How long that takes shows after the first ones.").format(runs))
        else:
            low, high = time_words(forecast.least), time_words(forecast.most)
            span = self.tr("about {0}").format(high)
            if low != high:
                # “2 to 7 min”: the unit once where it is the same.
                low = low.partition(" ")[0] if low.partition(" ")[2] == high.partition(" ")[2] else low
                span = self.tr("{0} to {1}").format(low, high)
            words = self.tr("{0}, {1}").format(runs, span)
            minutes = self.minutes.value()
            if minutes and forecast.most > 60 * minutes:
                words = self.tr("{0}: ended after {1} min with what is done").format(words, minutes)
            self.estimate.setText(words)
        self.basis.setText(forecast.basis)
        self.basis.setVisible(bool(forecast.basis))

    def choose_chat_prompt(self, messages: Sequence[ChatMessage]) -> None:
        """Ready to start on one prompt of the chat."""
        self.prompts.set_chat(messages)
        self.prompts.choose(PromptKind.CHAT)
        # One prompt answered a few times says little.
        self.repeats.setValue(max(self.repeats.value(), ON_ONE_PROMPT))
        self.start_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_note(self, words: str) -> None:
        """What came of the last one, until something is changed."""
        self.basis.setText(words)
        self.basis.setVisible(bool(words))

    def take_plan(self, plan: Plan) -> None:
        """As an earlier comparison was, its prompts apart where they were the user's own."""
        lanes = list(plan.lanes)
        first = next((lane for lane in lanes if lane.is_off and lane.temperature is None), None)
        if first is not None:
            # It stands there by itself.
            lanes.remove(first)
        self.lanes.set_lanes(lanes)
        minutes = 0 if plan.budget_seconds is None else max(1, round(plan.budget_seconds / 60))
        for box, value in ((self.repeats, plan.repeats), (self.tokens, plan.tokens), (self.minutes, minutes)):
            # The command line takes more than is offered here.
            box.setRange(min(box.minimum(), value), max(box.maximum(), value))
            box.setValue(value)
        self.temperature.setValue(plan.sampling.temperature)
        self.prompts.take_prompts(plan.prompts)
        self._changed()

    @property
    def setup(self) -> Setup:
        return Setup(
            self.lanes.lanes,
            self.prompts.choice,
            self.repeats.value(),
            self.tokens.value(),
            self.temperature.value(),
            self.minutes.value() or None,
        )

    @property
    def can_start(self) -> bool:
        return not self._problem()

    def take_focus(self) -> None:
        first = self.start_button if self.can_start else self.models_button
        first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # -- inside

    def _problem(self) -> str:
        return self._obstacle or self.prompts.problem

    @Slot()
    def _changed(self, *_: object) -> None:
        self._check()
        self._later.start()

    def _check(self) -> None:
        problem = self._problem()
        self.start_button.setEnabled(not problem)
        if problem or self._told:
            self.estimate.setText(problem)
            self.basis.setText("")
            self.basis.hide()
        self._told = bool(problem)
        self.start_button.setAccessibleDescription(problem)

    @Slot()
    def _today(self) -> None:
        self.todayRequested.emit()

    @Slot()
    def _start(self) -> None:
        if self.can_start:
            self.startRequested.emit(self.setup)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.prompts.set_room(event.size().width() - 60)
