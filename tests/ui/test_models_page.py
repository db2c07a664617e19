"""The tabs of the Models page: what moves on one of them leaves the rest of it alone."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from forespeak.ui.models_page import CalmTabs, RoomyBar


class Painted(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.paints = 0

    def paintEvent(self, event: QPaintEvent) -> None:
        self.paints += 1


class Requests(QObject):
    """Counts how often something was asked to lay itself out anew."""

    def __init__(self, watched: QWidget) -> None:
        super().__init__(watched)
        self.count = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.LayoutRequest
        return False


def test_other_words_do_not_paint_the_page_anew(qtbot: QtBot) -> None:
    bar = RoomyBar()
    tabs = CalmTabs(bar)
    qtbot.addWidget(tabs)
    bar.longest[1] = "Downloads (99)"
    page, table, label = QWidget(), Painted(), QLabel("1")
    column = QVBoxLayout(page)
    column.addWidget(table, 1)
    column.addWidget(label)
    tabs.addTab(page, "My models")
    tabs.addTab(QWidget(), "Downloads")
    tabs.resize(500, 300)
    tabs.show()
    qtbot.waitUntil(lambda: table.paints > 0)
    qtbot.wait(50)
    width, before = bar.tabRect(1).width(), table.paints
    requests = Requests(tabs)
    bar.setTabText(1, "Downloads (2)")
    qtbot.waitUntil(lambda: requests.count == 1)
    label.setText("22 of 333 models")
    qtbot.waitUntil(lambda: requests.count == 2)
    qtbot.wait(50)
    assert table.paints == before
    assert bar.tabRect(1).width() == width

    bar.setTabText(0, "All of my models")
    qtbot.waitUntil(lambda: bar.width() == bar.sizeHint().width() > bar.tabRect(1).right())
    assert bar.tabRect(0).width() > width
