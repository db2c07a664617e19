"""Logit bias by hand: a row per token, which is entered by its number or by its whole text."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from forespeak.models.token_lookup import text_of_token, tokens_written
from forespeak.ui.background import Worker
from forespeak.ui.form import caption, number_box
from forespeak.ui.plain_label import PlainLabel

Biases = tuple[tuple[int, float], ...]

_BANNED = -100.0
"""Where the box stands for a ban; nothing so far below the others is ever chosen anyway."""


class BiasTable(QWidget):
    """Emits `changed` whenever `biases` does.

    Texts are looked up in the target's file, on the worker's thread; without one, numbers only are taken.
    """

    changed = Signal()

    def __init__(self, worker: Worker | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self._target: Path | None = None
        self.rows: list[_Row] = []
        self._column = QVBoxLayout()
        self._column.setSpacing(6)
        self.note = caption("")
        self.note.setVisible(False)
        self.add = QPushButton(self.tr("Add a token"))
        self.add.setAutoDefault(False)
        self.add.clicked.connect(self._add_empty)
        buttons = QHBoxLayout()
        buttons.addWidget(self.add)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(self._column)
        layout.addWidget(self.note)
        layout.addLayout(buttons)

    @property
    def biases(self) -> Biases:
        """Of the rows whose token is known, a token once: the last row counts."""
        return tuple({row.token: row.bias for row in self.rows if row.token is not None}.items())

    def show_biases(self, biases: Biases, target: Path | None) -> None:
        """Show these, of that model's tokens, without telling anyone."""
        if biases == self.biases and target == self._target:
            return
        self._target = target
        if biases == self.biases:
            for row in self.rows:
                self._show_text(row)
            return
        for row in [*self.rows]:
            self._drop(row)
        for token, bias in biases:
            self._show_text(self._append(token, bias))
        self._say("")

    # -- rows

    def _append(self, token: int | None, bias: float) -> _Row:
        row = _Row(token, bias, self)
        row.tokenEntered.connect(self._entered)
        row.changed.connect(self.changed)
        row.removed.connect(self._removed)
        self.rows.append(row)
        self._column.addWidget(row)
        return row

    def _drop(self, row: _Row) -> None:
        self.rows.remove(row)
        self._column.removeWidget(row)
        row.setParent(None)
        row.deleteLater()

    @Slot()
    def _add_empty(self) -> None:
        self._append(None, 0.0).entry.setFocus()

    @Slot(object)
    def _removed(self, row: _Row) -> None:
        before = self.biases
        self._drop(row)
        self._say("")
        if self.biases != before:
            self.changed.emit()

    @Slot(object)
    def _entered(self, row: _Row) -> None:
        text = row.entry.text()
        self._say("")
        if not text:
            self._set_tokens(row, text, ())
        elif text.strip().isdecimal():
            self._set_tokens(row, text, (int(text),))
        elif self._worker is None or self._target is None:
            self._set_tokens(row, text, ())
            self._say(self.tr("Choose a target model first, or enter the token's number."))
        else:
            target = self._target
            self._look_up(
                lambda: tokens_written(target, text),
                lambda found: self._set_tokens(row, text, found),
            )

    def _set_tokens(self, row: _Row, text: str, found: tuple[int, ...]) -> None:
        """A text may be that of several tokens: they get a row each."""
        if row not in self.rows or row.entry.text() != text:
            return
        before = self.biases
        row.set_token(found[0] if found else None)
        rows = [row, *(self._append(token, row.bias) for token in found[1:])]
        if text and not found and not text.strip().isdecimal():
            self._say(
                self.tr("No single token is written “{text}”. Mind the space that most words begin with.").format(
                    text=text
                )
            )
        for each in rows:
            self._show_text(each)
        if self.biases != before:
            self.changed.emit()

    def _show_text(self, row: _Row) -> None:
        token, target = row.token, self._target
        row.set_text("")
        if token is None or target is None:
            return

        def found(text: str | None) -> None:
            if row in self.rows and row.token == token:
                row.set_text(self.tr("no token of this model") if text is None else f"“{_visible(text)}”")

        self._look_up(lambda: text_of_token(target, token), found)

    def _look_up(self, job: Callable[[], object], done: Callable[..., None]) -> None:
        def found(result: object) -> None:
            # The dialog may be gone by now.
            if isValid(self):
                done(result)

        def failed(_: Exception) -> None:
            if isValid(self):
                self._say(self.tr("The target's file cannot be read."))

        if self._worker is not None:
            self._worker.run(job, found, failed)

    def _say(self, words: str) -> None:
        self.note.setText(words)
        self.note.setVisible(bool(words))


class _Row(QWidget):
    """One token: what was entered, what it is written like, and its bias."""

    tokenEntered = Signal(object)
    changed = Signal()
    removed = Signal(object)

    def __init__(self, token: int | None, bias: float, parent: QWidget) -> None:
        super().__init__(parent)
        self.token = token
        self.entry = QLineEdit("" if token is None else str(token))
        self.entry.setPlaceholderText(self.tr("Number or text"))
        self.entry.setAccessibleName(self.tr("Token"))
        self.entry.setFixedWidth(140)
        self.entry.editingFinished.connect(self._entered)
        self.text = PlainLabel()
        self.text.setProperty("muted", True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.box = number_box(_BANNED, 100.0, 0.5, self._moved)
        self.box.setSpecialValueText(self.tr("Banned"))
        self.box.setAccessibleName(self.tr("Bias"))
        self.box.setFixedWidth(110)
        self.box.setValue(max(_BANNED, bias))
        self.remove = QToolButton()
        self.remove.setText("✕")
        self.remove.setAccessibleName(self.tr("Remove this token"))
        self.remove.setToolTip(self.tr("Remove this token"))
        self.remove.clicked.connect(self._remove)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.entry)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.box)
        layout.addWidget(self.remove)

    @property
    def bias(self) -> float:
        value = self.box.value()
        return -math.inf if value <= _BANNED else value

    def set_token(self, token: int | None) -> None:
        self.token = token
        if token is not None:
            self.entry.setText(str(token))

    def set_text(self, words: str) -> None:
        self.text.setText(words)
        self.text.setToolTip(words)

    @Slot()
    def _entered(self) -> None:
        if self.entry.text() != ("" if self.token is None else str(self.token)):
            self.tokenEntered.emit(self)

    @Slot()
    def _moved(self) -> None:
        if self.token is not None:
            self.changed.emit()

    @Slot()
    def _remove(self) -> None:
        self.removed.emit(self)


def _visible(text: str) -> str:
    """White space that shows: a token's is half of what it is."""
    return text.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
