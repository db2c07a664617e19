from __future__ import annotations

from collections.abc import Sequence

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QFocusEvent, QGuiApplication, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from forespeak.speculation.trace import Step
from forespeak.ui.message_body import MessageBody
from forespeak.ui.provenance import TokenRef
from forespeak.ui.text_look import Look
from forespeak.ui.theme import LIGHT
from ui.replies import EXAMPLE_TEXT, example


class Shown:
    """A body in a window, with what it told."""

    def __init__(self, qtbot: QtBot, text: str, steps: Sequence[Step] = ()) -> None:
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.body = MessageBody(Look(LIGHT), self.window)
        self.pointed: list[TokenRef | None] = []
        self.places: list[QRect] = []
        self.links: list[str] = []
        self.body.tokenPointed.connect(self._point)
        self.body.linkActivated.connect(self.links.append)
        self.body.document.set_text(text, steps)
        self.body.document.set_width(500)
        self.body.ensure(0, 1e9)
        self.body.setGeometry(10, 10, 500, int(self.body.document.height) + 1)
        self.window.resize(520, self.body.height() + 20)
        self.window.show()

    def _point(self, ref: TokenRef | None, place: QRect) -> None:
        self.pointed.append(ref)
        self.places.append(place)

    def centre(self, number: int) -> QPoint:
        rect = self.body.document.token_rects(self.body.document.provenance.ref(number))[0]
        return rect.center().toPoint()

    @property
    def told(self) -> str | None:
        ref = self.pointed[-1]
        return ref.token.text if ref else None


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    return Shown(qtbot, EXAMPLE_TEXT, example())


def test_pointing_at_a_token_tells_about_it_after_a_moment(shown: Shown, qtbot: QtBot) -> None:
    QTest.mouseMove(shown.body, shown.centre(1))
    assert shown.pointed == []
    qtbot.waitUntil(lambda: bool(shown.pointed))
    assert shown.told == " big"
    there = shown.body.mapFromGlobal(shown.places[-1].center())
    assert (there - shown.centre(1)).manhattanLength() < 4
    QTest.mouseMove(shown.body, QPoint(490, shown.body.height() - 2))
    assert shown.told is None


def test_arrow_keys_go_from_token_to_token_and_escape_ends_it(shown: Shown, qtbot: QtBot) -> None:
    shown.body.setFocus()
    with qtbot.waitSignal(shown.body.tokenSelected):
        QTest.keyClick(shown.body, Qt.Key.Key_Right)
    assert shown.told == "Hello"
    seen = []
    for _ in range(6):
        QTest.keyClick(shown.body, Qt.Key.Key_Right)
        seen.append(shown.told)
    assert seen == [" big", " 🍁", " **wor", "ld**", ".\n\n", "End"]
    QTest.keyClick(shown.body, Qt.Key.Key_Right)
    assert shown.told == "End", "there is no text behind"
    QTest.keyClick(shown.body, Qt.Key.Key_Left)
    assert shown.told == ".\n\n"
    QTest.keyClick(shown.body, Qt.Key.Key_Escape)
    assert shown.told is None


def test_a_click_keeps_the_card_until_the_focus_goes(shown: Shown, qtbot: QtBot) -> None:
    QTest.mouseClick(shown.body, Qt.MouseButton.LeftButton, pos=shown.centre(3))
    assert shown.told == " **wor"
    QGuiApplication.sendEvent(shown.body, QFocusEvent(QEvent.Type.FocusOut))
    assert shown.told is None


def test_the_chosen_token_has_a_frame(shown: Shown, qtbot: QtBot) -> None:
    before = shown.body.grab().toImage()
    shown.body.setFocus()
    QTest.keyClick(shown.body, Qt.Key.Key_Right)
    assert shown.body.grab().toImage() != before


def test_text_is_chosen_with_the_mouse_and_copied(shown: Shown, qtbot: QtBot) -> None:
    body = shown.body
    QTest.mousePress(body, Qt.MouseButton.LeftButton, pos=QPoint(0, 12))
    end = QPoint(480, body.height() - 6)
    position = QPointF(end)
    move = QMouseEvent(
        QEvent.Type.MouseMove,
        position,
        body.mapToGlobal(position),
        Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QGuiApplication.sendEvent(body, move)
    QTest.mouseRelease(body, Qt.MouseButton.LeftButton, pos=end)
    QTest.keyClick(body, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "Hello big 🍁 world.\n\nEnd"


def test_everything_is_chosen_with_the_keyboard(shown: Shown, qtbot: QtBot) -> None:
    shown.body.setFocus()
    QTest.keyClick(shown.body, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(shown.body, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "Hello big 🍁 world.\n\nEnd"


def test_a_double_click_chooses_a_word(shown: Shown, qtbot: QtBot) -> None:
    QTest.mouseDClick(shown.body, Qt.MouseButton.LeftButton, pos=shown.centre(1))
    QTest.keyClick(shown.body, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "big"


def test_links_open_only_when_clicked(qtbot: QtBot) -> None:
    shown = Shown(qtbot, "[the link](http://x.y) and text")
    QTest.mouseMove(shown.body, QPoint(10, 12))
    assert shown.links == []
    assert shown.body.cursor().shape() == Qt.CursorShape.PointingHandCursor
    QTest.mouseClick(shown.body, Qt.MouseButton.LeftButton, pos=QPoint(10, 12))
    assert shown.links == ["http://x.y"]


def test_code_is_copied_with_its_button(qtbot: QtBot) -> None:
    shown = Shown(qtbot, "Here:\n\n```python\na = 1\n\nb = 2\n```\n")
    (button,) = shown.body.findChildren(QToolButton)
    assert button.accessibleName() == "Copy the code"
    assert shown.body.rect().contains(button.geometry())
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "a = 1\n\nb = 2"
    assert button.text() == "Copied"
    qtbot.waitUntil(lambda: button.text() == "Copy", timeout=3000)


def test_buttons_go_with_the_code_they_belong_to(qtbot: QtBot) -> None:
    shown = Shown(qtbot, "```\na\n```\n")
    shown.body.document.set_text("no code any more", ())
    shown.body.ensure(0, 1e9)
    assert [button for button in shown.body.findChildren(QToolButton) if button.isVisible()] == []


def test_a_reply_without_known_tokens_has_nothing_to_point_at(qtbot: QtBot) -> None:
    shown = Shown(qtbot, EXAMPLE_TEXT, ())
    shown.body.setFocus()
    QTest.keyClick(shown.body, Qt.Key.Key_Right)
    QTest.mouseClick(shown.body, Qt.MouseButton.LeftButton, pos=QPoint(10, 12))
    assert [ref for ref in shown.pointed if ref is not None] == []


def test_keyboard_focus_can_be_seen(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    bodies = [MessageBody(Look(LIGHT), window) for _ in range(2)]
    for body in bodies:
        column.addWidget(body)
    window.show()
    bodies[0].setFocus(Qt.FocusReason.MouseFocusReason)
    assert not bodies[0].focused_by_keyboard
    bodies[1].setFocus(Qt.FocusReason.TabFocusReason)
    assert bodies[1].focused_by_keyboard or not window.isActiveWindow()
