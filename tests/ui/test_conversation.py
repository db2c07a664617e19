from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QScrollArea, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Role
from forespeak.speculation.trace import Source, Step, text_of
from forespeak.ui.conversation import ConversationView, MessageItem, column_of
from forespeak.ui.message_body import MessageBody
from forespeak.ui.message_parts import PromptProgressBar
from forespeak.ui.provenance import TokenRef
from forespeak.ui.theme import DARK, LIGHT, MarkStyle
from forespeak.ui.token_card import TokenCard
from ui.replies import EXAMPLE_TEXT, example
from ui.scripted_engine import scripted_steps

LONG = "A paragraph with a number of words in it, so that it takes two lines or three in the window.\n\n" * 30


@pytest.fixture
def view(qtbot: QtBot) -> ConversationView:
    made = ConversationView()
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    return made


def bar_of(view: ConversationView) -> tuple[int, int]:
    scroll = view.findChild(QScrollArea)
    assert isinstance(scroll, QScrollArea)
    return scroll.verticalScrollBar().value(), scroll.verticalScrollBar().maximum()


def scroll_to(view: ConversationView, value: int) -> None:
    scroll = view.findChild(QScrollArea)
    assert isinstance(scroll, QScrollArea)
    scroll.verticalScrollBar().setValue(value)
    QApplication.processEvents()


def jump_button(view: ConversationView) -> QPushButton:
    (found,) = [b for b in view.findChildren(QPushButton) if b.text() == "Jump to newest"]
    return found


def bodies(view: ConversationView) -> list[MessageBody]:
    return [body for body in view.findChildren(MessageBody) if body.isVisible()]


def dialogue(replies: int, text: str = LONG) -> list[MessageItem]:
    items = []
    for number in range(replies):
        items.append(MessageItem(2 * number + 1, Role.USER, f"Question {number}"))
        items.append(MessageItem(2 * number + 2, Role.ASSISTANT, text))
    return items


def test_an_empty_chat_says_what_to_try(view: ConversationView) -> None:
    labels = {label.text() for label in view.findChildren(QLabel) if label.isVisible()}
    assert "Ask something to begin" in labels
    view.add_message(MessageItem(1, Role.USER, "Hello"))
    labels = {label.text() for label in view.findChildren(QLabel) if label.isVisible()}
    assert "Ask something to begin" not in labels
    view.clear()
    labels = {label.text() for label in view.findChildren(QLabel) if label.isVisible()}
    assert "Ask something to begin" in labels


def test_a_chat_opens_at_its_end(view: ConversationView) -> None:
    view.set_messages(dialogue(20))
    value, maximum = bar_of(view)
    assert value == maximum > 1000


def test_widgets_are_made_only_near_the_view(view: ConversationView) -> None:
    asked: list[int] = []

    def steps(number: int) -> tuple[Step, ...]:
        asked.append(number)
        return ()

    items = [MessageItem(n, Role.ASSISTANT, LONG, lambda n=n: steps(n)) for n in range(100)]  # type: ignore[misc]
    view.set_messages(items)
    QApplication.processEvents()
    assert 99 in asked
    assert len(asked) < 10
    scroll_to(view, 0)
    assert 0 in asked
    assert len(asked) < 20


def test_what_is_read_stays_in_place_while_messages_above_are_made(view: ConversationView) -> None:
    """Scrolled up by 100 pixels, the picture is the same 100 pixels lower, whatever was laid out above it."""
    text = "short **bold**\n\n" + "".join(f"- item {n}\n" for n in range(60)) + "\n# Heading\n"
    view.set_messages(dialogue(12, text))
    QApplication.processEvents()
    steps = 0
    while (value := bar_of(view)[0]) > 100:
        before = view.grab().toImage().copy(0, 0, 700, 400)
        scroll_to(view, value - 100)
        after = view.grab().toImage().copy(0, 100, 700, 400)
        assert after == before
        steps += 1
    assert steps > 50


def stream(view: ConversationView, steps: list[Step]) -> None:
    for one in steps:
        view.append_steps(2, [one])
    QApplication.processEvents()


def test_the_end_is_followed_while_a_reply_grows(view: ConversationView) -> None:
    view.set_messages([MessageItem(1, Role.USER, "Go"), MessageItem(2, Role.ASSISTANT, "", state="generating")])
    stream(view, scripted_steps(LONG))
    value, maximum = bar_of(view)
    assert value == maximum > 100
    assert not jump_button(view).isVisible()


def test_every_token_is_painted_when_it_arrives(view: ConversationView) -> None:
    """What was painted while tokens came, and moved while it scrolled, is what would be painted now."""
    view.set_messages([MessageItem(1, Role.USER, "Go"), MessageItem(2, Role.ASSISTANT, "", state="generating")])
    QApplication.processEvents()
    screen = view.screen()
    for one in scripted_steps(LONG[:3000]):
        view.append_steps(2, [one])
        QApplication.processEvents()
        there = screen.grabWindow(view.winId()).toImage()
        assert there.convertToFormat(there.Format.Format_RGB32) == view.grab().toImage()


def test_whoever_scrolled_up_is_left_alone_and_finds_the_way_back(view: ConversationView, qtbot: QtBot) -> None:
    steps = scripted_steps(LONG + LONG)
    half = len(steps) // 2
    view.set_messages([MessageItem(1, Role.USER, "Go"), MessageItem(2, Role.ASSISTANT, "", state="generating")])
    stream(view, steps[:half])
    scroll_to(view, 40)
    assert jump_button(view).isVisible()
    stream(view, steps[half:])
    view.finish_message(2, MessageItem(2, Role.ASSISTANT, text_of(steps), tuple(steps)))
    assert bar_of(view)[0] == 40
    QTest.mouseClick(jump_button(view), Qt.MouseButton.LeftButton)
    value, maximum = bar_of(view)
    assert value == maximum
    assert not jump_button(view).isVisible()


def test_the_smallest_step_up_lets_go_of_the_end(view: ConversationView) -> None:
    view.set_messages(dialogue(5))
    maximum = bar_of(view)[1]
    scroll_to(view, maximum - 3)
    assert bar_of(view)[1] - bar_of(view)[0] == 3
    scroll_to(view, bar_of(view)[1] - 40)
    scroll_to(view, bar_of(view)[1] - 20)
    value, maximum = bar_of(view)
    assert value == maximum, "near the end it takes hold again"


def test_ones_own_message_brings_the_end_into_view(view: ConversationView) -> None:
    view.set_messages(dialogue(5))
    scroll_to(view, 0)
    view.add_message(MessageItem(99, Role.USER, "Next"))
    value, maximum = bar_of(view)
    assert value == maximum


def test_progress_of_the_prompt_is_shown_until_the_first_step(view: ConversationView) -> None:
    view.add_message(MessageItem(1, Role.USER, "Go"))
    view.add_message(MessageItem(2, Role.ASSISTANT, "", state="generating"))
    view.set_prompt_progress(2, 1240, 2000)
    (progress,) = view.findChildren(PromptProgressBar)
    assert progress.isVisible()
    assert progress.accessibleName() == "Reading 1,240 of 2,000 tokens"
    view.append_steps(2, example())
    assert not progress.isVisible()


def test_a_finished_reply_can_have_another_id(view: ConversationView, qtbot: QtBot) -> None:
    view.add_message(MessageItem(2, Role.ASSISTANT, "", state="generating"))
    view.append_steps(2, example())
    view.finish_message(2, MessageItem(5, Role.ASSISTANT, EXAMPLE_TEXT, example()))
    (again,) = [b for b in view.findChildren(QToolButton) if b.accessibleName() == "Write this reply again"]
    with qtbot.waitSignal(view.regenerateRequested, check_params_cb=lambda message: message == 5):
        QTest.mouseClick(again, Qt.MouseButton.LeftButton)


def test_what_belongs_to_no_message_is_ignored(view: ConversationView) -> None:
    view.append_steps(77, example())
    view.set_prompt_progress(77, 1, 2)
    view.finish_message(77, MessageItem(77, Role.ASSISTANT, ""))
    view.add_message(MessageItem(1, Role.SYSTEM, "You are kind."))
    assert bodies(view) == []


def test_the_card_of_a_token_appears_and_goes(view: ConversationView, qtbot: QtBot) -> None:
    view.set_messages([MessageItem(1, Role.ASSISTANT, EXAMPLE_TEXT, example())])
    (body,) = bodies(view)
    card = view.findChild(TokenCard)
    assert isinstance(card, TokenCard)
    body.setFocus()
    with qtbot.waitSignal(view.tokenSelected) as blocker:
        QTest.keyClick(body, Qt.Key.Key_Right)
    assert isinstance(blocker.args[0], TokenRef)
    assert card.isVisible()
    labels = [label.text() for label in card.findChildren(QLabel)]
    assert "“Hello”" in labels
    QTest.keyClick(body, Qt.Key.Key_Escape)
    assert not card.isVisible()


def test_choosing_tokens_brings_them_into_view(view: ConversationView, qtbot: QtBot) -> None:
    steps = scripted_steps(LONG)
    view.resize(800, 300)
    view.set_messages([MessageItem(1, Role.ASSISTANT, text_of(steps), tuple(steps))])
    scroll_to(view, 0)
    (body,) = bodies(view)
    body.setFocus()
    for _ in range(260):
        QTest.keyClick(body, Qt.Key.Key_Right)
    assert bar_of(view)[0] > 0
    card = view.findChild(TokenCard)
    assert isinstance(card, TokenCard)
    assert card.isVisible()


@pytest.mark.parametrize(
    ("address", "opens"), [("https://x.y", True), ("file:///etc/passwd", False), ("x.html", False)]
)
def test_only_web_addresses_are_opened(
    view: ConversationView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, address: str, opens: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    view.set_messages([MessageItem(1, Role.ASSISTANT, f"[link]({address})")])
    (body,) = bodies(view)
    body.linkActivated.emit(address)
    assert opened == ([address] if opens else [])


def test_every_reply_and_action_is_reached_with_tab(view: ConversationView, qtbot: QtBot) -> None:
    view.set_messages([MessageItem(1, Role.USER, "Hi"), MessageItem(2, Role.ASSISTANT, EXAMPLE_TEXT, example())])
    wanted = {
        "Edit this message",
        "Copy this message",
        f"Reply: {EXAMPLE_TEXT}",
        "Copy this reply",
        "Write this reply again",
    }
    reached = set()
    widget: QWidget | None = view
    for _ in range(60):
        widget = widget.nextInFocusChain() if widget is not None else None
        if widget is not None and widget.focusPolicy().value & 1 and widget.isVisible() and widget.isEnabled():
            reached.add(widget.accessibleName())
    assert wanted <= reached


def test_themes_and_mark_styles_are_changed_while_shown(view: ConversationView) -> None:
    view.set_messages([MessageItem(1, Role.ASSISTANT, EXAMPLE_TEXT, example())])
    QApplication.processEvents()
    strong = view.grab().toImage()
    view.set_mark_style(MarkStyle.OFF)
    QApplication.processEvents()
    assert view.grab().toImage() != strong
    view.set_mark_style(MarkStyle.STRONG)
    view.set_theme(DARK)
    QApplication.processEvents()
    assert view.grab().toImage().pixelColor(5, 300).name() == DARK.window.lower()
    view.set_theme(LIGHT)
    QApplication.processEvents()
    assert view.grab().toImage() == strong


def test_nothing_moves_sideways_when_the_scroll_bar_appears(view: ConversationView) -> None:
    view.set_messages([MessageItem(1, Role.USER, "Short"), MessageItem(2, Role.ASSISTANT, EXAMPLE_TEXT, example())])
    QApplication.processEvents()
    assert bar_of(view)[1] == 0
    before = view.grab().toImage().copy(0, 0, 760, 60)
    view.add_message(MessageItem(3, Role.ASSISTANT, LONG))
    QApplication.processEvents()
    scroll_to(view, 0)
    assert bar_of(view)[1] > 0
    assert view.grab().toImage().copy(0, 0, 760, 60) == before


@pytest.mark.parametrize("width", [420, 700, 1100, 1900])
def test_the_column_is_never_too_wide_and_fits_the_window(view: ConversationView, width: int) -> None:
    view.set_messages(dialogue(2))
    view.resize(width, 600)
    QApplication.processEvents()
    left, column = column_of(width)
    assert left > 0
    assert column <= 764
    for body in bodies(view):
        right = body.mapTo(view, body.rect().topRight()).x()
        assert right < width
        assert body.width() <= 760


def test_a_resize_keeps_the_place_one_reads(view: ConversationView) -> None:
    view.set_messages(dialogue(10))
    scroll_to(view, bar_of(view)[1] // 2)
    reading = next(
        body
        for body in bodies(view)
        if body.mapTo(view, body.rect().topLeft()).y() < 100 < body.mapTo(view, body.rect().bottomLeft()).y()
    )
    view.resize(620, 600)
    QApplication.processEvents()
    top, bottom = (reading.mapTo(view, point).y() for point in (reading.rect().topLeft(), reading.rect().bottomLeft()))
    assert top < 600
    assert bottom > 0


def test_a_chat_of_100_000_tokens_opens_quickly(view: ConversationView, qtbot: QtBot) -> None:
    steps = tuple(scripted_steps("Words and more words in a paragraph of some length here.\n\n" * 90))
    text = text_of(steps)
    count = sum(len(step.emitted) for step in steps)
    items = [MessageItem(n, Role.ASSISTANT, text, lambda: steps) for n in range(100_000 // count + 1)]
    view.set_messages(items[:1])
    QApplication.processEvents()
    before = time.perf_counter()
    view.set_messages(items)
    QApplication.processEvents()
    assert time.perf_counter() - before < 0.3


MARKDOWN = (
    "# A heading\n\nSome **bold** words and a 🍁 in a paragraph that takes some lines of the window, é, 京都 too.\n\n"
    "- an item\n- another one that is long enough to be broken into two lines, or into three of them\n\n"
    "```python\ndef f(x):\n    return x  # why\n```\n\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end.\n\n"
)


def on_screen(view: ConversationView) -> QImage:
    """What has been painted, piece by piece."""
    return view.screen().grabWindow(view.winId()).toImage().convertToFormat(QImage.Format.Format_RGB32)


@pytest.mark.parametrize("source", [None, Source.DRAFT_MODEL])
def test_what_is_painted_piece_by_piece_is_what_is_painted_at_once(
    view: ConversationView, qtbot: QtBot, source: Source | None
) -> None:
    view.set_messages([MessageItem(1, Role.USER, "Write."), MessageItem(2, Role.ASSISTANT, "", state="generating")])
    qtbot.waitExposed(view)
    QApplication.processEvents()
    if on_screen(view).isNull():
        pytest.skip("this platform does not show what is on the screen")
    for number, step in enumerate(scripted_steps(MARKDOWN * 2, source)):
        view.append_steps(2, (step,))
        QApplication.processEvents()
        painted = on_screen(view)
        assert painted == view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32), number
