"""Every setting in one place, taken over as it changes; what needs the model to be loaded again says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QRadioButton,
    QScrollArea,
    QSpinBox,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from forespeak.speculation.sampling import SamplingSettings
from forespeak.speculation.verify import Rule
from forespeak.ui.preferences import LONGEST_DRAFT, Appearance, Preferences
from forespeak.ui.theme import MarkStyle

SAMPLING_PAGE = 1
"""The number of its tab."""


class SettingsDialog(QDialog):
    """Emits `preferencesChanged` with the whole of them after each change."""

    preferencesChanged = Signal(object)
    chatPromptChanged = Signal(str)

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("settingsDialog")
        self.setWindowTitle(self.tr("Settings"))
        self._preferences = preferences
        self._filling = False
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(_scrolled(self._chat_page()), self.tr("Chat"))
        self.tabs.addTab(_scrolled(self._sampling_page()), self.tr("Sampling"))
        self.tabs.addTab(_scrolled(self._speculation_page()), self.tr("Speculation"))
        self.tabs.addTab(_scrolled(self._engine_page()), self.tr("Model"))
        self.tabs.addTab(_scrolled(self._look_page()), self.tr("Appearance"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.reset = buttons.addButton(self.tr("Reset sampling"), QDialogButtonBox.ButtonRole.ResetRole)
        buttons.rejected.connect(self.reject)
        self.reset.clicked.connect(self._reset)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.addWidget(self.tabs, 1)
        layout.addWidget(buttons)
        self.resize(560, 620)
        self.tabs.currentChanged.connect(self._page_changed)
        self._page_changed(0)
        self.set_preferences(preferences)

    @Slot(int)
    def _page_changed(self, page: int) -> None:
        self.reset.setVisible(page == SAMPLING_PAGE)

    def set_preferences(self, preferences: Preferences) -> None:
        """Show these, without telling anyone."""
        self._preferences = preferences
        self._filling = True
        sampling = preferences.sampling
        if self.system_prompt.toPlainText() != preferences.system_prompt:
            self.system_prompt.setPlainText(preferences.system_prompt)
        self.max_tokens.setValue(preferences.max_tokens or 0)
        for name, box in self._numbers.items():
            box.setValue(getattr(sampling, name))
        self.random_seed.setChecked(preferences.random_seed)
        self.seed.setText(str(sampling.seed))
        self.seed.setEnabled(not preferences.random_seed)
        self.coupled.setChecked(preferences.rule is Rule.COUPLED)
        self.rejection.setChecked(preferences.rule is Rule.REJECTION)
        self.draft_length.setValue(preferences.draft_length or 0)
        self.context_length.setValue(preferences.context_length or 0)
        self.threads.setValue(preferences.threads or 0)
        self.reproducible.setChecked(preferences.reproducible)
        self.appearance.setCurrentIndex(self.appearance.findData(preferences.appearance))
        self.marks.setCurrentIndex(max(0, self.marks.findData(preferences.marks)))
        self._filling = False

    def set_chat_prompt(self, text: str | None) -> None:
        """The open chat's; None while there is no chat to have one."""
        self._filling = True
        self.chat_prompt.setEnabled(text is not None)
        if self.chat_prompt.toPlainText() != (text or ""):
            self.chat_prompt.setPlainText(text or "")
        self._filling = False

    @property
    def preferences(self) -> Preferences:
        return self._preferences

    # -- pages

    def _chat_page(self) -> QWidget:
        page, form = _page()
        example = self.tr("For example: Answer briefly and name your sources.")
        self.chat_prompt = _prompt_box(example)
        self.chat_prompt.textChanged.connect(self._take_chat_prompt)
        why = self.tr("The model reads it before the first message. A change counts from the next reply on.")
        _row(form, self.tr("System prompt of this chat"), self.chat_prompt, why)
        self.system_prompt = _prompt_box(example)
        self.system_prompt.textChanged.connect(self._take)
        _row(form, self.tr("System prompt of new chats"), self.system_prompt, "")
        self.max_tokens = _spin(0, 1_000_000, self._take)
        self.max_tokens.setSpecialValueText(self.tr("Until the context is full"))
        self.max_tokens.setSingleStep(64)
        _row(form, self.tr("Longest reply"), self.max_tokens, self.tr("In tokens."))
        return page

    def _sampling_page(self) -> QWidget:
        page, form = _page()
        self._numbers: dict[str, QDoubleSpinBox | QSpinBox] = {}

        def number(name: str, words: str, why: str, low: float, high: float, step: float) -> None:
            box = QDoubleSpinBox()
            _indent(box)
            box.setDecimals(2)
            box.setRange(low, high)
            box.setSingleStep(step)
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self._take)
            self._numbers[name] = box
            _row(form, words, box, why)

        def whole(name: str, words: str, why: str, high: int) -> None:
            box = _spin(0, high, self._take)
            self._numbers[name] = box
            _row(form, words, box, why)

        number("temperature", self.tr("Temperature"), self.tr("0 always takes the likeliest token."), 0, 5, 0.05)
        whole("top_k", self.tr("Top-k"), self.tr("Only the k likeliest tokens. 0 switches it off."), 1000)
        why = self.tr("The likeliest tokens that add up to p. 1 switches it off.")
        number("top_p", self.tr("Top-p"), why, 0, 1, 0.01)
        number(
            "min_p",
            self.tr("Min-p"),
            self.tr("Tokens at least this share as likely as the best one. 0 switches it off."),
            0,
            1,
            0.01,
        )
        number("repeat_penalty", self.tr("Repeat penalty"), self.tr("1 switches it off."), 0.01, 3, 0.01)
        number("frequency_penalty", self.tr("Frequency penalty"), self.tr("0 switches it off."), -2, 2, 0.05)
        number("presence_penalty", self.tr("Presence penalty"), self.tr("0 switches it off."), -2, 2, 0.05)
        why = self.tr("The last tokens that the penalties look at.")
        whole("penalty_window", self.tr("Penalty window"), why, 65536)
        self.random_seed = QCheckBox(self.tr("A new seed for every reply"))
        self.random_seed.toggled.connect(self._take)
        self.seed = QLineEdit()
        self.seed.setAccessibleName(self.tr("Seed"))
        self.seed.editingFinished.connect(self._take)
        _row(form, self.tr("Seed"), self.seed, self.tr("The same seed, settings and chat give the same reply."))
        form.addRow("", self.random_seed)
        return page

    def _speculation_page(self) -> QWidget:
        page, form = _page()
        self.coupled = QRadioButton(self.tr("Coupled"))
        self.rejection = QRadioButton(self.tr("Rejection"))
        for button, why in (
            (
                self.coupled,
                self.tr("The words depend on the seed and the target alone: the same with and without a draft."),
            ),
            (
                self.rejection,
                self.tr(
                    "Accepts a little more of what is drafted at higher temperatures. The words follow the target's "
                    "probabilities as exactly, but the same seed gives other words with another draft."
                ),
            ),
        ):
            button.setAccessibleDescription(why)
            button.toggled.connect(self._take)
        rules = QWidget()
        column = QVBoxLayout(rules)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for button in (self.coupled, self.rejection):
            column.addWidget(button)
            column.addWidget(_why(button.accessibleDescription()))
        form.addRow(self.tr("Rule"), rules)
        self.draft_length = _spin(0, LONGEST_DRAFT, self._take)
        self.draft_length.setSpecialValueText(self.tr("Auto"))
        _row(
            form,
            self.tr("Draft length"),
            self.draft_length,
            self.tr("Tokens guessed before each check. Auto drafts as many as pay here, and none where none do."),
        )
        return page

    def _engine_page(self) -> QWidget:
        page, form = _page()
        note = _why(self.tr("These take effect when the model is loaded again, which happens as this window closes."))
        form.addRow(note)
        self.context_length = _spin(0, 1_048_576, self._take)
        self.context_length.setSpecialValueText(self.tr("The model's own, up to 8,192"))
        self.context_length.setSingleStep(1024)
        _row(form, self.tr("Context length"), self.context_length, self.tr("In tokens. Longer takes more memory."))
        self.threads = _spin(0, 1024, self._take)
        self.threads.setSpecialValueText(self.tr("Chosen for this machine"))
        _row(form, self.tr("Threads"), self.threads, "")
        self.reproducible = QCheckBox(self.tr("Reproducible to the last token"))
        self.reproducible.toggled.connect(self._take)
        form.addRow("", self.reproducible)
        form.addRow(
            "",
            _why(
                self.tr(
                    "Checking several tokens at once then gives the same scores as one by one, so that speculation on "
                    "and off write the same words even where two tokens tie. Slower, and takes more memory."
                )
            ),
        )
        return page

    def _look_page(self) -> QWidget:
        page, form = _page()
        self.appearance = QComboBox()
        for value, words in (
            (Appearance.SYSTEM, self.tr("Follow the system")),
            (Appearance.LIGHT, self.tr("Light")),
            (Appearance.DARK, self.tr("Dark")),
        ):
            self.appearance.addItem(words, value)
        self.appearance.currentIndexChanged.connect(self._take)
        _row(form, self.tr("Theme"), self.appearance, "")
        self.marks = QComboBox()
        for style, words in (
            (MarkStyle.OFF, self.tr("Off")),
            (MarkStyle.SUBTLE, self.tr("Subtle: underlines")),
            (MarkStyle.STRONG, self.tr("Strong: underlines and colours")),
        ):
            self.marks.addItem(words, style.value)
        self.marks.currentIndexChanged.connect(self._take)
        _row(form, self.tr("Token marks"), self.marks, self.tr("How loudly a reply shows where its tokens came from."))
        return page

    # -- changes

    @Slot()
    def _reset(self) -> None:
        self.set_preferences(replace(self._preferences, sampling=SamplingSettings(), random_seed=True))
        self.preferencesChanged.emit(self._preferences)

    @Slot()
    def _take_chat_prompt(self) -> None:
        if not self._filling:
            self.chatPromptChanged.emit(self.chat_prompt.toPlainText())

    @Slot()
    def _take(self) -> None:
        if self._filling:
            return
        before = self._preferences
        values: dict[str, Any] = {name: box.value() for name, box in self._numbers.items()}
        values["seed"] = _seed(self.seed.text(), before.sampling.seed)
        sampling = replace(before.sampling, **values)
        self._preferences = replace(
            before,
            system_prompt=self.system_prompt.toPlainText(),
            max_tokens=self.max_tokens.value() or None,
            sampling=sampling,
            random_seed=self.random_seed.isChecked(),
            rule=Rule.REJECTION if self.rejection.isChecked() else Rule.COUPLED,
            draft_length=self.draft_length.value() or None,
            context_length=_context(self.context_length.value()),
            threads=self.threads.value() or None,
            reproducible=self.reproducible.isChecked(),
            appearance=self.appearance.currentData(),
            marks=self.marks.currentData(),
        )
        self.seed.setEnabled(not self._preferences.random_seed)
        if self._preferences != before:
            self.preferencesChanged.emit(self._preferences)


def _prompt_box(example: str) -> QPlainTextEdit:
    box = QPlainTextEdit()
    box.setPlaceholderText(example)
    box.setTabChangesFocus(True)
    box.setMinimumHeight(110)
    return box


def _seed(text: str, otherwise: int) -> int:
    try:
        seed = int(text)
    except ValueError:
        return otherwise
    return seed if 0 <= seed < 2**64 else otherwise


def _context(value: int) -> int | None:
    return max(256, value) if value else None


def _spin(low: int, high: int, changed: Callable[[], None]) -> QSpinBox:
    box = QSpinBox()
    _indent(box)
    box.setRange(low, high)
    box.setGroupSeparatorShown(True)
    box.setKeyboardTracking(False)
    box.valueChanged.connect(changed)
    return box


def _indent(box: QAbstractSpinBox) -> None:
    # Style sheets cannot: a spin box with buttons of their own ignores its padding.
    box.lineEdit().setTextMargins(8, 0, 0, 0)


def _page() -> tuple[QWidget, QFormLayout]:
    page = QWidget()
    form = QFormLayout(page)
    form.setContentsMargins(8, 16, 8, 8)
    form.setHorizontalSpacing(20)
    form.setVerticalSpacing(12)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
    return page, form


def _scrolled(page: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(page)
    return area


def _why(words: str) -> QLabel:
    label = QLabel(words)
    label.setProperty("caption", True)
    label.setWordWrap(True)
    return label


def _row(form: QFormLayout, words: str, field: QWidget, why: str) -> None:
    field.setAccessibleName(words)
    if not why:
        form.addRow(words, field)
        return
    field.setAccessibleDescription(why)
    column = QVBoxLayout()
    column.setSpacing(3)
    column.addWidget(field)
    column.addWidget(_why(why))
    form.addRow(words, column)
