"""Every setting in one place, taken over as it changes; what needs the model to be loaded again says so."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QRadioButton,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.ui.background import Worker
from forespeak.ui.form import FormLayout, add_row, caption, form_of, scrolled, whole_box
from forespeak.ui.hardware_controller import HardwareController
from forespeak.ui.hardware_page import HardwarePage
from forespeak.ui.model_page import ModelPage
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.preferences import LONGEST_DRAFT, Appearance, Preferences
from forespeak.ui.sampling_page import SamplingPage
from forespeak.ui.source_settings import SourceSettings
from forespeak.ui.structured_page import StructuredPage
from forespeak.ui.theme import MarkStyle

SAMPLING_PAGE, STRUCTURED_PAGE, HARDWARE_PAGE, HUB_PAGE = 1, 2, 5, 7
"""The numbers of their tabs. That of the Hub is added by whoever knows how the Hub is reached."""

_LEAST_WIDTH = 480


class SettingsDialog(QDialog):
    """Emits `preferencesChanged` with the whole of them after each change.

    The worker does what would keep the window waiting: it checks schemas and looks tokens up. `machine` knows what
    there is to compute on.
    """

    preferencesChanged = Signal(object)
    chatPromptChanged = Signal(str)

    def __init__(
        self,
        preferences: Preferences,
        parent: QWidget | None = None,
        worker: Worker | None = None,
        machine: HardwareController | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("settingsDialog")
        self.setWindowTitle(self.tr("Settings"))
        self._preferences = preferences
        self._filling = False
        self.sampling = SamplingPage(worker)
        self.sampling.changed.connect(self._take)
        self.structured = StructuredPage(worker)
        self.structured.changed.connect(self._take)
        self.model = ModelPage()
        self.model.changed.connect(self._take)
        self.hardware = HardwarePage(machine or HardwareController(self))
        self.hardware.changed.connect(self._take)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.addTab(scrolled(self._chat_page()), self.tr("Chat"))
        self.tabs.addTab(scrolled(self.sampling), self.tr("Sampling"))
        self.tabs.addTab(scrolled(self.structured), self.tr("Output"))
        self.tabs.addTab(scrolled(self._speculation_page()), self.tr("Speculation"))
        self.tabs.addTab(scrolled(self.model), self.tr("Model"))
        self.tabs.addTab(scrolled(self.hardware), self.tr("Hardware"))
        self.tabs.addTab(scrolled(self._look_page()), self.tr("Appearance"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.reset = buttons.addButton(self.tr("Reset sampling"), QDialogButtonBox.ButtonRole.ResetRole)
        buttons.rejected.connect(self.reject)
        self.reset.clicked.connect(self._reset)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.addWidget(self.tabs, 1)
        layout.addWidget(buttons)
        self.setMinimumSize(_LEAST_WIDTH, 400)
        self.resize(600, 640)
        self.tabs.currentChanged.connect(self._page_changed)
        self._page_changed(0)
        self.set_preferences(preferences)

    def add_page(self, page: QWidget, title: str) -> None:
        """Behind the others. It keeps what it changes by itself."""
        self.tabs.addTab(scrolled(page), title)
        # All the tabs in sight.
        self.resize(max(self.width(), self.tabs.tabBar().sizeHint().width() + 40), self.height())

    def showEvent(self, event: QShowEvent) -> None:
        """No page is cut at its right, whatever the fonts."""
        super().showEvent(event)
        pages = [page for area in self.tabs.findChildren(QScrollArea) if (page := area.widget()) is not None]
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        widest = max(page.minimumSizeHint().width() for page in pages)
        margins = self.layout().contentsMargins()  # type: ignore[union-attr]
        self.setMinimumWidth(max(_LEAST_WIDTH, widest + bar + margins.left() + margins.right() + 4))

    @Slot(int)
    def _page_changed(self, page: int) -> None:
        self.reset.setVisible(page == SAMPLING_PAGE)
        if page == HARDWARE_PAGE:
            self.hardware.begin()

    def set_preferences(self, preferences: Preferences) -> None:
        """Show these, without telling anyone."""
        self._preferences = preferences
        self._filling = True
        if self.system_prompt.toPlainText() != preferences.system_prompt:
            self.system_prompt.setPlainText(preferences.system_prompt)
        self.max_tokens.setValue(preferences.max_tokens or 0)
        self.sampling.show_settings(preferences.sampling, preferences.random_seed, preferences.target)
        self.structured.show_output(preferences.output)
        self.coupled.setChecked(preferences.rule is Rule.COUPLED)
        self.rejection.setChecked(preferences.rule is Rule.REJECTION)
        self.draft_length.setValue(preferences.draft_length or 0)
        self.text_sources.set_settings(preferences.text_sources)
        self.model.show_preferences(preferences)
        self.hardware.show_preferences(preferences)
        self.appearance.setCurrentIndex(self.appearance.findData(preferences.appearance))
        self.colour_blind.setChecked(preferences.colour_blind)
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
        page, fields = QWidget(), QWidget()
        example = self.tr("For example: Answer briefly and name your sources.")
        self.chat_prompt = _prompt_box(example)
        self.chat_prompt.textChanged.connect(self._take_chat_prompt)
        self.system_prompt = _prompt_box(example)
        self.system_prompt.textChanged.connect(self._take)
        why = self.tr("The model reads it before the first message. A change counts from the next reply on.")
        column = QVBoxLayout(page)
        column.setContentsMargins(8, 16, 8, 8)
        column.setSpacing(6)
        for words, box, note in (
            (self.tr("System prompt of this chat"), self.chat_prompt, why),
            (self.tr("System prompt of new chats"), self.system_prompt, ""),
        ):
            box.setAccessibleName(words)
            box.setAccessibleDescription(note)
            column.addWidget(PlainLabel(words))
            column.addWidget(box, 1)
            if note:
                column.addWidget(caption(note))
            column.addSpacing(10)
        column.addWidget(fields)
        form = form_of(fields)
        form.setContentsMargins(0, 0, 0, 0)
        self.max_tokens = whole_box(0, 1_000_000, self._take)
        self.max_tokens.setSpecialValueText(self.tr("Until the context is full"))
        self.max_tokens.setSingleStep(64)
        add_row(form, self.tr("Longest reply"), self.max_tokens, self.tr("In tokens."))
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
            column.addWidget(caption(button.accessibleDescription()))
        form.addRow(self.tr("Rule"), rules)
        self.draft_length = whole_box(0, LONGEST_DRAFT, self._take)
        self.draft_length.setSpecialValueText(self.tr("Auto"))
        add_row(
            form,
            self.tr("Draft length"),
            self.draft_length,
            self.tr("Tokens guessed before each check. Auto drafts as many as pay here, and none where none do."),
        )
        self.text_sources = SourceSettings()
        self.text_sources.changed.connect(self._take)
        form.addRow(self.tr("Text sources"), self.text_sources)
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
        add_row(form, self.tr("Theme"), self.appearance)
        self.colour_blind = QCheckBox(self.tr("For colour-blind eyes"))
        self.colour_blind.toggled.connect(self._take)
        add_row(form, self.tr("Colours"), self.colour_blind)
        self.marks = QComboBox()
        for style, words in (
            (MarkStyle.OFF, self.tr("Off")),
            (MarkStyle.SUBTLE, self.tr("Subtle: underlines")),
            (MarkStyle.STRONG, self.tr("Strong: underlines and colours")),
        ):
            self.marks.addItem(words, style.value)
        self.marks.currentIndexChanged.connect(self._take)
        add_row(
            form, self.tr("Token marks"), self.marks, self.tr("How loudly a reply shows where its tokens came from.")
        )
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
        self._preferences = replace(
            self.hardware.taken_into(self.model.taken_into(before)),
            system_prompt=self.system_prompt.toPlainText(),
            max_tokens=self.max_tokens.value() or None,
            sampling=self.sampling.settings_from(before.sampling),
            random_seed=self.sampling.random,
            output=self.structured.output,
            rule=Rule.REJECTION if self.rejection.isChecked() else Rule.COUPLED,
            draft_length=self.draft_length.value() or None,
            text_sources=self.text_sources.settings,
            appearance=self.appearance.currentData(),
            colour_blind=self.colour_blind.isChecked(),
            marks=self.marks.currentData(),
        )
        if self._preferences != before:
            # Each page weighs its own choices against those of the other.
            self.model.show_preferences(self._preferences)
            self.hardware.show_preferences(self._preferences)
            self.preferencesChanged.emit(self._preferences)


def _prompt_box(example: str) -> QPlainTextEdit:
    box = QPlainTextEdit()
    box.setPlaceholderText(example)
    box.setTabChangesFocus(True)
    box.setMinimumHeight(110)
    # As high as there is room: a page that can scroll would be as high as Qt likes such a box.
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
    return box


def _page() -> tuple[QWidget, FormLayout]:
    page = QWidget()
    return page, form_of(page)
