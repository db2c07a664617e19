"""Writing a message: keys, growing, blocking, stopping."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.ui.composer import Composer


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    widget = Composer()
    qtbot.addWidget(widget)
    widget.resize(700, 120)
    widget.show()
    return widget


def test_enter_sends_and_shift_enter_breaks_the_line(composer: Composer) -> None:
    sent: list[str] = []
    composer.sendRequested.connect(sent.append)
    QTest.keyClicks(composer.edit, "one")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(composer.edit, "two")
    assert sent == []
    QTest.keyClick(composer.edit, Qt.Key.Key_Enter)
    assert sent == ["one\ntwo"]
    assert composer.text() == "one\ntwo", "the text stays until it was taken"


def test_enter_belongs_to_an_input_method_that_composes(composer: Composer) -> None:
    sent: list[str] = []
    composer.sendRequested.connect(sent.append)
    QTest.keyClicks(composer.edit, "x")
    QApplication.sendEvent(composer.edit, QInputMethodEvent("ㄋㄧ", []))
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    chosen = QInputMethodEvent("", [])
    chosen.setCommitString("你")
    QApplication.sendEvent(composer.edit, chosen)
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == ["x你"]


def test_it_grows_to_eight_lines_and_then_scrolls(composer: Composer) -> None:
    heights = []
    for lines in (1, 2, 8, 30):
        composer.set_text("\n".join(["line"] * lines))
        QApplication.processEvents()
        heights.append(composer.edit.height())
    line = composer.edit.fontMetrics().lineSpacing()
    assert heights[1] - heights[0] == line
    assert heights[2] - heights[0] == 7 * line
    assert heights[3] == heights[2]
    composer.set_text("")
    assert composer.edit.height() == heights[0]


def test_nothing_is_sent_while_it_is_blocked_empty_or_busy(composer: Composer) -> None:
    sent: list[str] = []
    composer.sendRequested.connect(sent.append)
    composer.set_text("  \n ")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    composer.set_text("hello")
    composer.set_blocked("Choose a model first.")
    assert not composer.button.isEnabled()
    assert composer.note.text() == "Choose a model first."
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    composer.set_blocked(None)
    composer.set_generating(True)
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    composer.set_generating(False)
    QTest.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    assert sent == ["hello"]


def test_the_button_stops_while_a_reply_is_written(composer: Composer) -> None:
    stops: list[bool] = []
    composer.stopRequested.connect(lambda: stops.append(True))
    composer.set_generating(True)
    assert composer.button.text() == "Stop"
    QTest.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    assert stops == [True]


def test_up_edits_the_last_message_only_from_an_empty_box(composer: Composer) -> None:
    asked: list[bool] = []
    composer.editLastRequested.connect(lambda: asked.append(True))
    QTest.keyClick(composer.edit, Qt.Key.Key_Up)
    assert asked == [True]
    composer.set_text("text")
    QTest.keyClick(composer.edit, Qt.Key.Key_Up)
    assert asked == [True]


def test_escape_gives_up_an_edit(composer: Composer) -> None:
    cancelled: list[bool] = []
    composer.editCancelled.connect(lambda: cancelled.append(True))
    QTest.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert cancelled == []
    composer.set_editing(True)
    QTest.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert cancelled == [True]
    assert not composer.editing_note.isVisible()


def test_files_are_left_to_the_window_and_links_are_pasted(composer: Composer) -> None:
    file, link = QMimeData(), QMimeData()
    file.setUrls([QUrl.fromLocalFile("/models/model.gguf")])
    link.setUrls([QUrl("https://example.org/")])
    link.setText("https://example.org/")
    assert not composer.edit.canInsertFromMimeData(file)
    assert composer.edit.canInsertFromMimeData(link)


def test_the_context_meter_says_what_it_shows(composer: Composer) -> None:
    assert not composer.context.isVisible()
    composer.set_context(None, 8192)
    assert composer.context.text() == "Context: 8,192 tokens"
    composer.set_context(2540, 8192)
    assert composer.context.isVisible()
    assert composer.context.accessibleName() == "Context: 2,540 of 8,192 tokens used"
