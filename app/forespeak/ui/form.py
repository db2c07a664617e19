"""The parts that settings are made of: pages, rows with a word of explanation, and boxes for numbers."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QGridLayout,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle

_LINE = 32
"""How high the style sheet makes a field of one line."""


class FormLayout(QGridLayout):
    """Rows of a name and a field. QFormLayout would cut rows: it lays out by heights from before a text grew."""

    def __init__(self, page: QWidget) -> None:
        super().__init__(page)
        self._rows = 0
        self.setColumnStretch(1, 1)

    def addRow(self, *parts: str | QWidget) -> None:
        """A name, or nothing, and a field; or a field alone, as wide as both."""
        *names, field = parts
        assert isinstance(field, QWidget)
        if not names:
            self.addWidget(field, self._rows, 0, 1, 2)
        else:
            self.addWidget(field, self._rows, 1)
            if names[0]:
                name = field_label(names[0]) if isinstance(names[0], str) else names[0]
                self.addWidget(name, self._rows, 0, Qt.AlignmentFlag.AlignTop)
        # Room that is left over is left below.
        self.setRowStretch(self._rows, 0)
        self._rows += 1
        self.setRowStretch(self._rows, 1)

    def setRowVisible(self, field: QWidget, visible: bool) -> None:
        row = self.getItemPosition(self.indexOf(field))[0]  # type: ignore[index]
        for column in (0, 1):
            item = self.itemAtPosition(row, column)
            widget = None if item is None else item.widget()
            if widget is not None:
                widget.setVisible(visible)


def form_of(page: QWidget) -> FormLayout:
    """The layout of a page of settings."""
    form = FormLayout(page)
    form.setContentsMargins(8, 16, 8, 8)
    form.setHorizontalSpacing(20)
    form.setVerticalSpacing(12)
    return form


def scrolled(page: QWidget, *, see_through: bool = False, parts_have_focus: bool = False) -> QScrollArea:
    """`parts_have_focus`: the keyboard goes to the page's own parts alone, which pass the keys on that scroll it.

    `see_through`: the same, and what lies behind shows through.
    """
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(page)
    for field in page.findChildren(QWidget):
        if isinstance(field, (QComboBox, QAbstractSpinBox)):
            leave_wheel_to_page(field)
    if see_through or parts_have_focus:
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    if see_through:
        area.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(False)
    return area


class _Wheel(QObject):
    """Takes the wheel from a field that the keyboard is not at."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            # Ignored: it goes on to what the field lies on.
            event.ignore()
            return True
        return super().eventFilter(watched, event)


def leave_wheel_to_page(field: QWidget) -> None:
    """Whoever scrolls over a field means the page: the field changes by the wheel only once it was clicked."""
    if field.focusPolicy() is Qt.FocusPolicy.WheelFocus:
        field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        field.installEventFilter(_Wheel(field))


def caption(words: str) -> PlainLabel:
    """A word of explanation, small and grey."""
    label = PlainLabel(words)
    label.setProperty("caption", True)
    label.setWordWrap(True)
    return label


def add_row(form: FormLayout | QFormLayout, words: str, field: QWidget, explanation: str = "") -> None:
    """A field with its name before it and, if there is one, its explanation below it."""
    field.setAccessibleName(words)
    if isinstance(field, QCheckBox):
        field.setMinimumHeight(_LINE)
    if not explanation:
        form.addRow(field_label(words), field)
        return
    field.setAccessibleDescription(explanation)
    form.addRow(field_label(words), stacked(field, caption(explanation)))


def field_label(words: str) -> PlainLabel:
    """As high as a field of one line, so that the two stand on one line."""
    label = PlainLabel(words)
    label.setFixedHeight(_LINE)
    return label


def stacked(*parts: QWidget) -> QWidget:
    """A field and what is said about it, one below the other."""
    whole = QWidget()
    column = QVBoxLayout(whole)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(3)
    for part in parts:
        if isinstance(part, PlainLabel):
            # Close to the field also where a form has more room than it needs.
            part.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        column.addWidget(part)
    return whole


def add_check(form: FormLayout | QFormLayout, box: QCheckBox, explanation: str) -> None:
    """A box to tick, which bears its own name, and its explanation below it."""
    box.setAccessibleDescription(explanation)
    form.addRow("", stacked(box, caption(explanation)))


class CheckedRow:
    """A row as `add_row` makes it, which also says below the field why a choice was not taken, or does not count."""

    def __init__(self, form: FormLayout | QFormLayout, words: str, field: QWidget, explanation: str = "") -> None:
        self._field, self._explanation = field, explanation
        field.setAccessibleName(words)
        self.note = caption(explanation)
        self.problem = caption("")
        restyle(self.problem, danger=True)
        form.addRow(field_label(words), stacked(field, self.problem, self.note))
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


def add_heading(form: FormLayout | QFormLayout, words: str, explanation: str) -> None:
    """What the rows below belong to."""
    heading = PlainLabel(words)
    heading.setProperty("heading", True)
    whole = stacked(heading, caption(explanation))
    whole.layout().setContentsMargins(0, 10, 0, 0)  # type: ignore[union-attr]
    form.addRow(whole)


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
    leave_wheel_to_page(box)
    box.setKeyboardTracking(False)
    # Style sheets cannot: a spin box with buttons of their own ignores its padding.
    box.lineEdit().setTextMargins(8, 0, 0, 0)
