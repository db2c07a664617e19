"""Settings: each change counts at once, and says what it does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import LoadSettings
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.ui.preferences import Appearance, Preferences
from forespeak.ui.settings_dialog import SettingsDialog
from ui.conftest import AppMaker


@pytest.fixture
def dialog(qtbot: QtBot) -> SettingsDialog:
    made = SettingsDialog(Preferences())
    qtbot.addWidget(made)
    made.show()
    return made


def test_showing_preferences_changes_none_of_them(dialog: SettingsDialog) -> None:
    told: list[Preferences] = []
    dialog.preferencesChanged.connect(told.append)
    chosen = replace(
        Preferences(),
        sampling=SamplingSettings(0.35, 12, 0.9, 0.02, 1.1, 0.2, -0.5, 128, 99),
        random_seed=False,
        rule=Rule.REJECTION,
        draft_length=9,
        max_tokens=333,
        load_settings=LoadSettings(4096, reproducible=True, threads=2),
        appearance=Appearance.DARK,
        colour_blind=True,
        marks="strong",
        system_prompt="x",
    )
    dialog.set_preferences(chosen)
    assert told == []
    dialog.draft_length.setValue(3)
    assert told == [replace(chosen, draft_length=3)]


def test_every_control_changes_its_own_setting(dialog: SettingsDialog) -> None:
    start = dialog.preferences
    dialog.system_prompt.setPlainText("Be brief.")
    dialog.max_tokens.setValue(64)
    dialog.sampling.numbers["temperature"].setValue(0)
    dialog.sampling.numbers["top_k"].setValue(5)
    dialog.rejection.click()
    dialog.sampling.random_seed.click()
    dialog.sampling.seed.clear()
    QTest.keyClicks(dialog.sampling.seed, "12345678901234567890")
    QTest.keyClick(dialog.sampling.seed, Qt.Key.Key_Tab)
    dialog.model.reproducible.click()
    dialog.appearance.setCurrentIndex(2)
    dialog.colour_blind.click()
    dialog.marks.setCurrentIndex(0)
    assert dialog.preferences == replace(
        start,
        system_prompt="Be brief.",
        max_tokens=64,
        sampling=replace(start.sampling, temperature=0.0, top_k=5, seed=12345678901234567890),
        rule=Rule.REJECTION,
        random_seed=False,
        load_settings=replace(start.load_settings, reproducible=True),
        appearance=Appearance.DARK,
        colour_blind=True,
        marks="off",
    )


def _is_whole(area: QWidget | None) -> bool:
    assert isinstance(area, QScrollArea)
    page, viewport = area.widget(), area.viewport()
    assert page is not None
    return page.width() <= viewport.width()


def test_no_page_is_cut_at_the_least_size(qtbot: QtBot, dialog: SettingsDialog) -> None:
    dialog.setStyleSheet("* { font-size: 22px; }")
    dialog.hide()
    dialog.show()
    dialog.resize(dialog.minimumSize())
    for number in range(dialog.tabs.count()):
        dialog.tabs.setCurrentIndex(number)
        qtbot.waitUntil(partial(_is_whole, dialog.tabs.widget(number)))
    assert dialog.minimumWidth() > 480


def test_both_prompts_and_the_longest_reply_are_in_sight(dialog: SettingsDialog) -> None:
    area = dialog.tabs.widget(0)
    assert isinstance(area, QScrollArea)
    assert area.verticalScrollBar().maximum() == 0
    assert dialog.chat_prompt.height() == pytest.approx(dialog.system_prompt.height(), abs=2)


def test_a_seed_that_is_no_number_is_not_taken(dialog: SettingsDialog) -> None:
    dialog.sampling.random_seed.click()
    for text in ("abc", "-1", str(2**64)):
        dialog.sampling.seed.setText(text)
        dialog.sampling.seed.editingFinished.emit()
        assert dialog.preferences.sampling.seed == 0


def test_resetting_leaves_everything_but_the_sampling(dialog: SettingsDialog) -> None:
    dialog.set_preferences(replace(Preferences(), sampling=SamplingSettings(temperature=2.0), draft_length=9))
    dialog.tabs.setCurrentIndex(1)
    QTest.mouseClick(dialog.reset, Qt.MouseButton.LeftButton)
    assert dialog.preferences == replace(Preferences(), draft_length=9)


def test_each_rule_says_what_it_changes(dialog: SettingsDialog) -> None:
    words = " ".join(label.text() for label in dialog.findChildren(QLabel))
    assert dialog.coupled.accessibleDescription() in words
    assert "same with and without a draft" in dialog.coupled.accessibleDescription()
    assert "other words with another draft" in dialog.rejection.accessibleDescription()


def test_the_open_chats_prompt_is_its_own(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(system_prompt="General.")
    app.session.open_settings()
    dialog = app.session._settings
    assert dialog is not None
    assert not dialog.chat_prompt.isEnabled()
    app.session.chats.send("Hello")
    qtbot.waitUntil(dialog.chat_prompt.isEnabled)
    assert dialog.chat_prompt.toPlainText() == "General."
    dialog.chat_prompt.setPlainText("Special.")
    qtbot.waitUntil(lambda: app.store.chat(1).system_prompt == "Special.")
    assert app.session.preferences.system_prompt == "General."
    qtbot.waitUntil(lambda: not app.session.chats.busy)
    app.session.chats.send("Again")
    qtbot.waitUntil(lambda: len(app.engine.generations) == 2 and not app.session.chats.busy)
    assert app.engine.generations[-1].messages[0].content == "Special."
    dialog.close()
