from __future__ import annotations

import re
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QLabel, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from forespeak.engines.engine import Role
from forespeak.speculation.trace import GenerationStats, SpeculationState, StepCosts
from forespeak.ui.message_parts import (
    MessageItem,
    PromptProgressBar,
    ReplyFooter,
    baseline_words,
    estimated_height,
    figures_of,
    gain_of,
    plain_rate_of,
)
from forespeak.ui.theme import DARK, LIGHT

STATS = GenerationStats(
    time_to_first_token_seconds=0.24,
    generated_tokens=1234,
    tokens_per_second=68.42,
    acceptance_rate=0.711,
    accepted_draft_tokens_count=293,
    rejected_draft_tokens_count=119,
)


def words(item: MessageItem) -> str:
    return re.sub(r"<[^>]*>", "", figures_of(item, LIGHT)).replace("&nbsp;", " ")


def reply(**fields: object) -> MessageItem:
    return MessageItem(1, Role.ASSISTANT, "text", **fields)  # type: ignore[arg-type]


def test_the_figures_of_a_reply() -> None:
    text = words(reply(stats=STATS))
    for part in ("68.4 tokens/s", "71 % of drafts accepted", "first token 0.24 s", "1,234 tokens"):
        assert part in text
    assert "faster" not in text


def test_a_gain_is_claimed_only_against_a_measured_speed() -> None:
    assert "1.37× faster" in words(reply(stats=STATS, plain_tokens_per_second=50.0))
    slower = words(reply(stats=STATS, plain_tokens_per_second=80.0))
    assert "0.86× of plain speed" in slower
    assert "faster" not in slower


COSTS = StepCosts(plain_seconds=0.02, check_seconds=0.022, drafted_token_seconds=0.002)


def test_without_a_plain_reply_the_gain_is_reckoned_from_timed_steps() -> None:
    drafted = replace(STATS, total_draft_tokens_count=412)
    item = reply(stats=replace(drafted, speculation=SpeculationState(True, "Drafting.", 4, COSTS)))
    assert "≈ 1.37× faster" in words(item)
    assert "Estimated" in baseline_words(item)
    assert "20.0 ms" in baseline_words(item)
    assert plain_rate_of(item) == pytest.approx(50.0)


def test_where_nothing_plain_was_timed_nothing_is_claimed() -> None:
    item = reply(stats=STATS)
    assert "×" not in words(item)
    assert gain_of(item) is None
    assert "No gain is shown" in baseline_words(item)
    assert plain_rate_of(item) is None


def test_a_reply_without_drafts_is_not_called_faster() -> None:
    undrafted = replace(
        STATS,
        accepted_draft_tokens_count=0,
        rejected_draft_tokens_count=0,
        acceptance_rate=None,
        speculation=SpeculationState(False, "Paused.", 0, COSTS),
    )
    for item in (reply(stats=undrafted), reply(stats=undrafted, plain_tokens_per_second=50.0)):
        assert "×" not in words(item)
        assert baseline_words(item) == ""
    # Its own speed is what others can be compared with.
    assert plain_rate_of(reply(stats=undrafted)) == STATS.tokens_per_second


def test_the_tooltip_names_what_a_gain_is_measured_against(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    footer = ReplyFooter(reply(stats=STATS, plain_tokens_per_second=50.0), LIGHT, parent)
    figures = next(label for label in footer.findChildren(QLabel) if "tokens/s" in label.text())
    assert "Compared with 50.0 tokens/s" in figures.toolTip()
    assert "on this machine" in figures.toolTip()
    assert figures.accessibleDescription() == figures.toolTip()


def test_no_figures_without_tokens() -> None:
    assert words(reply()) == ""
    assert words(reply(stats=GenerationStats())) == ""
    assert "drafts" not in words(reply(stats=GenerationStats(generated_tokens=1, tokens_per_second=0.0)))
    assert "1 token" in words(reply(stats=GenerationStats(generated_tokens=1)))


@pytest.mark.parametrize("state", ["stopped", "interrupted", "failed"])
@pytest.mark.parametrize("width", [260, 760])
def test_a_reply_that_ended_early_says_why(qtbot: QtBot, state: str, width: int) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    why = "The engine ended by itself. Your text is kept. " * 3
    footer = ReplyFooter(reply(state=state, note=why, stats=STATS), LIGHT, parent)
    footer.add_actions([], raw=False)
    footer.resize(width, int(footer.needed_height(width)))
    parent.resize(width, footer.height())
    parent.show()
    (note,) = [label for label in footer.findChildren(QLabel) if label.text() == why]
    assert note.isVisible()
    assert note.height() >= note.heightForWidth(note.width())
    for child in footer.findChildren(QWidget):
        if child.isVisible():
            assert footer.rect().adjusted(-5, 0, 1, 1).contains(child.mapTo(footer, child.rect().bottomRight())), child


def test_an_early_end_without_a_note_still_says_something(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    footer = ReplyFooter(reply(state="stopped"), LIGHT, parent)
    footer.add_actions([], raw=False)
    assert "You stopped this reply." in [label.text() for label in footer.findChildren(QLabel)]


def test_actions_have_names_and_can_be_reached(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    footer = ReplyFooter(reply(stats=STATS), LIGHT, parent)
    footer.add_actions([], raw=False)
    footer.set_theme(DARK)
    buttons = footer.findChildren(QToolButton)
    assert len(buttons) == 4
    for button in buttons:
        assert button.accessibleName()
        assert button.toolTip()
        assert button.focusPolicy().value & 1, "Tab reaches it"
    before = footer.raw.accessibleName()
    footer.show_raw(True)
    assert footer.raw.accessibleName() != before
    assert footer.raw.isChecked()


def test_progress_is_told_in_tokens(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    bar = PromptProgressBar(LIGHT, parent)
    assert bar.accessibleName() == "Waiting for the first token"
    bar.set_progress(1240, 2000)
    assert bar.accessibleName() == "Reading 1,240 of 2,000 tokens"
    bar.resize(500, 28)
    parent.resize(500, 28)
    parent.show()
    colours = parent.grab().toImage()
    assert LIGHT.accent.lower() in {colours.pixelColor(x, 13).name() for x in range(500)}


def test_longer_text_is_estimated_taller() -> None:
    assert estimated_height("word " * 400, 700) > estimated_height("word " * 40, 700)
    assert estimated_height("word " * 400, 300) > estimated_height("word " * 400, 700)
