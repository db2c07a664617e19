"""A widget on the screen follows the properties that its style sheet asks for."""

from __future__ import annotations

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from forespeak.ui.restyle import restyle


def test_what_is_shown_already_changes_its_look(qtbot: QtBot) -> None:
    label = QLabel("words")
    qtbot.addWidget(label)
    label.setStyleSheet('QLabel { color: #000000; } QLabel[danger="true"] { color: #ff0000; }')
    label.show()
    restyle(label, danger=True, muted=False)
    assert (label.property("danger"), label.property("muted")) == (True, False)
    assert label.palette().windowText().color() == QColor("#ff0000")
    restyle(label, danger=False)
    assert label.palette().windowText().color() == QColor("#000000")
