"""Step 4 of the pairing wizard: under which name the pair is kept, with which settings, and what it is used for."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.engines.parity_result import ParityResult
from forespeak.pairing.named_pair import PairSettings
from forespeak.pairing.parity_words import explanation
from forespeak.speculation.trace import Source
from forespeak.ui.draft_sources import in_order
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.form import add_row, caption, scrolled, whole_box
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.preferences import LONGEST_DRAFT
from forespeak.ui.theme import Theme
from forespeak.ui.wizard_controller import WizardController, uses_model
from forespeak.ui.wizard_state import WizardStep
from forespeak.ui.wizard_tester import CheckStatus, Room
from forespeak.ui.wizard_words import measured_words, times

USUAL_LENGTH = 4


class KeepStep(QWidget):
    submitted = Signal()
    """Enter in the name: keep it"""

    def __init__(self, controller: WizardController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._shown_for: object = None
        self.measured = PlainLabel()
        self.measured.setWordWrap(True)
        self.name = QLineEdit()
        self.name.setMaxLength(200)
        self.name.returnPressed.connect(self.submitted)
        self.looks_up = QCheckBox(self.tr("Look words up in the text first"))
        self.looks_up.toggled.connect(self._settings_changed)
        self.auto = QCheckBox(self.tr("As many drafted tokens as pay"))
        self.auto.toggled.connect(self._auto_toggled)
        self.length = whole_box(1, LONGEST_DRAFT, self._settings_changed)
        self.length.setFixedWidth(90)
        self.length.setAccessibleName(self.tr("Drafted tokens at a time"))
        length = QWidget()
        row = QHBoxLayout(length)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self.auto)
        row.addWidget(self.length)
        row.addStretch(1)
        self.settings_note = caption("")
        self.default = QCheckBox(self.tr("Use it whenever this target is chosen"))

        self.check_words = PlainLabel()
        self.check_words.setWordWrap(True)
        self.check_bar = QProgressBar()
        self.check_bar.setTextVisible(False)
        self.check_bar.setRange(0, 1000)
        self.check_button = QPushButton(self.tr("Check now"))
        self.check_button.clicked.connect(self._check)
        self.refuse_button = QPushButton(self.tr("Do not check"))
        self.refuse_button.clicked.connect(controller.tester.stop_check)
        check = QWidget()
        column = QVBoxLayout(check)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.check_words)
        column.addWidget(self.check_bar)
        answers = FlowRow()
        answers.add(self.check_button)
        answers.add(self.refuse_button)
        column.addWidget(answers)

        card = QFrame()
        card.setProperty("card", True)
        form = QFormLayout(card)
        form.setContentsMargins(18, 16, 18, 16)
        form.setHorizontalSpacing(24)
        form.setVerticalSpacing(14)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.addRow(self.tr("Test"), self.measured)
        add_row(form, self.tr("Name"), self.name)
        drafts = QWidget()
        column = QVBoxLayout(drafts)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.looks_up)
        column.addWidget(length)
        column.addWidget(self.settings_note)
        form.addRow(self.tr("Drafts"), drafts)
        form.addRow(self.tr("Default"), self.default)
        form.addRow(self.tr("Same words"), check)
        content = QWidget()
        outer = QVBoxLayout(content)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(card)
        outer.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(content, see_through=True))
        controller.tester.checkChanged.connect(self._show_check)
        controller.changed.connect(self._show_measured)
        controller.foundChanged.connect(self._found_changed)
        controller.keeper.kept.connect(self._forget)
        self._show_check()

    def set_theme(self, theme: Theme) -> None:
        """Everything here is coloured by the style sheet."""

    def take_focus(self) -> None:
        self.name.setFocus(Qt.FocusReason.TabFocusReason)
        self.name.selectAll()

    def begin(self) -> None:
        """The step is shown: fill in what is usual, unless this pair was being filled in already."""
        controller, about = self._controller, self._about()
        if about != self._shown_for:
            self._shown_for = about
            settings = controller.settings
            self.name.setText(controller.usual_name)
            self.looks_up.setChecked(any(not source.uses_model for source in settings.sources))
            self.auto.setChecked(settings.draft_length is None)
            self.length.setValue(settings.draft_length or USUAL_LENGTH)
            self.default.setChecked(controller.is_default)
        with_model = uses_model(controller.settings.sources)
        self.looks_up.setVisible(with_model)
        self.length.setEnabled(not self.auto.isChecked())
        controller.look_for_parity()
        self._show_measured()
        self._settings_changed()

    def _about(self) -> object:
        """What is filled in, as it is kept now: a pair may have been changed in the list since."""
        controller, state, pair = self._controller, self._controller.state, self._controller.pair
        is_default = None if pair is None else pair.is_default
        return state.target, state.chosen, state.pair_id, controller.usual_name, controller.settings, is_default

    @Slot()
    def _forget(self, *_: object) -> None:
        """It was kept: the next one begins with what is usual, even of the same two models."""
        self._shown_for = None

    @Slot()
    def _found_changed(self) -> None:
        """After a restart the step may be on show before its pair is known."""
        controller = self._controller
        here = controller.state.step is WizardStep.KEEP and controller.line is not None
        if here and self._about() != self._shown_for:
            self.begin()

    @property
    def settings(self) -> PairSettings:
        before = self._controller.settings
        sources = before.sources
        if uses_model(sources):
            others = [source for source in sources if not source.uses_model] or [Source.PROMPT_LOOKUP]
            sources = in_order([Source.DRAFT_MODEL, *(others if self.looks_up.isChecked() else ())])
        length = None if self.auto.isChecked() else self.length.value()
        return PairSettings(sources, length, before.rule, before.context_length)

    def keep(self, *, use: bool) -> None:
        self._controller.keep(self.name.text(), self.settings, as_default=self.default.isChecked(), use=use)

    @Slot()
    def _show_measured(self) -> None:
        measured = self._controller.state.measurement
        if measured is None:
            self.measured.setText(self.tr("Not tested. What it brings is only supposed."))
        else:
            words = self.tr("{gain} as fast. {measured}")
            self.measured.setText(words.format(gain=times(measured.speed_up.value), measured=measured_words(measured)))

    @Slot()
    def _settings_changed(self) -> None:
        tested = self._controller.state.measurement is not None
        other = tested and not self._controller.tested_so(self.settings)
        self.settings_note.setText(
            self.tr("The test was made with other settings: its figures will be shown as out of date.") if other else ""
        )
        self.settings_note.setVisible(other)

    @Slot(bool)
    def _auto_toggled(self, on: bool) -> None:
        self.length.setEnabled(not on)
        self._settings_changed()

    @Slot()
    def _check(self) -> None:
        tester = self._controller.tester
        if tester.check.room is not None:
            tester.allow_check()
        elif tester.check.running:
            tester.stop_check()
        else:
            self._controller.start_check()

    @Slot()
    def _show_check(self) -> None:
        check = self._controller.tester.check
        self.check_words.setText(self._words_of(check))
        self.check_bar.setVisible(check.running)
        fraction = 0.0 if check.progress is None else check.progress.fraction
        self.check_bar.setValue(round(1000 * fraction))
        self.check_bar.setAccessibleName(self.check_words.text())
        words = self.tr("Check now") if check.result is None else self.tr("Check again")
        if check.room is not None:
            alone = check.room.room is Room.ALONE
            words = self.tr("Unload it and check") if alone else self.tr("Check anyway")
        elif check.running:
            words = self.tr("Stop")
        self.check_button.setText(words)
        self.check_button.setEnabled(not check.stopping)
        self._show_refusal(wanted=check.room is not None)

    def _show_refusal(self, *, wanted: bool) -> None:
        """Whoever pressed the button goes on with the keyboard, and answers no question before it was read."""
        had_focus = self.refuse_button.hasFocus()
        if wanted and self.check_button.hasFocus() and self.refuse_button.isHidden():
            self.refuse_button.show()
            self.refuse_button.setFocus()
        self.refuse_button.setVisible(wanted)
        if had_focus and not wanted:
            self.check_button.setFocus()

    def _words_of(self, check: CheckStatus) -> str:
        if check.room is not None:
            words = self.tr("{sentence} The system may become slow, or end the check.")
            if check.room.room is Room.ALONE:
                words = self.tr(
                    "{sentence} Shall the chat's pair be unloaded for the check? It is loaded again with the next "
                    "message."
                )
            return words.format(sentence=check.room.sentence)
        if check.running:
            doing = "" if check.progress is None else check.progress.doing
            return self.tr("Stopping") if check.stopping else doing or self.tr("Loading the pair")
        if check.error is not None:
            return str(check.error)
        if check.result is None:
            return self.tr(
                "A dozen prompts are answered with and without drafts, and every word is compared: a minute or more. "
                "It can be done later, too."
            )
        return _found(check.result)


def _found(result: ParityResult) -> str:
    difference = result.first_difference
    words = f"{result.equal} of {len(result.cases)} replies have the same words."
    return words if difference is None else f"{words} {explanation(difference)}"
