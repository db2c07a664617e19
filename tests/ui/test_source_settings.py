"""The settings of the sources that look the text up, one source at a time."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import TextSourceSettings
from forespeak.speculation.trace import Source
from forespeak.ui.preferences import Preferences
from forespeak.ui.settings_dialog import SettingsDialog
from forespeak.ui.source_settings import FIELDS, Number, Row, SourceSettings, field_of
from ui.conftest import AppMaker

EVERY = [(source, item) for source, items in FIELDS.items() for item in items]


@pytest.fixture
def page(qtbot: QtBot) -> SourceSettings:
    made = SourceSettings()
    qtbot.addWidget(made)
    made.show()
    return made


def show(page: SourceSettings, source: Source) -> None:
    page.combo.setCurrentIndex(page.combo.findData(source))


def test_every_setting_of_every_source_is_there() -> None:
    assert set(FIELDS) == {source for source in Source if not source.uses_model}
    for source, items in FIELDS.items():
        own = getattr(TextSourceSettings(), field_of(source))
        assert {item.name for item in items} == {item.name for item in fields(own)}


@pytest.mark.parametrize(("source", "item"), EVERY, ids=lambda value: getattr(value, "name", None))
def test_the_ranges_are_those_of_the_settings(source: Source, item: Number | Row) -> None:
    own = getattr(TextSourceSettings(), field_of(source))
    if not isinstance(item, Number):
        for value in ((item.low,) * 4, (item.high,) * 4):
            assert getattr(replace(own, **{item.name: value}), item.name) == value
        for value in ((item.low - 1,) * 4, (item.high + 1,) * 4):
            with pytest.raises(ValueError, match="must lie between"):
                replace(own, **{item.name: value})
        return
    # Where another number binds this one, that one is moved out of the way.
    free = {other.name: other.low for other in FIELDS[source] if getattr(other, "below", "") == item.name}
    high = getattr(own, item.below) if item.below else item.high
    for number in (item.low, high):
        assert getattr(replace(own, **free, **{item.name: number}), item.name) == number
    with pytest.raises(ValueError, match="must lie between"):
        replace(own, **free, **{item.name: item.low - 1})
    if item.name != "dynamic_limit":
        with pytest.raises(ValueError, match="must lie between"):
            replace(own, **free, **{item.name: high + 1})


def test_only_the_chosen_sources_settings_are_shown(page: SourceSettings) -> None:
    for source in FIELDS:
        show(page, source)
        shown = {key[0] for key, box in (*page.numbers.items(), *page.rows.items()) if box.isVisible()}
        assert shown == {source}


def test_a_change_counts_at_once_and_can_be_taken_back(page: SourceSettings) -> None:
    told: list[TextSourceSettings] = []
    page.changed.connect(lambda: told.append(page.settings))
    show(page, Source.NGRAM_SIMPLE)
    assert not page.reset.isEnabled()
    page.numbers[Source.NGRAM_SIMPLE, "size_n"].setValue(8)
    page.numbers[Source.PROMPT_LOOKUP, "num_pred_tokens"].setValue(10)
    assert [settings.ngram_simple.size_n for settings in told] == [8, 8]
    assert page.settings.prompt_lookup.num_pred_tokens == 10
    QTest.mouseClick(page.reset, Qt.MouseButton.LeftButton)
    assert page.settings.ngram_simple == TextSourceSettings().ngram_simple
    assert page.settings.prompt_lookup.num_pred_tokens == 10
    assert not page.reset.isEnabled()
    page.shared.click()
    assert told[-1].shared


def test_the_shortest_follows_the_longest(page: SourceSettings) -> None:
    shortest = page.numbers[Source.PROMPT_LOOKUP, "min_ngram_size"]
    page.numbers[Source.PROMPT_LOOKUP, "max_ngram_size"].setValue(1)
    assert shortest.value() == 1
    shortest.setValue(5)
    assert page.settings.prompt_lookup.min_ngram_size == 1
    page.numbers[Source.PROMPT_LOOKUP, "max_ngram_size"].setValue(7)
    shortest.setValue(5)
    assert page.settings.prompt_lookup.min_ngram_size == 5


@pytest.mark.parametrize("text", ["1, 2", "x", "", "0, 1, 1, 1", "1, 1, 1, 1, 1"])
def test_a_row_that_makes_no_sense_is_not_taken(page: SourceSettings, text: str) -> None:
    show(page, Source.NGRAM_CACHE)
    row = page.rows[Source.NGRAM_CACHE, "context_min_samples"]
    row.setText(text)
    row.editingFinished.emit()
    assert page.settings == TextSourceSettings()
    assert row.text() == "2, 2, 1, 1"
    row.setText("5, 4,3, 2")
    row.editingFinished.emit()
    assert page.settings.ngram_cache.context_min_samples == (5, 4, 3, 2)


def test_they_are_part_of_the_settings_window(qtbot: QtBot) -> None:
    dialog = SettingsDialog(Preferences())
    qtbot.addWidget(dialog)
    told: list[Preferences] = []
    dialog.preferencesChanged.connect(told.append)
    dialog.text_sources.numbers[Source.NGRAM_MOD, "n_match"].setValue(16)
    assert told[-1].text_sources.ngram_mod.n_match == 16
    dialog.set_preferences(Preferences())
    assert dialog.text_sources.numbers[Source.NGRAM_MOD, "n_match"].value() == 24
    assert len(told) == 1


def test_they_travel_with_the_next_message(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app()
    app.session.open_settings()
    assert app.session._settings is not None
    app.session._settings.text_sources.numbers[Source.NGRAM_SIMPLE, "size_n"].setValue(9)
    app.session._settings.close()
    app.session.chats.send("Hello")
    qtbot.waitUntil(lambda: bool(app.engine.generations) and not app.session.chats.busy)
    assert app.engine.generations[-1].text_sources.ngram_simple.size_n == 9
    qtbot.waitUntil(lambda: app.session.chat_worker.idle and not app.session.saver.pending)
    (chat,) = app.store.chats()
    kept = app.store.branch(chat.id)[1].settings["text_sources"]
    assert isinstance(kept, dict)
    assert kept["ngram_simple"] == {"size_n": 9, "size_m": 48}
