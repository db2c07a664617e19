"""Step 3 of the pairing wizard: twenty seconds of the user's kind of work, with drafts and without, live."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.pairing.quick_prompts import KINDS_OF_WORK, quick_prompts
from forespeak.pairing.quick_test import PromptResult, Writing
from forespeak.pairing.ranking import Measurement
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.form import caption, scrolled
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.theme import Theme
from forespeak.ui.wizard_controller import LOOKUP_KEY, WizardController
from forespeak.ui.wizard_tester import Room, TestPhase, TestStatus
from forespeak.ui.wizard_words import Outcome, measured_words, outcome_of, outcome_words, share_words, times, work_words

LONGEST_SNIPPET = 280


class _Figure(QWidget):
    """A number with its name above it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.value = PlainLabel("–")
        self.value.setObjectName("wizardFigure")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        label = caption(name)
        label.setWordWrap(False)
        column.addWidget(label)
        column.addWidget(self.value)

    def show_value(self, words: str) -> None:
        self.value.setText(words)
        self.value.setAccessibleName(f"{self._name}: {words}")


class TestStep(QWidget):
    __test__ = False  # pytest would take it for tests

    def __init__(self, controller: WizardController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self.kind_box = QComboBox()
        for kind in KINDS_OF_WORK:
            self.kind_box.addItem(work_words(kind), kind)
        self.kind_box.setAccessibleName(self.tr("Your kind of work"))
        self.kind_box.setMinimumWidth(220)
        self.kind_box.activated.connect(self._kind_chosen)
        self.start_button = QPushButton(self.tr("Start the test"))
        self.start_button.clicked.connect(self._start)
        self.stop_button = QPushButton(self.tr("Stop"))
        self.stop_button.clicked.connect(controller.tester.stop)
        row = FlowRow()
        kind_label = PlainLabel(self.tr("Your kind of work"))
        kind_label.setBuddy(self.kind_box)
        for part in (kind_label, self.kind_box, self.start_button, self.stop_button):
            row.add(part)
        self.intro = PlainLabel()
        self.intro.setObjectName("quietNote")
        self.intro.setWordWrap(True)

        self.question = QFrame()
        self.question.setProperty("card", True)
        self.question_words = PlainLabel()
        self.question_words.setWordWrap(True)
        self.allow_button = QPushButton()
        self.allow_button.setProperty("primary", True)
        self.allow_button.clicked.connect(controller.tester.allow)
        self.refuse_button = QPushButton(self.tr("Do not test"))
        self.refuse_button.clicked.connect(controller.tester.stop)
        answers = QHBoxLayout()
        answers.addWidget(self.allow_button)
        answers.addWidget(self.refuse_button)
        answers.addStretch(1)
        inside = QVBoxLayout(self.question)
        inside.setContentsMargins(18, 14, 18, 14)
        inside.setSpacing(10)
        inside.addWidget(self.question_words)
        inside.addLayout(answers)

        self.card = QFrame()
        self.card.setProperty("card", True)
        self.headline = PlainLabel()
        self.headline.setObjectName("wizardHeadline")
        self.headline.setWordWrap(True)
        self.why = PlainLabel()
        self.why.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, 1000)
        self.plain = _Figure(self.tr("Without drafts"))
        self.fast = _Figure(self.tr("With drafts"))
        self.accepted = _Figure(self.tr("Accepted"))
        figures = FlowRow(gap=28)
        for figure in (self.plain, self.fast, self.accepted):
            figures.add(figure)
        self.table = QGridLayout()
        self.table.setHorizontalSpacing(18)
        self.table.setVerticalSpacing(6)
        self.table.setColumnStretch(0, 1)
        self._cells: list[list[PlainLabel]] = []
        for column, words in enumerate(
            (self.tr("Prompt"), self.tr("Without"), self.tr("With drafts"), self.tr("Speed-up"), self.tr("Accepted"))
        ):
            label = caption(words)
            label.setWordWrap(False)
            side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
            self.table.addWidget(label, 0, column, side)
        self.snippet = caption("")
        self.snippet.setMinimumHeight(52)
        self.snippet.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        column_layout = QVBoxLayout(self.card)
        column_layout.setContentsMargins(18, 14, 18, 14)
        column_layout.setSpacing(10)
        for widget in (self.headline, self.why, self.bar):
            column_layout.addWidget(widget)
        column_layout.addWidget(figures)
        column_layout.addLayout(self.table)
        column_layout.addWidget(self.snippet)

        content = QWidget()
        column_all = QVBoxLayout(content)
        column_all.setContentsMargins(0, 0, 0, 0)
        column_all.setSpacing(12)
        column_all.addWidget(row)
        column_all.addWidget(self.intro)
        column_all.addWidget(self.question)
        column_all.addWidget(self.card)
        column_all.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(content, see_through=True))
        controller.tester.changed.connect(self.show_status)
        controller.changed.connect(self.show_status)
        self.show_status()

    def set_theme(self, theme: Theme) -> None:
        """Everything here is coloured by the style sheet."""

    def take_focus(self) -> None:
        for button in (self.allow_button, self.start_button, self.stop_button):
            if button.isVisibleTo(self) and button.isEnabled():
                button.setFocus(Qt.FocusReason.TabFocusReason)
                return

    @Slot()
    def show_status(self) -> None:
        status, state = self._controller.tester.status, self._controller.state
        self.kind_box.setCurrentIndex(max(0, self.kind_box.findData(state.kind)))
        had_focus = self.start_button.hasFocus() or self.stop_button.hasFocus() or self.allow_button.hasFocus()
        asking = status.phase is TestPhase.ASKING
        self.kind_box.setEnabled(not status.running and not asking)
        self.start_button.setVisible(not status.running and not asking)
        measured = state.measurement
        again = measured is not None or status.phase in {TestPhase.DONE, TestPhase.FAILED}
        self.start_button.setText(self.tr("Test again") if again else self.tr("Start the test"))
        restyle(self.start_button, primary=not again)
        self.stop_button.setVisible(status.running)
        self.stop_button.setEnabled(not status.stopping)
        self.intro.setText(self._intro())
        self._show_question(status)
        shown = status.running or status.phase in {TestPhase.DONE, TestPhase.FAILED} or measured is not None
        self.card.setVisible(shown and not asking)
        if shown:
            self._show_card(status, measured)
        if had_focus and self.isVisible():
            self.take_focus()

    def _intro(self) -> str:
        return self.tr(
            "Three short prompts, each answered with drafts and without, in about 20 seconds after loading. The pair "
            "is loaded for itself: the chat keeps what it has, unless memory does not hold both."
        )

    def _show_question(self, status: TestStatus) -> None:
        found = status.room
        self.question.setVisible(status.phase is TestPhase.ASKING)
        if status.phase is not TestPhase.ASKING or found is None:
            return
        if found.room is Room.ALONE:
            words = self.tr(
                "{sentence} Shall the chat's pair be unloaded for the test? It is loaded again with the next message."
            )
            self.allow_button.setText(self.tr("Unload it and test"))
        else:
            words = self.tr("{sentence} The system may become slow, or end the test.")
            self.allow_button.setText(self.tr("Test anyway"))
        self.question_words.setText(words.format(sentence=found.sentence))

    def _show_card(self, status: TestStatus, measured: Measurement | None) -> None:
        kind = self._controller.state.kind
        self.bar.setVisible(status.running)
        restyle(self.why, danger=status.error is not None)
        if status.running:
            self._show_running(status)
        elif status.error is not None:
            self.headline.setText(self.tr("The test came to nothing."))
            self.why.setText(str(status.error))
        elif measured is not None:
            self._show_outcome(status, measured)
        elif status.result is not None:
            self.headline.setText(self.tr("No prompt was finished."))
            words = self.tr("This pair writes too slowly here for a test of 20 seconds.")
            if status.result.too_short:
                words = self.tr("Its replies ended too early to be timed.")
            self.why.setText(self.tr("It was stopped before.") if status.result.stopped else words)
        self.headline.setAccessibleName(f"{self.headline.text()} {self.why.text()}")
        self.why.setVisible(bool(self.why.text()))
        rows = bool(status.prompts) or status.running
        self._show_table(kind if rows else None, status)
        self.snippet.setVisible(status.running)
        writing = status.writing
        self.snippet.setText("" if writing is None else _end_of(writing.text))
        self._show_figures(status, measured)

    def _show_running(self, status: TestStatus) -> None:
        writing, words = status.writing, ""
        if status.stopping:
            head = self.tr("Stopping")
        elif status.phase is TestPhase.WEIGHING:
            head = self.tr("Looking whether memory holds the pair")
        elif status.phase is TestPhase.LOADING:
            head = self.tr("Loading the pair")
            words = "" if status.progress is None else status.progress.doing
        elif writing is None or writing.prompt is None:
            head = self.tr("Warming up")
        else:
            way = self.tr("with drafts") if writing.speculating else self.tr("without drafts")
            head = self.tr("{prompt}, {way}").format(prompt=_title(writing.prompt.name), way=way)
        if writing is not None and not status.stopping:
            words = self.tr("about {seconds:.0f} s left").format(seconds=max(1.0, writing.seconds_left))
        self.headline.setText(head)
        self.why.setText(words)
        loading = status.progress.fraction if status.progress is not None else 0.0
        fraction = loading if writing is None else writing.fraction
        self.bar.setValue(round(1000 * fraction))
        self.bar.setAccessibleName(f"{head}: {fraction:.0%}")

    def _show_outcome(self, status: TestStatus, measured: Measurement) -> None:
        looks_up = self._controller.state.chosen == LOOKUP_KEY
        pauses = tuple(each.pause for each in status.prompts if each.pause)
        head, why = outcome_words(measured, pauses, looks_up=looks_up)
        self.headline.setText(head)
        if status.result is None:
            why = f"{why} {measured_words(measured)}"
        elif not status.result.complete:
            done = self.tr("{done} of {planned} prompts were finished.")
            why += " " + done.format(done=len(status.result.prompts), planned=status.result.planned)
            if status.result.too_short:
                why += " " + self.tr("Other replies ended too early to be timed.")
        self.why.setText(why)

    def _show_table(self, kind: str | None, status: TestStatus) -> None:
        prompts = quick_prompts(kind) if kind is not None else ()
        while len(self._cells) < len(prompts):
            row = len(self._cells) + 1
            cells = [PlainLabel() for _ in range(5)]
            for column, cell in enumerate(cells):
                side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
                self.table.addWidget(cell, row, column, side)
            self._cells.append(cells)
        results = {each.prompt.name: each for each in status.prompts}
        for number, cells in enumerate(self._cells):
            prompt = prompts[number] if number < len(prompts) else None
            result = None if prompt is None else results.get(prompt.name)
            words = ("", "", "", "", "") if prompt is None else (_title(prompt.name), *_figures(result, status.writing))
            if prompt is not None and result is None and (status.writing is None or status.writing.prompt != prompt):
                words = (_title(prompt.name), "–", "–", "–", "–")
            for cell, text in zip(cells, words, strict=True):
                cell.setText(text)
        for position in range(self.table.count()):
            item = self.table.itemAt(position)
            widget = None if item is None else item.widget()
            if widget is not None:
                widget.setVisible(bool(prompts))

    def _show_figures(self, status: TestStatus, measured: Measurement | None) -> None:
        writing = status.writing
        plain = fast = accepted = None
        if status.running:
            plain, fast, accepted = _means(status.prompts)
            if writing is not None and writing.prompt is not None and writing.tokens_per_second is not None:
                if writing.speculating:
                    fast, accepted = writing.tokens_per_second, writing.acceptance
                else:
                    plain = writing.tokens_per_second
        elif measured is not None:
            plain, fast, accepted = measured.plain, measured.speculative, measured.acceptance
        self.plain.show_value(_rate(plain))
        self.fast.show_value(_rate(fast))
        self.accepted.show_value(share_words(accepted))
        tone = ""
        if measured is not None and not status.running:
            tone = {Outcome.WORTH_IT: "good", Outcome.SLOWER: "bad"}.get(outcome_of(measured), "")
        restyle(self.headline, tone=tone)

    @Slot()
    def _kind_chosen(self) -> None:
        self._controller.set_kind(str(self.kind_box.currentData()))

    @Slot()
    def _start(self) -> None:
        self._controller.start_test()


def _figures(result: PromptResult | None, writing: Writing | None) -> tuple[str, str, str, str]:
    if result is not None:
        plain, fast = f"{result.plain_rate:.1f}", f"{result.speculative_rate:.1f}"
        return plain, fast, times(result.speed_up), share_words(result.acceptance)
    if writing is None:
        return "–", "–", "–", "–"
    rate = "–" if writing.tokens_per_second is None else f"{writing.tokens_per_second:.1f}"
    return ("…", rate, "–", share_words(writing.acceptance)) if writing.speculating else (rate, "…", "–", "–")


def _means(prompts: tuple[PromptResult, ...]) -> tuple[float | None, float | None, float | None]:
    """Rates of all prompts together, and of all tested tokens what was accepted."""
    if not prompts:
        return None, None, None
    tokens = sum(each.tokens for each in prompts)
    tested = sum(each.tested for each in prompts)
    return (
        tokens / sum(each.tokens / each.plain_rate for each in prompts),
        tokens / sum(each.tokens / each.speculative_rate for each in prompts),
        sum(each.accepted for each in prompts) / tested if tested else None,
    )


def _rate(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.1f} tokens/s"


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def _end_of(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SNIPPET else f"…{text[-LONGEST_SNIPPET:]}"
