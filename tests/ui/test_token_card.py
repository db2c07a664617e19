from __future__ import annotations

import re
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from forespeak.speculation.trace import Origin, Source, Step, Token
from forespeak.ui.provenance import Provenance, TokenRef
from forespeak.ui.theme import DARK, LIGHT, Theme, source_kind
from forespeak.ui.token_card import AlternativeBars, TokenCard, facts, place_words, story, visible_text
from ui.replies import accepted, bonus, corrected, plain, step


def ref_of(made: Step, index: int) -> TokenRef:
    provenance = Provenance()
    provenance.add([made])
    return provenance.ref(index)


def words(rich: str) -> str:
    return re.sub(r"<[^>]*>|&nbsp;", "", rich)


def test_what_happened_is_told_in_words() -> None:
    lost = step(7, accepted(" the"), corrected(" longest"), rejected=(" hypotenuse", " side"))
    assert words(story(ref_of(lost, 1), LIGHT)) == "The draft proposed hypotenuse; the target chose longest."
    assert "line-through" in story(ref_of(lost, 1), LIGHT)
    assert words(story(ref_of(lost, 0), LIGHT)) == "Accepted from the draft model."
    won = step(8, accepted(" a"), accepted(" b"), bonus(" c"))
    assert story(ref_of(won, 2), LIGHT) == "Bonus: all 2 drafted tokens were accepted and the target added its own."
    one = step(8, accepted(" a"), bonus(" c"))
    assert story(ref_of(one, 1), LIGHT) == "Bonus: the drafted token was accepted and the target added its own."
    assert story(ref_of(step(1, plain("x")), 0), LIGHT) == "The target chose it. Nothing was drafted here."
    silent = Step(1, (Token(1, "x", Origin.UNKNOWN),))
    assert story(ref_of(silent, 0), LIGHT) == "The engine does not say where this token came from."


@pytest.mark.parametrize("source", [source for source in Source if not source.uses_model])
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_a_source_is_named_in_its_colour(source: Source, theme: Theme) -> None:
    made = replace(step(9, accepted(" a", source)), source=source)
    told = story(ref_of(made, 0), theme)
    name = source_kind(source).label
    assert words(told) == f"Accepted from {name}: it has followed the same words before."
    assert theme.mark(source_kind(source)).fill in told
    assert name in facts(ref_of(made, 0))


def test_the_place_is_told() -> None:
    assert place_words(ref_of(step(7, accepted("a"), accepted("b"), corrected("c")), 2)) == "round 7 · position 3"
    assert place_words(ref_of(step(0, plain("a")), 0)) == "from the prompt"


def test_the_figures_are_told() -> None:
    text = facts(ref_of(step(7, corrected(" longest"), rejected=(" hypotenuse",)), 0))
    assert "target's p 0.61" in text
    assert "0.74" in text
    assert "draft model" in text
    assert "draft 2.0 ms, check 21.0 ms" in text


def test_markup_in_a_token_is_not_obeyed() -> None:
    rich = story(ref_of(step(1, corrected("<b>x</b>"), rejected=("<i>",)), 0), LIGHT)
    assert "<i>" not in rich
    assert "&lt;i&gt;" in rich
    assert "&lt;b&gt;x&lt;/b&gt;" in rich


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" word", "word"),
        ("\n", "↵"),
        ("  ", "␣␣"),
        (" \n", "␣↵"),
        ("\t", "⇥"),
        ("", "no text"),
        ("x" * 100, "x" * 13 + "…" + "x" * 13),
    ],
)
def test_tokens_can_be_seen_whatever_they_are(text: str, shown: str) -> None:
    assert visible_text(text) == shown


def test_the_bars_show_what_could_have_stood_there(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    bars = AlternativeBars(parent)
    bars.show_ref(ref_of(step(7, corrected(" longest"), rejected=(" hypotenuse",)), 0))
    assert bars.accessibleName() == "Probabilities: longest 0.61, hypotenuse 0.27, third 0.06"
    bars.show_ref(ref_of(Step(1, (Token(1, "x", Origin.UNKNOWN),)), 0))
    assert bars.accessibleName() == ""


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("at", [QPoint(0, 0), QPoint(690, 10), QPoint(690, 480), QPoint(300, 200)])
def test_the_card_stays_inside_the_window(qtbot: QtBot, theme: object, at: QPoint) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(700, 500)
    window.show()
    inner = QWidget(window)
    card = TokenCard(inner)
    card.set_theme(LIGHT if theme is LIGHT else DARK)
    token = step(7, accepted("x" * 300), corrected("y" * 300), rejected=("z" * 300,))
    card.show_token(ref_of(token, 1), QRect(window.mapToGlobal(at), QRect(0, 0, 30, 20).size()))
    assert card.isVisible()
    assert window.rect().adjusted(-10, -10, 10, 10).contains(card.geometry())
    labels = [label.text() for label in card.findChildren(QLabel)]
    assert "round 7 · position 2" in labels
    # The painted card lies inside a margin for its shadow.
    assert not card.geometry().adjusted(10, 10, -10, -10).contains(at)
