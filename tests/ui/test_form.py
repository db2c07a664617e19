"""Rows of settings: their heights, what stands on one line, and whom the wheel moves."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLabel, QSpinBox, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from forespeak.ui.form import add_check, add_row, caption, field_label, form_of, scrolled, stacked, whole_box
from forespeak.ui.theme import LIGHT, style_sheet

LONG = "A longer explanation, which takes two lines wherever a page is not very wide at all. " * 2


def scroll(over: QWidget) -> bool:
    """Turn the wheel over a field; whether it took that for itself, and what it lies on gets nothing."""
    middle = QPointF(over.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(over.mapToGlobal(over.rect().center())),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(over, event)
    return event.isAccepted()


def test_the_wheel_moves_the_page_until_a_field_is_clicked(qtbot: QtBot) -> None:
    page = QWidget()
    form = form_of(page)
    combo, box = QComboBox(), whole_box(0, 9, lambda: None)
    combo.addItems(["one", "two"])
    add_row(form, "Choice", combo)
    add_row(form, "Number", box)
    for number in range(40):
        form.addRow(QLabel(str(number)))
    box.setValue(5)
    area = scrolled(page)
    qtbot.addWidget(area)
    area.resize(300, 200)
    area.show()
    qtbot.waitExposed(area)
    for field in (combo, box):
        assert not scroll(field)
    assert (combo.currentIndex(), box.value()) == (0, 5)
    area.activateWindow()
    combo.setFocus()
    qtbot.waitUntil(combo.hasFocus)
    assert scroll(combo)
    assert combo.currentIndex() == 1
    QTest.keyClick(combo, Qt.Key.Key_Up)
    assert combo.currentIndex() == 0, "the keyboard is not concerned"


def test_rows_have_the_heights_that_they_need_when_a_text_grows(qtbot: QtBot) -> None:
    page = QWidget()
    column = QVBoxLayout(page)
    fields = QWidget()
    column.addWidget(caption(LONG))
    column.addWidget(fields)
    column.addStretch(1)
    form = form_of(fields)
    rows = [stacked(QLabel("A line"), caption(LONG)) for _ in range(4)]
    for row in rows:
        form.addRow(field_label("Name"), row)
    grows = caption("Short.")
    form.addRow(grows)
    area = scrolled(page)
    qtbot.addWidget(area)
    area.resize(420, 120)
    area.show()
    qtbot.waitExposed(area)
    for width in (420, 600, 420):
        area.resize(width, 120)
        for words in ("Short.", LONG, LONG * 2):
            grows.setText(words)
            qtbot.waitUntil(lambda: all(part.height() == part.heightForWidth(part.width()) for part in (grows, *rows)))


def test_a_name_and_its_field_stand_on_one_line(qtbot: QtBot, qapp: QApplication) -> None:
    page = QWidget()
    page.setStyleSheet(style_sheet(LIGHT))
    form = form_of(page)
    combo, box, check, alone = QComboBox(), QSpinBox(), QCheckBox("Yes"), QCheckBox("Alone")
    for words, field in (("Choice", combo), ("Number", box), ("Tick", check)):
        add_row(form, words, field, "" if field is check else LONG)
    add_check(form, alone, LONG)
    qtbot.addWidget(page)
    page.resize(420, 700)
    page.show()
    qtbot.waitExposed(page)
    names = {label.text(): label for label in page.findChildren(QLabel)}
    for words, each in (("Choice", combo), ("Number", box), ("Tick", check)):
        assert each.height() == 32
        assert names[words].geometry().center().y() == each.mapTo(page, each.rect().center()).y()
    together = alone.parentWidget()
    assert together is not None
    note = together.findChildren(QLabel)[0]
    assert note.y() == alone.height() + 3
    assert note.alignment() & Qt.AlignmentFlag.AlignTop, "close to its box, however high the row is"
    assert alone.accessibleDescription() == LONG


def test_a_row_that_is_hidden_leaves_no_gap(qtbot: QtBot) -> None:
    page = QWidget()
    form = form_of(page)
    first, second, third = QLabel("First"), QLabel("Second"), QLabel("Third")
    form.addRow("One", first)
    form.addRow("", second)
    form.addRow(third)
    form.setRowVisible(second, False)
    qtbot.addWidget(page)
    page.resize(300, 400)
    page.show()
    assert third.y() - first.geometry().bottom() <= form.verticalSpacing() + 1
    assert third.x() < first.x(), "a field alone is as wide as both"
    form.setRowVisible(second, True)
    qtbot.waitUntil(lambda: third.y() > second.y() > first.y())
