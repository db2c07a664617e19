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
