"""How models are loaded: each choice counts, and what the engine would refuse is not taken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import CacheType, LoadSettings
from forespeak.ui.model_page import ModelPage
from forespeak.ui.preferences import Preferences


@pytest.fixture
def page(qtbot: QtBot) -> ModelPage:
    made = ModelPage()
    qtbot.addWidget(made)
    made.show()
    return made


def choose(page: ModelPage, words: str, of: str = "cache_type") -> None:
    combo = getattr(page, of)
    combo.setCurrentIndex(combo.findText(words))


def taken(page: ModelPage) -> Preferences:
    """As the dialog does after each change."""
    preferences = page.taken_into(page._shown)
    page.show_preferences(preferences)
    return preferences


def test_what_is_shown_is_what_would_be_taken(page: ModelPage) -> None:
    for settings in (LoadSettings(), LoadSettings(cache_type=CacheType.Q4_1, flash_attention=True)):
        for preferences in (
            replace(Preferences(), load_settings=replace(settings, context_length=4096, reproducible=True)),
            replace(Preferences(), load_settings=replace(settings, device="CUDA0", gpu_layers=5)),
        ):
            page.show_preferences(preferences)
            assert page.taken_into(preferences) == preferences


def test_each_choice_is_taken(page: ModelPage) -> None:
    page.changed.connect(lambda: taken(page))
    choose(page, "Q8_0")
    choose(page, "On", "flash_attention")
    page.context_length.setValue(100)
    assert page._shown.load_settings == LoadSettings(256, cache_type=CacheType.Q8_0, flash_attention=True)
    assert all(page.cache_type.findText(each.value) >= 0 for each in CacheType if each is not CacheType.F16)


def test_a_small_cache_keeps_flash_attention(page: ModelPage) -> None:
    told: list[Preferences] = []
    page.changed.connect(lambda: told.append(taken(page)))
    page.show_preferences(replace(Preferences(), load_settings=LoadSettings(cache_type=CacheType.Q8_0)))
    choose(page, "Off", "flash_attention")
    assert told == []
    assert page.flash_attention.currentText() == "Automatic"
    problem = page._flash_row.problem
    assert problem.isVisible()
    assert "A cache in Q8_0 cannot do without it." in problem.text()
    assert problem.text() in page.flash_attention.accessibleDescription()
    choose(page, "F16, as is usual")
    assert not problem.isVisible(), "what was taken leaves no reproach behind"
    choose(page, "Off", "flash_attention")
    assert page._shown.load_settings == LoadSettings(flash_attention=False)
    choose(page, "Q4_0")
    assert page.cache_type.currentText() == "F16, as is usual"
    assert "Q4_0 needs flash attention." in page._cache_row.problem.text()
    choose(page, "BF16")
    assert page._shown.load_settings == LoadSettings(cache_type=CacheType.BF16, flash_attention=False)


def test_the_reproducible_setting_overrules_and_says_so(page: ModelPage) -> None:
    page.changed.connect(lambda: taken(page))
    settings = LoadSettings(cache_type=CacheType.Q8_0)
    page.show_preferences(replace(Preferences(), load_settings=settings))
    page.reproducible.click()
    assert not page.cache_type.isEnabled()
    assert not page.flash_attention.isEnabled()
    assert page._cache_row.note.text() == "The reproducible setting uses F32."
    assert page._shown.load_settings == replace(settings, reproducible=True), "what was chosen comes back with it"
    page.reproducible.click()
    assert page.cache_type.isEnabled()
    assert page.cache_type.currentText() == "Q8_0"
