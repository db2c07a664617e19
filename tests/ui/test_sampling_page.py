"""The page of sampling: each box its setting, repetition and bias included."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from forespeak.speculation.settings import SamplingSettings
from forespeak.ui.sampling_page import SamplingPage

OTHER = SamplingSettings(
    *(0.35, 12, 0.9, 0.02, 1.1, 0.2, -0.5, 128, 99),
    dry_multiplier=0.8,
    dry_base=1.5,
    dry_allowed_length=3,
    dry_penalty_last_n=500,
    logit_bias=((5, 2.5), (6, -math.inf)),
)


@pytest.fixture
def page(qtbot: QtBot) -> SamplingPage:
    made = SamplingPage()
    qtbot.addWidget(made)
    return made


@pytest.mark.parametrize("settings", [SamplingSettings(), OTHER])
def test_what_is_shown_comes_back(page: SamplingPage, settings: SamplingSettings) -> None:
    told: list[None] = []
    page.changed.connect(lambda: told.append(None))
    page.show_settings(settings, False, None)
    assert page.settings_from(SamplingSettings()) == settings
    assert told == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dry_multiplier", 0.7),
        ("dry_base", 1.2),
        ("dry_allowed_length", 5),
        ("dry_penalty_last_n", 0),
        ("penalty_window", 256),
    ],
)
def test_a_change_changes_one_setting(page: SamplingPage, name: str, value: float) -> None:
    page.show_settings(OTHER, True, None)
    told: list[SamplingSettings] = []
    page.changed.connect(lambda: told.append(page.settings_from(OTHER)))
    page.numbers[name].setValue(value)  # type: ignore[arg-type]
    assert told == [replace(OTHER, **{name: value})]  # type: ignore[arg-type]


def test_the_whole_chat_has_a_name(page: SamplingPage) -> None:
    page.show_settings(SamplingSettings(), True, None)
    assert page.numbers["dry_penalty_last_n"].text() == "The whole chat"
