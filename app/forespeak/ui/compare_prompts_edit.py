"""What the lanes of a comparison answer: the chat's last message, a text, a file, or prompts of the suites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from forespeak.compare.plan import Prompt
from forespeak.engines.engine import ChatMessage
from forespeak.ui.compare_values import PromptChoice, PromptKind
from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.form import caption, whole_box

_INDENT = 28
_COLUMN_WIDTH = 250
USUAL = ("coding", "rewrite", "writing")
"""Ticked to begin with: drafts help much, most, and least."""
_KINDS = (PromptKind.SUITES, PromptKind.CHAT, PromptKind.TYPED, PromptKind.FILE)


class _Suite(QWidget):
    """One category: whether it takes part, and how many of its prompts."""

    changed = Signal()

    def __init__(self, category: str, most: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.category = category
        self.box = QCheckBox(category)
        self.count: QSpinBox = whole_box(1, most, self._count_changed)
        self.count.setAccessibleName(self.tr("How many prompts of {0}").format(category))
        self.count.setSuffix(self.tr(" of {0}").format(most))
        self.count.setFixedWidth(96)
        self.box.toggled.connect(self._toggled)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.box, 1)
        row.addWidget(self.count)
        self._toggled(False)

    @Slot()
    def _count_changed(self, *_: object) -> None:
        self.changed.emit()

    @Slot(bool)
    def _toggled(self, on: bool) -> None:
        self.count.setEnabled(on)
        self.changed.emit()


class PromptsEdit(QWidget):
    changed = Signal()

    def __init__(self, suites: Sequence[tuple[str, int]], parent: QWidget | None = None) -> None:
        """`suites`: (category, how many prompts it has)."""
        super().__init__(parent)
        self._chat_text = ""
        self._chat_messages: tuple[ChatMessage, ...] = ()
        self._file: Path | None = None
        self.choices: dict[PromptKind, QRadioButton] = {
            PromptKind.SUITES: QRadioButton(self.tr("Prompts of these kinds of work")),
            PromptKind.CHAT: QRadioButton(self.tr("The last message of the open chat")),
            PromptKind.TYPED: QRadioButton(self.tr("A text")),
            PromptKind.FILE: QRadioButton(self.tr("A file of prompts")),
        }
        self._group = QButtonGroup(self)
        for number, kind in enumerate(_KINDS):
            self._group.addButton(self.choices[kind], number)
        self._group.idToggled.connect(self._kind_chosen)
        self.suites = [_Suite(category, most) for category, most in suites]
        for suite in self.suites:
            suite.changed.connect(self.changed)
        self._suites_box = QWidget()
        self._grid = QGridLayout(self._suites_box)
        self._grid.setContentsMargins(_INDENT, 0, 0, 4)
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(4)
        self._columns = 0
        self.chat_words = ElidedLabel()
        self.chat_words.setProperty("caption", True)
        self.text = QPlainTextEdit()
        self.text.setPlaceholderText(self.tr("What is every lane to answer?"))
        self.text.setAccessibleName(self.tr("Prompt"))
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(96)
        self.text.textChanged.connect(self.changed)
        self._text_box = _indented(self.text)
        self.file_button = QPushButton(self.tr("Choose…"))
        self.file_button.setAccessibleName(self.tr("Choose a file of prompts"))
        self.file_button.clicked.connect(self._choose_file)
        self.file_words = ElidedLabel()
        self.file_words.setProperty("muted", True)
        file_row = QWidget()
        row = QHBoxLayout(file_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.file_button)
        row.addWidget(self.file_words, 1)
        note = caption(
            self.tr("A text file is one prompt. In JSON Lines each line is one, with its category if wanted.")
        )
        self._file_box = _indented(file_row, note)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for kind, below in zip(
            _KINDS, (self._suites_box, _indented(self.chat_words), self._text_box, self._file_box), strict=True
        ):
            column.addWidget(self.choices[kind])
            column.addWidget(below)
        self._place(2)
        usual = [suite for suite in self.suites if suite.category in USUAL] or self.suites[:3]
        for suite in usual:
            suite.box.setChecked(True)
        self.choices[PromptKind.SUITES].setChecked(True)
        self.set_chat(())
        self._show_file()

    # -- what is chosen

    @property
    def kind(self) -> PromptKind:
        return _KINDS[max(self._group.checkedId(), 0)]

    @property
    def choice(self) -> PromptChoice:
        kind = self.kind
        text = {PromptKind.CHAT: self._chat_text, PromptKind.TYPED: self.text.toPlainText().strip()}.get(kind, "")
        suites = tuple((suite.category, suite.count.value()) for suite in self.suites if suite.box.isChecked())
        messages = self._chat_messages if kind is PromptKind.CHAT else ()
        return PromptChoice(kind, text, messages, self._file, suites)

    @property
    def problem(self) -> str:
        """Why nothing can be answered as it stands, or nothing."""
        choice = self.choice
        match choice.kind:
            case PromptKind.SUITES if not choice.suites:
                return self.tr("Tick at least one kind of work.")
            case PromptKind.TYPED if not choice.text:
                return self.tr("Type a text to be answered.")
            case PromptKind.FILE if choice.file is None:
                return self.tr("Choose a file of prompts.")
            case _:
                return ""

    def choose(self, kind: PromptKind) -> None:
        self.choices[kind].setChecked(True)

    def set_chat(self, messages: Sequence[ChatMessage]) -> None:
        """The open chat up to the message that is to be answered; nothing if there is nothing."""
        self._chat_messages = tuple(messages)
        text = messages[-1].content if messages else ""
        self._chat_text = text
        button = self.choices[PromptKind.CHAT]
        button.setEnabled(bool(text))
        self.chat_words.set_words(" ".join(text.split())[:400] if text else self.tr("The chat is empty."))
        if not text and button.isChecked():
            self.choose(PromptKind.SUITES)
        self.changed.emit()

    def take_prompts(self, prompts: Sequence[Prompt]) -> None:
        """The same again: of the suites by their number, a single one of the user's as a text."""
        if prompts and not any(prompt.private for prompt in prompts):
            counts = Counter(prompt.category for prompt in prompts)
            for suite in self.suites:
                suite.box.setChecked(suite.category in counts)
                suite.count.setValue(counts.get(suite.category, suite.count.value()))
            self.choose(PromptKind.SUITES)
        elif len(prompts) == 1 and not prompts[0].messages:
            self.text.setPlainText(prompts[0].text)
            self.choose(PromptKind.TYPED)

    def set_file(self, path: Path) -> None:
        self._file = path
        self._show_file()
        self.changed.emit()

    # -- inside

    @Slot(int, bool)
    def _kind_chosen(self, _: int, on: bool) -> None:
        if on:
            kind = self.kind
            self._suites_box.setVisible(kind is PromptKind.SUITES)
            self._text_box.setVisible(kind is PromptKind.TYPED)
            self._file_box.setVisible(kind is PromptKind.FILE)
            self.changed.emit()

    @Slot()
    def _choose_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self,
            self.tr("A file of prompts"),
            "" if self._file is None else str(self._file.parent),
            self.tr("Prompts (*.txt *.md *.jsonl);;All files (*)"),
        )
        if name:
            self.set_file(Path(name))

    def _show_file(self) -> None:
        self.file_words.set_words(self.tr("No file chosen") if self._file is None else str(self._file))

    def set_room(self, width: int) -> None:
        """As many columns of kinds of work as fit."""
        self._place(max(1, min(3, (width - _INDENT) // _COLUMN_WIDTH)))

    def _place(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        per = -(-len(self.suites) // columns)
        for number, suite in enumerate(self.suites):
            self._grid.addWidget(suite, number % per, number // per)
        for column in range(3):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)


def _indented(*widgets: QWidget) -> QWidget:
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(_INDENT, 0, 0, 4)
    column.setSpacing(4)
    for widget in widgets:
        column.addWidget(widget)
    return box
