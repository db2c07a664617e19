"""Two kept comparisons beside each other: each one's speed-up, kind by kind, and all their figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from forespeak.ui.compare_parts import SideBySide, card, ratio_words, words_label
from forespeak.ui.compare_table import FiguresTable
from forespeak.ui.compare_values import ResultValues, SpeedUp, SpeedUps
from forespeak.ui.compare_verdict import SpeedUpRows
from forespeak.ui.form import scrolled
from forespeak.ui.theme import LIGHT, Theme

_LONGEST_NAME = 30


class CompareTwo(QWidget):
    backRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._rows: list[SpeedUpRows] = []
        self.words = words_label()
        self.words.setProperty("heading", True)
        self.table = FiguresTable()
        self._sides = QVBoxLayout()
        self.back_button = QPushButton(self.tr("Back to the list"))
        self.back_button.clicked.connect(self.backRequested)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 6, 12)
        column.setSpacing(16)
        column.addWidget(self.words)
        column.addLayout(self._sides)
        frame, inner = card(self.tr("SPEED-UPS"))
        inner.addWidget(self.table)
        column.addWidget(frame)
        column.addWidget(self.back_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scrolled(inside))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for rows in self._rows:
            rows.set_theme(theme)

    def show_two(self, first: ResultValues, second: ResultValues) -> None:
        while (item := self._sides.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        both = SideBySide()
        self._rows = []
        one, other_one = shown_of(first, second)
        for values, shown, beside in ((first, one, other_one), (second, other_one, one)):
            frame, column = card()
            name = words_label(values.name)
            name.setProperty("heading", True)
            column.addWidget(name)
            column.addWidget(words_label(values.subtitle, variant="caption"))
            column.addWidget(words_label(f"{ratio_words(values.ratio)}  {values.headline}"))
            if shown is not None and len(values.speed_ups) > 1:
                column.addWidget(words_label(shown.against, variant="caption"))
            rows = SpeedUpRows()
            rows.set_rows(_rows_of(shown), _rows_of(beside))
            rows.set_theme(self._theme)
            self._rows.append(rows)
            column.addWidget(rows)
            column.addStretch(1)
            both.add(frame)
        self._sides.addWidget(both)
        self.words.setText(difference_words(first, second, self.tr))
        heads = (self.tr("Kind of work"), _cut(first.name), _cut(second.name), self.tr("Change"))
        self.table.show_rows(table_of(first, second, heads))


def shown_of(first: ResultValues, second: ResultValues) -> tuple[SpeedUps | None, SpeedUps | None]:
    """What is compared: a lane that both have, if possible the one that a verdict is about; else each one's own."""
    for wanted in (*first.speed_ups[:1], *second.speed_ups[:1]):
        one, other = (
            next((each for each in values.speed_ups if each.against == wanted.against), None)
            for values in (first, second)
        )
        if one is not None and other is not None:
            return one, other
    return next(iter(first.speed_ups), None), next(iter(second.speed_ups), None)


def _rows_of(shown: SpeedUps | None) -> tuple[SpeedUp, ...]:
    return () if shown is None else shown.rows


def _ratio_of(values: ResultValues, shown: SpeedUps) -> float | None:
    """Over all kinds of work, which stand last."""
    if shown is values.speed_ups[0]:
        return values.ratio
    return shown.rows[-1].ratio if shown.rows else None


def difference_words(first: ResultValues, second: ResultValues, tr: Callable[[str], str]) -> str:
    """What both are, and whether their intervals leave room for chance."""
    one, other = shown_of(first, second)
    then = None if one is None else _ratio_of(first, one)
    now = None if other is None else _ratio_of(second, other)
    if one is None or other is None or then is None or now is None:
        return tr("One of the two has nothing to compare.")
    words = tr("{0} then, {1} now: {2} the speed-up.").format(
        ratio_words(then), ratio_words(now), ratio_words(now / then)
    )
    words = words if _apart(one, other) else f"{words} {tr('That may be chance.')}"
    return words if one.against == other.against else f"{words} {tr('These are different lanes.')}"


def _apart(one: SpeedUps, other: SpeedUps) -> bool:
    """Whether the intervals over all kinds of work, which stand last, have nothing in common."""
    if not one.rows or not other.rows:
        return False
    a, b = one.rows[-1], other.rows[-1]
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.high < b.low or b.high < a.low


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def table_of(first: ResultValues, second: ResultValues, heads: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    sides = [{row.label: row for row in _rows_of(shown)} for shown in shown_of(first, second)]
    labels = list(dict.fromkeys(label for side in sides for label in side))
    rows: list[tuple[str, ...]] = [tuple(heads)]
    for label in labels:
        one, other = (side.get(label) for side in sides)
        change = f"{other.ratio / one.ratio:.2f}×" if one is not None and other is not None else "–"
        rows.append((label, _cell(one), _cell(other), change))
    return tuple(rows)


def _cell(row: SpeedUp | None) -> str:
    if row is None:
        return "–"
    if row.low is None or row.high is None:
        return ratio_words(row.ratio)
    return f"{ratio_words(row.ratio)}  ({row.low:.2f} – {row.high:.2f})"
