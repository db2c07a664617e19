from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Role
from forespeak.speculation.trace import Step
from forespeak.ui.message_parts import MessageItem, PromptProgressBar
from forespeak.ui.message_view import MessageView, ReplyView, UserView
from forespeak.ui.text_look import Look
from forespeak.ui.theme import DARK, LIGHT
from ui.replies import EXAMPLE_TEXT, accepted, example, plain, step


def shown(qtbot: QtBot, view_type: type[MessageView], item: MessageItem, width: int = 700) -> MessageView:
    window = QWidget()
    qtbot.addWidget(window)
    view = view_type(item, Look(LIGHT), width, window)
    view.ensure(0, 1e9)
    view.arrange()
    view.resize(width + view.edge, int(view.content_height()) + 1)
    window.resize(view.size())
    window.show()
    view.window_kept = window  # type: ignore[attr-defined]
    return view


def button(view: MessageView, name: str) -> QToolButton:
    (found,) = [b for b in view.findChildren(QToolButton) if b.accessibleName() == name]
    return found


def test_a_bubble_is_right_aligned_and_at_most_62_percent_wide(qtbot: QtBot) -> None:
    view = shown(qtbot, UserView, MessageItem(1, Role.USER, "Some longer message of several words. " * 8))
    image = view.grab().toImage()
    row = [image.pixelColor(x, 20).name() == LIGHT.bubble.lower() for x in range(image.width())]
    assert row[-8]
    assert row.index(True) >= image.width() * 0.38 - 2
    short = shown(qtbot, UserView, MessageItem(1, Role.USER, "Hi"))
    assert short.grab().toImage().pixelColor(500, 20).name() != LIGHT.bubble.lower()


def test_ones_own_message_can_be_edited_and_copied(qtbot: QtBot) -> None:
    view = shown(qtbot, UserView, MessageItem(7, Role.USER, "Hello"))
    assert isinstance(view, UserView)
    with qtbot.waitSignal(view.editRequested, check_params_cb=lambda message: message == 7):
        QTest.mouseClick(button(view, "Edit this message"), Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(view.copyRequested):
        QTest.mouseClick(button(view, "Copy this message"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Hello"


def test_a_very_long_message_is_folded_until_asked_for(qtbot: QtBot) -> None:
    view = shown(qtbot, UserView, MessageItem(1, Role.USER, "word " * 5000))
    assert view.content_height() < 650
    folded = view.content_height()
    (more,) = [b for b in view.findChildren(QPushButton) if b.isVisible()]
    assert more.text() == "Show all 25,000 characters"
    with qtbot.waitSignal(view.heightChanged):
        QTest.mouseClick(more, Qt.MouseButton.LeftButton)
    assert view.content_height() > 3 * folded


@pytest.mark.parametrize("kind", [UserView, ReplyView])
def test_versions_are_numbered_and_can_be_chosen(qtbot: QtBot, kind: type[MessageView]) -> None:
    role = Role.USER if kind is UserView else Role.ASSISTANT
    view = shown(qtbot, kind, MessageItem(7, role, "Hello", version=2, versions=3))
    assert "2 / 3" in [label.text() for label in view.findChildren(QLabel)]
    with qtbot.waitSignal(view.versionRequested) as blocker:
        QTest.mouseClick(button(view, "Previous version"), Qt.MouseButton.LeftButton)
    assert blocker.args == [7, 1]
    with qtbot.waitSignal(view.versionRequested) as blocker:
        QTest.mouseClick(button(view, "Next version"), Qt.MouseButton.LeftButton)
    assert blocker.args == [7, 3]


def test_the_first_version_has_none_before(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(7, Role.ASSISTANT, "Hello", version=1, versions=2))
    assert not button(view, "Previous version").isEnabled()
    assert button(view, "Next version").isEnabled()


def test_a_reply_waits_reads_writes_and_ends(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(2, Role.ASSISTANT, "", state="generating"))
    assert isinstance(view, ReplyView)
    (progress,) = view.findChildren(PromptProgressBar)
    view.set_progress(1240, 2000)
    assert progress.accessibleName() == "Reading 1,240 of 2,000 tokens"
    assert progress.isVisible()
    for one in example():
        view.append([one])
    view.ensure(0, 1e9)
    assert not progress.isVisible()
    assert view.body.document.text == EXAMPLE_TEXT
    assert view.findChildren(QToolButton) == []
    view.finish(MessageItem(2, Role.ASSISTANT, EXAMPLE_TEXT, example()))
    view.ensure(0, 1e9)
    assert button(view, "Write this reply again").isVisible()
    assert view.body.accessibleName() == f"Reply: {EXAMPLE_TEXT}"


def test_a_selection_goes_with_the_text_that_is_rendered_anew(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(2, Role.ASSISTANT, "", state="generating"))
    assert isinstance(view, ReplyView)
    QGuiApplication.clipboard().setText("before")

    def choose_word(x: int) -> None:
        view.ensure(0, 1e9)
        QTest.mouseDClick(view.body, Qt.MouseButton.LeftButton, pos=QPoint(x, int(view.body.document.height) - 12))

    def copied() -> str:
        QTest.keyClick(view.body, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        return QGuiApplication.clipboard().text()

    view.append([step(0, plain("Written as it reads.\n\n"), plain("Some **bold** words"))])
    choose_word(15)
    assert copied() == "Some"
    # It reads on: the words stay chosen.
    view.append([step(1, plain(" here"))])
    assert copied() == "Some"
    view.append([step(2, plain(".\n\nMore"))])
    QGuiApplication.clipboard().setText("before")
    assert copied() == "before"
    choose_word(10)
    assert copied() == "More"
    # All of it is all of it, however it is shown.
    QTest.keyClick(view.body, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    text = view.body.document.text
    view.finish(MessageItem(2, Role.ASSISTANT, text, ()))
    assert copied() == "Written as it reads.\n\nSome bold words here.\n\nMore"


def test_a_reply_that_ends_with_other_text_shows_that(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(2, Role.ASSISTANT, "", state="generating"))
    assert isinstance(view, ReplyView)
    view.append([step(0, accepted("Hello"))])
    view.finish(MessageItem(2, Role.ASSISTANT, "Hel", ()))
    assert view.body.document.text == "Hel"
    assert len(view.body.document.provenance) == 0


def test_steps_are_asked_for_only_when_the_reply_is_made(qtbot: QtBot) -> None:
    asked = []

    def steps() -> tuple[Step, ...]:
        asked.append(1)
        return example()

    view = shown(qtbot, ReplyView, MessageItem(2, Role.ASSISTANT, EXAMPLE_TEXT, steps))
    assert isinstance(view, ReplyView)
    assert asked == [1]
    assert len(view.body.document.provenance) > 0


def test_actions_of_a_reply(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(9, Role.ASSISTANT, EXAMPLE_TEXT, example()))
    assert isinstance(view, ReplyView)
    with qtbot.waitSignal(view.regenerateRequested, check_params_cb=lambda message: message == 9):
        QTest.mouseClick(button(view, "Write this reply again"), Qt.MouseButton.LeftButton)
    QTest.mouseClick(button(view, "Copy this reply"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == EXAMPLE_TEXT
    with qtbot.waitSignal(view.heightChanged):
        QTest.mouseClick(button(view, "Show the tokens of the source"), Qt.MouseButton.LeftButton)
    assert view.body.document.raw
    QTest.mouseClick(button(view, "Show the rendered text"), Qt.MouseButton.LeftButton)
    assert not view.body.document.raw


def test_a_reply_is_at_most_760_pixels_wide(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(9, Role.ASSISTANT, "word " * 300), width=1200)
    assert isinstance(view, ReplyView)
    assert view.body.width() == 760


def test_another_theme_reaches_everything(qtbot: QtBot) -> None:
    view = shown(qtbot, ReplyView, MessageItem(9, Role.ASSISTANT, EXAMPLE_TEXT, example()))
    before = view.grab().toImage()
    view.set_look(Look(DARK))
    view.ensure(0, 1e9)
    assert view.grab().toImage() != before
