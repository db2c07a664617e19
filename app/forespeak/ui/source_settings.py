"""The settings of the draft sources that look the text up: those of one source at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from forespeak.engines.engine import TextSourceSettings
from forespeak.speculation.settings import LONGEST_DRAFT, LONGEST_GRAM, MOST_OCCURRENCES
from forespeak.speculation.trace import Source
from forespeak.ui.draft_sources import NAMES, what_it_does
from forespeak.ui.form import caption, whole_box
from forespeak.ui.plain_label import PlainLabel


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of a source's settings, `low` to `high`; at most the one named `below`, if there is one."""

    name: str
    words: str
    low: int
    high: int
    below: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Several whole numbers, one for each length of n-gram, each `low` to `high`."""

    name: str
    words: str
    low: int
    high: int


_MATCH = Number("size_n", "Tokens that must match", 1, LONGEST_GRAM)
_DRAFT = Number("size_m", "Longest draft", 1, LONGEST_DRAFT)
_MAP = (_MATCH, _DRAFT, Number("min_hits", "Matches needed", 1, MOST_OCCURRENCES))

FIELDS: dict[Source, tuple[Number | Row, ...]] = {
    Source.PROMPT_LOOKUP: (
        Number("max_ngram_size", "Longest match", 1, LONGEST_GRAM),
        Number("min_ngram_size", "Shortest match", 1, LONGEST_GRAM, below="max_ngram_size"),
        Number("num_pred_tokens", "Longest draft", 1, LONGEST_DRAFT),
    ),
    Source.NGRAM_SIMPLE: (_MATCH, _DRAFT),
    Source.NGRAM_MAP_K: _MAP,
    Source.NGRAM_MAP_K4V: _MAP,
    Source.NGRAM_MOD: (
        Number("n_match", "Tokens that must match", 1, LONGEST_GRAM),
        Number("n_max", "Longest draft", 1, LONGEST_DRAFT),
        Number("n_min", "Shortest find", 0, LONGEST_DRAFT, below="n_max"),
        Number("table_bits", "Table size, in bits", 1, 28),
    ),
    Source.NGRAM_CACHE: (
        Number("n_max", "Longest draft", 1, LONGEST_DRAFT),
        Row("context_min_samples", "Seen here, at least", 1, 2**31),
        Row("context_min_percent", "Certainty here, in %", 1, 100),
        Row("dynamic_min_samples", "Seen elsewhere, at least", 1, 2**31),
        Row("dynamic_min_percent", "Certainty there, in %", 1, 100),
        Number("dynamic_limit", "Kept from elsewhere, at most", 0, 2**31 - 1),
    ),
}
"""In the order in which they are shown. The bounds are those of the settings themselves."""

_NOTES = {
    Source.NGRAM_CACHE: "A row has a number each for matches of 1, 2, 3 and 4 tokens. Elsewhere is in other chats.",
    Source.NGRAM_MOD: "The table has 2 to the power of its bits places, 4 bytes each.",
}


def field_of(source: Source) -> str:
    """Where TextSourceSettings keeps a source's own settings."""
    return source.value.replace("-", "_")


class SourceSettings(QWidget):
    """Emits `changed` after each change; `settings` are then the new ones."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = TextSourceSettings()
        self._filling = False
        self.numbers: dict[tuple[Source, str], QSpinBox] = {}
        self.rows: dict[tuple[Source, str], QLineEdit] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.combo = QComboBox()
        self.combo.setAccessibleName(self.tr("Settings of"))
        self._does = caption("")
        self._pages: list[QWidget] = []
        for source in FIELDS:
            self.combo.addItem(NAMES[source], source)
            self._pages.append(self._page(source))
        self.reset = QPushButton(self.tr("Reset"))
        self.reset.setToolTip(self.tr("Back to how this source comes."))
        self.reset.clicked.connect(self._reset)
        self.shared = QCheckBox(self.tr("Learn across chats"))
        why = self.tr(
            "n-gram mod and n-gram cache may then guess from what was written in other chats. Off: nothing of one chat "
            "shows up in another."
        )
        self.shared.setAccessibleDescription(why)
        self.shared.toggled.connect(self._take)
        self.combo.currentIndexChanged.connect(self._show_source)
        column.addWidget(self.combo)
        column.addWidget(self._does)
        column.addSpacing(4)
        for page in self._pages:
            column.addWidget(page)
        column.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignRight)
        column.addSpacing(6)
        column.addWidget(self.shared)
        column.addWidget(caption(why))
        self.set_settings(self._settings)
        self._show_source(0)

    @property
    def settings(self) -> TextSourceSettings:
        return self._settings

    @property
    def source(self) -> Source:
        """Whose settings are shown."""
        found: Source = self.combo.currentData()
        return found

    def set_settings(self, settings: TextSourceSettings) -> None:
        """Show these, without telling anyone."""
        self._settings = settings
        self._filling = True
        for (source, name), box in self.numbers.items():
            own = getattr(settings, field_of(source))
            box.setMaximum(_most(own, source, name))
            box.setValue(getattr(own, name))
        for (source, name), edit in self.rows.items():
            edit.setText(_joined(getattr(getattr(settings, field_of(source)), name)))
        self.shared.setChecked(settings.shared)
        self._filling = False
        self._show_reset()

    def _page(self, source: Source) -> QWidget:
        page = QWidget()
        grid = QGridLayout(page)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for item in FIELDS[source]:
            widget: QAbstractSpinBox | QLineEdit
            if isinstance(item, Number):
                box = whole_box(item.low, item.high, self._take)
                self.numbers[source, item.name] = box
                widget = box
            else:
                edit = QLineEdit()
                edit.editingFinished.connect(self._take)
                self.rows[source, item.name] = edit
                widget = edit
            widget.setAccessibleName(f"{NAMES[source]}: {item.words}")
            row = grid.rowCount()
            grid.addWidget(PlainLabel(item.words), row, 0)
            grid.addWidget(widget, row, 1)
        if source in _NOTES:
            grid.addWidget(caption(_NOTES[source]), grid.rowCount(), 0, 1, 2)
        return page

    @Slot(int)
    def _show_source(self, place: int) -> None:
        for number, page in enumerate(self._pages):
            page.setVisible(number == place)
        self._does.setText(what_it_does(self.source))
        self._show_reset()

    def _show_reset(self) -> None:
        name = field_of(self.source)
        self.reset.setEnabled(getattr(self._settings, name) != getattr(TextSourceSettings(), name))

    @Slot()
    def _reset(self) -> None:
        name = field_of(self.source)
        self.set_settings(replace(self._settings, **{name: getattr(TextSourceSettings(), name)}))
        self.combo.setFocus()
        self.changed.emit()

    @Slot()
    def _take(self) -> None:
        if self._filling:
            return
        taken: dict[str, object] = {"shared": self.shared.isChecked()}
        for source, items in FIELDS.items():
            own = getattr(self._settings, field_of(source))
            values: dict[str, object] = {}
            for item in items:
                if isinstance(item, Number):
                    values[item.name] = self.numbers[source, item.name].value()
                else:
                    values[item.name] = _numbers(self.rows[source, item.name].text(), item, getattr(own, item.name))
            for item in items:
                if isinstance(item, Number) and item.below:
                    high, low = values[item.below], values[item.name]
                    assert isinstance(high, int)
                    assert isinstance(low, int)
                    values[item.name] = min(low, high)
            taken[field_of(source)] = replace(own, **values)
        before = self._settings
        self.set_settings(replace(before, **taken))  # type: ignore[arg-type]
        if self._settings != before:
            self.changed.emit()


def _most(own: object, source: Source, name: str) -> int:
    """What a number may be at most, as the others are now."""
    item = next(item for item in FIELDS[source] if item.name == name)
    if isinstance(item, Number) and item.below:
        most: int = getattr(own, item.below)
        return most
    return item.high


def _joined(values: tuple[int, ...]) -> str:
    return ", ".join(str(value) for value in values)


def _numbers(text: str, item: Row, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    """As many numbers as there were, in range; else those that were there."""
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        return otherwise
    fits = len(values) == len(otherwise) and all(item.low <= value <= item.high for value in values)
    return values if fits else otherwise
