"""Structured output: the page of the settings where a schema or grammar is written, loaded and checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from forespeak.ui.background import Worker
from forespeak.ui.form import caption
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.structured_output import OutputKind, StructuredOutput, mistake_in
from forespeak.ui.theme import code_font

_PAUSE_MS = 300
"""How long nobody types before what was written is checked."""
_LARGEST_FILE = 1_000_000


class StructuredPage(QWidget):
    """Emits `changed` after each change; what is chosen then is `output`. The worker checks what is written."""

    changed = Signal()

    def __init__(self, worker: Worker | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self._output = StructuredOutput()
        self._filling = False
        self._asked = 0
        self._judged: tuple[OutputKind, str] | None = None
        """What the verdict is about, be it still awaited."""
        self.switch = QCheckBox(self.tr("Hold replies to a structure"))
        self.switch.setProperty("switch", True)
        self.switch.toggled.connect(self._switched)
        self.kinds = {
            OutputKind.JSON_SCHEMA: QRadioButton(self.tr("JSON schema")),
            OutputKind.GRAMMAR: QRadioButton(self.tr("Grammar")),
        }
        group = QButtonGroup(self)
        kinds = QHBoxLayout()
        kinds.setSpacing(16)
        for button in self.kinds.values():
            group.addButton(button)
            kinds.addWidget(button)
        group.buttonClicked.connect(self._kind_chosen)
        kinds.addStretch(1)
        self.load_button = QPushButton(self.tr("Load from a file…"))
        self.load_button.setAutoDefault(False)
        self.load_button.clicked.connect(self._choose_file)
        kinds.addWidget(self.load_button)
        self.text = QPlainTextEdit()
        self.text.setFont(code_font())
        self.text.setTabStopDistance(4.0 * self.text.fontMetrics().averageCharWidth())
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setTabChangesFocus(True)
        self.text.setMinimumHeight(220)
        self.text.textChanged.connect(self._written)
        self.verdict = PlainLabel()
        self.verdict.setWordWrap(True)
        self._check_later = QTimer(self)
        self._check_later.setSingleShot(True)
        self._check_later.setInterval(_PAUSE_MS)
        self._check_later.timeout.connect(self._check)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 16, 8, 8)
        layout.setSpacing(12)
        layout.addWidget(self.switch)
        layout.addWidget(
            caption(
                self.tr(
                    "Every reply then follows the schema or grammar to the letter, with and without speculation. "
                    "A model that thinks may think first."
                )
            )
        )
        layout.addLayout(kinds)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.verdict)
        self.show_output(self._output)

    @property
    def output(self) -> StructuredOutput:
        return self._output

    def show_output(self, output: StructuredOutput) -> None:
        """Show this, without telling anyone."""
        self._filling = True
        self._output = output
        self.switch.setChecked(output.on)
        self.kinds[output.kind].setChecked(True)
        is_schema = output.kind is OutputKind.JSON_SCHEMA
        words = self._written_text()
        if self.text.toPlainText() != words:
            self.text.setPlainText(words)
        self.text.setAccessibleName(self.kinds[output.kind].text())
        self.text.setPlaceholderText(
            self.tr('Any JSON object. Or a schema, for example:\n{"type": "array", "items": {"type": "string"}}')
            if is_schema
            else self.tr('In GBNF or Lark, for example:\nroot ::= "yes" | "no"')
        )
        self._filling = False
        if (output.kind, words) != self._judged:
            self._judged = (output.kind, words)
            self._asked += 1
            self._say(self.tr("Checking…"), good=True)
            self._check_later.start()

    def load(self, path: Path) -> None:
        """Take the text of a file, or say why not."""
        try:
            if path.stat().st_size > _LARGEST_FILE:
                raise ValueError(self.tr("it is too large"))
            words = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            self._say(self.tr("{name} could not be read: it is not UTF-8 text.").format(name=path.name), good=False)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            words = self.tr("{name} could not be read: {reason}.").format(name=path.name, reason=reason)
            self._say(words, good=False)
        else:
            self.text.setPlainText(words)

    # -- inside

    def _written_text(self) -> str:
        return self._output.schema if self._output.kind is OutputKind.JSON_SCHEMA else self._output.grammar

    def _take(self, output: StructuredOutput) -> None:
        self.show_output(output)
        self.changed.emit()

    @Slot(bool)
    def _switched(self, on: bool) -> None:
        if not self._filling:
            self._take(replace(self._output, on=on))

    @Slot()
    def _kind_chosen(self) -> None:
        chosen = next(kind for kind, button in self.kinds.items() if button.isChecked())
        if chosen is not self._output.kind:
            self._take(replace(self._output, kind=chosen))

    @Slot()
    def _written(self) -> None:
        if self._filling:
            return
        words = self.text.toPlainText()
        is_schema = self._output.kind is OutputKind.JSON_SCHEMA
        self._take(replace(self._output, schema=words) if is_schema else replace(self._output, grammar=words))

    @Slot()
    def _choose_file(self) -> None:
        dialog = QFileDialog(self, self.tr("Load a schema or grammar"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.load(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot()
    def _check(self) -> None:
        kind, words, asked = self._output.kind, self._written_text(), self._asked
        if not words.strip():
            is_schema = kind is OutputKind.JSON_SCHEMA
            self._say(self.tr("Any JSON object.") if is_schema else self.tr("Nothing is written yet."), good=is_schema)
            return
        if self._worker is None:
            self._say("", good=True)
            return

        def checked(mistake: str) -> None:
            # The dialog may be gone by now, or something else written.
            if isValid(self) and asked == self._asked:
                valid = self.tr("A valid schema.") if kind is OutputKind.JSON_SCHEMA else self.tr("A valid grammar.")
                self._say(mistake or valid, good=not mistake)

        self._worker.run(lambda: mistake_in(kind, words), checked)

    def _say(self, words: str, *, good: bool) -> None:
        self.verdict.setText(words)
        restyle(self.verdict, danger=not good, muted=good)
