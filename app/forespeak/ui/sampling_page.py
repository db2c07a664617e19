"""How tokens are chosen: the page of the settings about sampling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QLineEdit, QSpinBox, QWidget

from forespeak.speculation.settings import SamplingSettings
from forespeak.ui.background import Worker
from forespeak.ui.bias_table import BiasTable
from forespeak.ui.form import add_heading, add_row, form_of, number_box, whole_box


class SamplingPage(QWidget):
    """Emits `changed` after each change; what is chosen then is `settings_from` and `random`."""

    changed = Signal()

    def __init__(self, worker: Worker | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._filling = False
        self._form = form_of(self)
        self.numbers: dict[str, QDoubleSpinBox | QSpinBox] = {}
        self._add_filters()
        self._add_penalties()
        self._add_dry()
        add_heading(
            self._form,
            self.tr("Logit bias"),
            self.tr("Added to a token's score before anything else. The numbers are the target's own."),
        )
        self.biases = BiasTable(worker)
        self.biases.changed.connect(self._take)
        self.biases.setAccessibleName(self.tr("Logit bias"))
        self._form.addRow(self.biases)

    @property
    def random(self) -> bool:
        return self.random_seed.isChecked()

    def settings_from(self, before: SamplingSettings) -> SamplingSettings:
        """What the page shows; a seed that is none stays as it was."""
        values: dict[str, Any] = {name: box.value() for name, box in self.numbers.items()}
        return replace(before, **values, seed=_seed(self.seed.text(), before.seed), logit_bias=self.biases.biases)

    def show_settings(self, settings: SamplingSettings, random: bool, target: Path | None) -> None:
        """Show these, without telling anyone. `target`: whose tokens the biases are about."""
        self._filling = True
        for name, box in self.numbers.items():
            box.setValue(getattr(settings, name))
        self.random_seed.setChecked(random)
        self.seed.setText(str(settings.seed))
        self.seed.setEnabled(not random)
        self.biases.show_biases(settings.logit_bias, target)
        self._filling = False

    # -- rows

    def _number(self, name: str, words: str, why: str, low: float, high: float, step: float) -> None:
        self.numbers[name] = number_box(low, high, step, self._take)
        add_row(self._form, words, self.numbers[name], why)

    def _whole(self, name: str, words: str, why: str, low: int, high: int) -> QSpinBox:
        box = whole_box(low, high, self._take)
        self.numbers[name] = box
        add_row(self._form, words, box, why)
        return box

    def _add_filters(self) -> None:
        self._number("temperature", self.tr("Temperature"), self.tr("0 always takes the likeliest token."), 0, 5, 0.05)
        self._whole("top_k", self.tr("Top-k"), self.tr("Only the k likeliest tokens. 0 switches it off."), 0, 1000)
        why = self.tr("The likeliest tokens that add up to p. 1 switches it off.")
        self._number("top_p", self.tr("Top-p"), why, 0, 1, 0.01)
        why = self.tr("Tokens at least this share as likely as the best one. 0 switches it off.")
        self._number("min_p", self.tr("Min-p"), why, 0, 1, 0.01)
        self.seed = QLineEdit()
        self.seed.editingFinished.connect(self._take)
        why = self.tr("The same seed, settings and chat give the same reply.")
        add_row(self._form, self.tr("Seed"), self.seed, why)
        self.random_seed = QCheckBox(self.tr("A new seed for every reply"))
        self.random_seed.toggled.connect(self._take)
        self._form.addRow("", self.random_seed)

    def _add_penalties(self) -> None:
        off = self.tr("0 switches it off.")
        add_heading(
            self._form, self.tr("Penalties"), self.tr("Against tokens that stand in the last part of the chat already.")
        )
        self._number("repeat_penalty", self.tr("Repeat penalty"), self.tr("1 switches it off."), 0.01, 3, 0.01)
        self._number("frequency_penalty", self.tr("Frequency penalty"), off, -2, 2, 0.05)
        self._number("presence_penalty", self.tr("Presence penalty"), off, -2, 2, 0.05)
        why = self.tr("The last tokens that the penalties look at.")
        self._whole("penalty_window", self.tr("Window"), why, 0, 65536)

    def _add_dry(self) -> None:
        add_heading(
            self._form,
            self.tr("DRY"),
            self.tr("Against whole passages that come again: the longer the repetition, the stronger."),
        )
        self._number("dry_multiplier", self.tr("Multiplier"), self.tr("How strong. 0 switches DRY off."), 0, 100, 0.1)
        why = self.tr("How steeply it grows with each token of the repetition.")
        self._number("dry_base", self.tr("Base"), why, 1, 10, 0.05)
        why = self.tr("The shortest repetition that counts, in tokens.")
        self._whole("dry_allowed_length", self.tr("Allowed length"), why, 1, 1000)
        why = self.tr("The last tokens that DRY looks at.")
        window = self._whole("dry_penalty_last_n", self.tr("Window"), why, -1, 1_048_576)
        window.setSpecialValueText(self.tr("The whole chat"))
        window.setAccessibleName(self.tr("DRY window"))

    @Slot()
    def _take(self) -> None:
        if not self._filling:
            self.seed.setEnabled(not self.random)
            self.changed.emit()


def _seed(text: str, otherwise: int) -> int:
    try:
        seed = int(text)
    except ValueError:
        return otherwise
    return seed if 0 <= seed < 2**64 else otherwise
