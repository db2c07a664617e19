"""The parts that settings are made of: pages, rows with a word of explanation, and boxes for numbers."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QLabel,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.restyle import restyle


def form_of(page: QWidget) -> QFormLayout:
    """The layout of a page of settings."""
    form = QFormLayout(page)
    form.setContentsMargins(8, 16, 8, 8)
    form.setHorizontalSpacing(20)
    form.setVerticalSpacing(12)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
    return form


def scrolled(page: QWidget, *, see_through: bool = False) -> QScrollArea:
    """`see_through`: what lies behind shows through, and the keyboard goes to the page's own parts alone."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(page)
    if see_through:
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(False)
    return area


def caption(words: str) -> QLabel:
    """A word of explanation, small and grey."""
    label = QLabel(words)
    label.setProperty("caption", True)
    label.setWordWrap(True)
    return label


def add_row(form: QFormLayout, words: str, field: QWidget, explanation: str = "") -> None:
    """A field with its name before it and, if there is one, its explanation below it."""
    field.setAccessibleName(words)
    if not explanation:
        form.addRow(words, field)
        return
    field.setAccessibleDescription(explanation)
    column = QVBoxLayout()
    column.setSpacing(3)
    column.addWidget(field)
    column.addWidget(caption(explanation))
    form.addRow(words, column)


class CheckedRow:
    """A row as `add_row` makes it, which also says below the field why a choice was not taken, or does not count."""

    def __init__(self, form: QFormLayout, words: str, field: QWidget, explanation: str = "") -> None:
        self._field, self._explanation = field, explanation
        field.setAccessibleName(words)
        self.note = caption(explanation)
        self.problem = caption("")
        restyle(self.problem, danger=True)
        column = QVBoxLayout()
        column.setSpacing(3)
        for part in (field, self.problem, self.note):
            column.addWidget(part)
        form.addRow(words, column)
        self.say("")
        self.overrule("")

    def say(self, problem: str) -> None:
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self._describe()

    def overrule(self, why: str) -> None:
        """In the place of the explanation: why nothing can be chosen now; empty: it can."""
        self._field.setEnabled(not why)
        self.note.setText(why or self._explanation)
        self.note.setVisible(bool(self.note.text()))
        self._describe()

    def _describe(self) -> None:
        self._field.setAccessibleDescription(" ".join(part for part in (self.problem.text(), self.note.text()) if part))


def add_heading(form: QFormLayout, words: str, explanation: str) -> None:
    """What the rows below belong to."""
    heading = QLabel(words)
    heading.setProperty("heading", True)
    column = QVBoxLayout()
    column.setSpacing(3)
    column.setContentsMargins(0, 10, 0, 0)
    column.addWidget(heading)
    column.addWidget(caption(explanation))
    form.addRow(column)


def whole_box(low: int, high: int, changed: Callable[[], None]) -> QSpinBox:
    box = QSpinBox()
    box.setRange(low, high)
    box.setGroupSeparatorShown(True)
    _prepare(box)
    box.valueChanged.connect(changed)
    return box


def number_box(low: float, high: float, step: float, changed: Callable[[], None]) -> QDoubleSpinBox:
    box = QDoubleSpinBox()
    box.setDecimals(2)
    box.setRange(low, high)
    box.setSingleStep(step)
    _prepare(box)
    box.valueChanged.connect(changed)
    return box


def _prepare(box: QAbstractSpinBox) -> None:
    box.setKeyboardTracking(False)
    # Style sheets cannot: a spin box with buttons of their own ignores its padding.
    box.lineEdit().setTextMargins(8, 0, 0, 0)
