"""Replays as a person watches them: buttons, keys, the slider, and the method explained step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from forespeak.ui.replay import Player
from forespeak.ui.replay_view import ReplayView
from forespeak.ui.theme import DARK, LIGHT
from ui.compare_doubles import TEXT, recorded
from ui.test_replay import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def view(qtbot: QtBot, clock: Clock) -> ReplayView:
    shown = ReplayView(Player(clock=clock))
    qtbot.addWidget(shown)
    shown.set_theme(LIGHT)
    shown.resize(1000, 600)
    shown.show_recorded((recorded(lanes=3), recorded("writing: letter")))
    shown.show()
    qtbot.waitExposed(shown)
    shown.setFocus()
    return shown


def words(view: ReplayView) -> tuple[str, str]:
    return view.lanes[0].words, view.lanes[1].words


def test_replies_stand_there_as_they_ended(view: ReplayView) -> None:
    assert words(view) == (TEXT, TEXT)
    assert view.lanes[0].name.words == "Off"
    assert "tokens/s" in view.lanes[1].rate.text()
    assert not view.story.isVisible()
    assert not view.player.playing


def test_the_button_plays_and_both_lanes_write(view: ReplayView, clock: Clock) -> None:
    QTest.mouseClick(view.play_button, Qt.MouseButton.LeftButton)
    assert view.player.playing
    assert words(view) == ("", "")
    assert "Pause" in view.play_button.accessibleName()
    clock.now += 0.5
    view.player.tick()
    slow, fast = words(view)
    assert 0 < len(slow) < len(fast)
    assert TEXT.startswith(slow)
    assert TEXT.startswith(fast)
    assert view.clock.text().startswith("0.5 of ")
    QTest.keyClick(view, Qt.Key.Key_Space)
    assert not view.player.playing


def test_lanes_are_equally_wide_whatever_they_say(view: ReplayView) -> None:
    view.resize(642, 600)
    for _ in range(5):
        QApplication.processEvents()
    facts = view.lanes[1].facts
    # Something is cut.
    assert facts.text() != facts.words
    assert view.lanes[0].y() == view.lanes[1].y()
    assert abs(view.lanes[0].width() - view.lanes[1].width()) <= 1


def test_where_the_focus_is_can_be_seen(view: ReplayView) -> None:
    assert view.play_button.hasFocus()
    QTest.keyClick(view.play_button, Qt.Key.Key_Return)
    played = view.player.playing
    QTest.keyClick(view.play_button, Qt.Key.Key_Space)
    assert (played, view.player.playing) == (True, False)
    QTest.keyClick(view.play_button, Qt.Key.Key_Home)
    assert view.player.position == 0.0
    lane = view.lanes[0]
    before = lane.grab().toImage()
    QTest.keyClick(view.play_button, Qt.Key.Key_Backtab)
    assert view.lanes[1].text.body.hasFocus()
    QTest.keyClick(view.lanes[1].text.body, Qt.Key.Key_Backtab)
    assert lane.text.body.hasFocus()
    assert lane.grab().toImage() != before


def test_keys_move_and_choose_the_speed(view: ReplayView) -> None:
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert words(view) == ("", "")
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert view.player.position == pytest.approx(view.player.duration * 0.05)
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert view.player.position == 0.0
    QTest.keyClick(view, Qt.Key.Key_2)
    assert view.player.speed == 0.25
    assert view.slow.isChecked()
    QTest.keyClick(view, Qt.Key.Key_1)
    assert view.normal.isChecked()
    QTest.keyClick(view, Qt.Key.Key_End)
    assert words(view) == (TEXT, TEXT)


def test_the_slider_goes_where_it_is_clicked(view: ReplayView) -> None:
    middle = QPoint(view.scrubber.width() // 2, view.scrubber.height() // 2)
    QTest.mouseClick(view.scrubber, Qt.MouseButton.LeftButton, pos=middle)
    assert view.player.position == pytest.approx(view.player.duration / 2, rel=0.03)
    slow, fast = words(view)
    assert len(slow) < len(fast)


def test_step_by_step_explains_the_method(view: ReplayView) -> None:
    QTest.keyClick(view, Qt.Key.Key_S)
    assert view.step.isChecked()
    assert view.story.isVisible()
    assert "reads the prompt" in view.story.words.text()
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert "nothing was drafted" in view.story.words.text()
    told = []
    for _ in range(3):
        QTest.keyClick(view, Qt.Key.Key_Right)
        told.append((view.story.title.text(), view.story.words.text(), view.story.tokens.text()))
    assert {title for title, _, _ in told} == {told[0][0]}
    assert told[0][0].startswith("Step 1 of ")
    assert "guesses the next 4 tokens" in told[0][1]
    assert "in one evaluation" in told[1][1]
    assert "of 4 accepted" in told[2][1]
    assert "in place of" in told[2][1]
    assert "line-through" in told[2][2]
    assert "line-through" not in told[0][2]
    assert "Off has" in view.story.meanwhile.text()
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert "in one evaluation" in view.story.words.text()


def test_buttons_step_too(view: ReplayView) -> None:
    assert not view.forward_button.isVisible()
    QTest.mouseClick(view.step, Qt.MouseButton.LeftButton)
    for _ in range(3):
        QTest.mouseClick(view.forward_button, Qt.MouseButton.LeftButton)
    assert "guesses" not in view.story.title.text()
    assert view.story.title.text().startswith("Step 1")
    QTest.mouseClick(view.back_button, Qt.MouseButton.LeftButton)
    assert "guesses" in view.story.words.text()


def test_another_prompt_and_another_lane(view: ReplayView) -> None:
    assert view.against.isVisible()
    QTest.keyClick(view.against, Qt.Key.Key_Down)
    assert view.lanes[1].name.words == "Prompt lookup · Auto"
    QTest.keyClick(view.prompts, Qt.Key.Key_Down)
    assert view.prompts.currentText() == "writing: letter"
    assert not view.against.isVisible()
    assert view.lanes[1].name.words == "Llama 3.2 1B · Auto"


def test_another_theme_keeps_the_place(view: ReplayView) -> None:
    view.player.seek(0.4)
    before = words(view)
    view.set_theme(DARK)
    assert words(view) == before


def test_nothing_recorded_shows_nothing(view: ReplayView) -> None:
    view.show_recorded(())
    assert not view.isVisible()


def test_lanes_stand_below_each_other_in_a_narrow_window(view: ReplayView, qtbot: QtBot) -> None:
    assert view.lanes[0].y() == view.lanes[1].y()
    view.resize(480, 900)
    qtbot.waitUntil(lambda: view.lanes[0].y() < view.lanes[1].y())
    assert view.minimumSizeHint().width() <= 460


def test_each_lane_stands_beside_the_one_that_it_is_compared_with(view: ReplayView) -> None:
    one = recorded(lanes=3)
    off, model, lookup = one.lanes
    warm = replace(off, name="Off, temperature 0.8")
    lanes = (warm, off, replace(model, base="Off"), replace(lookup, base=warm.name))
    view.show_recorded((replace(one, lanes=lanes),))
    assert [view.against.itemText(number) for number in range(view.against.count())] == [model.name, lookup.name]
    for number, expected in enumerate([("Off", model.name), (warm.name, lookup.name)]):
        view.against.setCurrentIndex(number)
        view.against.activated.emit(number)
        assert tuple(lane.name.words for lane in view.lanes) == expected
