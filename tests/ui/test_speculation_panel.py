from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.trace import GenerationStats, Source, SpeculationState, StepCosts, StepCounter
from forespeak.ui.charts import PositionBars
from forespeak.ui.legend import LegendMark
from forespeak.ui.length_bars import LengthBars
from forespeak.ui.speculation_panel import SpeculationPanel
from forespeak.ui.theme import DARK
from ui.scripted_engine import scripted_steps

STEPS = scripted_steps("Some words that were drafted, tested, accepted or not. " * 10)


@pytest.fixture
def panel(qtbot: QtBot) -> SpeculationPanel:
    made = SpeculationPanel()
    qtbot.addWidget(made)
    made.resize(316, 850)
    made.show()
    return made


def texts(panel: SpeculationPanel) -> list[str]:
    return [label.text() for label in panel.findChildren(QLabel) if label.text()]


def value_of(panel: SpeculationPanel, name: str) -> str:
    (label,) = [label for label in panel.findChildren(QLabel) if label.text() == name]
    buddy = label.buddy()
    assert isinstance(buddy, QLabel)
    return buddy.text()


def stats() -> GenerationStats:
    counter = StepCounter()
    for step in STEPS:
        counter.add(step)
    return counter.summary(
        prompt_tokens=40,
        reused_prompt_tokens=0,
        time_to_first_token_seconds=0.24,
        decode_seconds=2.0,
        speculation=SpeculationState(True, "A draft costs 2.1 ms, a check 21 ms.", 5),
    )


def test_an_empty_panel_says_what_will_be_there(panel: SpeculationPanel) -> None:
    assert "Ready" in texts(panel)
    assert "No reply yet." in texts(panel)
    assert value_of(panel, "Accepted") == "–"


def test_what_the_headline_says_is_not_said_twice(panel: SpeculationPanel) -> None:
    for controller in (FixedDraftLength(4), FixedDraftLength(1)):
        panel.set_state(controller.state)
        headline = panel._state.text()
        assert headline.startswith("Drafting ")
        assert panel._reason.text() == "A fixed length."
        assert headline in controller.state.reason


@pytest.mark.parametrize(
    ("state", "headline"),
    [
        (SpeculationState(True, "why", 5), "Drafting 5 tokens at a time"),
        (SpeculationState(True, "why", 1), "Drafting 1 token at a time"),
        (SpeculationState(True, "why"), "Drafting"),
        (SpeculationState(False, "why"), "Off"),
        (SpeculationState(False, "Paused: why"), "Paused"),
        (SpeculationState(False, "why", costs=StepCosts(0.02, 0.03, 0.002)), "Paused"),
    ],
)
def test_the_state_is_said_with_its_reason(panel: SpeculationPanel, state: SpeculationState, headline: str) -> None:
    panel.set_state(state)
    assert headline in texts(panel)
    assert "Why" in texts(panel)


def test_counts_grow_while_steps_arrive(panel: SpeculationPanel) -> None:
    panel.add_steps(STEPS[:5], 0.3)
    first = int(value_of(panel, "Drafted and tested"))
    panel.add_steps(STEPS[5:], 0.9)
    assert int(value_of(panel, "Drafted and tested")) > first > 0


def test_the_final_figures_are_those_of_the_generation(panel: SpeculationPanel) -> None:
    final = stats()
    panel.set_stats(final)
    assert value_of(panel, "Accepted") == str(final.accepted_draft_tokens_count)
    assert value_of(panel, "Rejected") == str(final.rejected_draft_tokens_count)
    assert value_of(panel, "Ignored, never tested") == str(final.ignored_draft_tokens_count)
    assert final.acceptance_rate is not None
    assert value_of(panel, "Acceptance rate") == f"{final.acceptance_rate * 100:.0f} %"
    assert f"{final.tokens_per_second:.1f}" in texts(panel)
    assert "First token after 0.24 s" in texts(panel)
    assert "Drafting 5 tokens at a time" in texts(panel)
    bars = panel.findChild(PositionBars)
    assert isinstance(bars, PositionBars)
    assert bars.accessibleName().startswith("Accepted by position: ")


def test_the_plain_speed_is_shown_where_it_is_known(panel: SpeculationPanel) -> None:
    panel.set_live_rate(68.42)
    panel.set_plain_baseline(50.1)
    assert {"68.4", "plain 50.1"} <= set(texts(panel))
    panel.set_plain_baseline(None)
    assert "plain 50.1" not in texts(panel)


def test_a_new_generation_starts_from_nothing_but_the_baseline(panel: SpeculationPanel) -> None:
    panel.set_plain_baseline(50.1)
    panel.add_steps(STEPS, 2.0)
    panel.set_stats(stats())
    panel.reset()
    assert value_of(panel, "Accepted") == "–"
    assert "plain 50.1" in texts(panel)
    panel.add_steps(STEPS[:3], 0.5)
    assert value_of(panel, "Accepted") != "–"


def test_the_legend_is_always_in_view(panel: SpeculationPanel) -> None:
    panel.resize(316, 300)
    assert legend(panel) == ["draft model", "corrected", "bonus", "rejected"]
    for mark in (mark for mark in panel.findChildren(LegendMark) if mark.isVisible()):
        corner = mark.mapTo(panel, mark.rect().bottomRight())
        assert panel.rect().contains(corner)


def legend(panel: SpeculationPanel) -> list[str]:
    return [mark.accessibleName() for mark in panel.findChildren(LegendMark) if mark.isVisible()]


def test_the_legend_has_what_the_reply_has(panel: SpeculationPanel) -> None:
    panel.set_sources((Source.NGRAM_MOD, Source.DRAFT_MODEL))
    assert legend(panel) == ["draft model", "n-gram mod", "corrected", "bonus", "rejected"]
    panel.add_steps(scripted_steps("Words that were found in the text. " * 5, Source.PROMPT_LOOKUP), 0.5)
    assert legend(panel) == ["prompt lookup", "corrected", "bonus", "rejected"]
    panel.add_steps(scripted_steps("Words that were found in the text. " * 5, Source.NGRAM_CACHE), 1.5)
    assert legend(panel) == ["prompt lookup", "n-gram cache", "corrected", "bonus", "rejected"]
    panel.reset()
    assert legend(panel) == ["draft model", "n-gram mod", "corrected", "bonus", "rejected"]


def test_a_chain_says_what_each_source_got_accepted(panel: SpeculationPanel) -> None:
    panel.add_steps(STEPS, 1.0)
    counted = sum(step.accepted_count for step in STEPS)
    assert not any(words.startswith("draft model ") for words in texts(panel))
    lookup = scripted_steps("Words that were found in the text. " * 5, Source.PROMPT_LOOKUP)
    panel.add_steps(lookup, 2.0)
    found = sum(step.accepted_count for step in lookup)
    assert f"draft model {counted} · prompt lookup {found}" in texts(panel)


def test_figures_alone_are_enough(panel: SpeculationPanel) -> None:
    counter = StepCounter()
    for step in (*STEPS, *scripted_steps("Words that were found in the text. " * 5, Source.NGRAM_MOD)):
        counter.add(step)
    state = SpeculationState(True, "why", 4)
    panel.set_stats(
        counter.summary(
            prompt_tokens=40,
            reused_prompt_tokens=0,
            time_to_first_token_seconds=0.2,
            decode_seconds=2.0,
            speculation=state,
        )
    )
    assert legend(panel) == ["draft model", "n-gram mod", "corrected", "bonus", "rejected"]
    accepted = counter.accepted_from
    assert f"draft model {accepted[Source.DRAFT_MODEL]} · n-gram mod {accepted[Source.NGRAM_MOD]}" in texts(panel)
    bars = panel.findChild(LengthBars)
    assert isinstance(bars, LengthBars)
    assert bars.isVisible()


def test_the_chosen_lengths_are_shown_once_something_was_drafted(panel: SpeculationPanel) -> None:
    bars = panel.findChild(LengthBars)
    assert isinstance(bars, LengthBars)
    panel.add_steps(scripted_steps("Nothing was drafted here. " * 5, None), 0.5)
    assert not bars.isVisible()
    panel.add_steps(STEPS, 1.5)
    assert bars.isVisible()
    assert "no draft" in bars.accessibleName()
    assert "4 tokens" in bars.accessibleName()


def test_a_low_window_scrolls(panel: SpeculationPanel) -> None:
    scroll = panel.findChild(QScrollArea)
    assert isinstance(scroll, QScrollArea)
    panel.resize(316, 300)
    assert scroll.verticalScrollBar().maximum() > 0
    assert scroll.horizontalScrollBar().maximum() == 0


def test_it_can_be_dark(panel: SpeculationPanel) -> None:
    panel.set_theme(DARK)
    assert panel.grab().toImage().pixelColor(3, 3).name() == DARK.side.lower()
