"""Choosing what drafts, with the mouse and with the keys."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from forespeak.speculation.trace import Source
from forespeak.ui.draft_sources import NAMES, chain_words, in_order, reason_lines, what_it_does
from ui.conftest import App, AppMaker

MODEL, LOOKUP, MOD = Source.DRAFT_MODEL, Source.PROMPT_LOOKUP, Source.NGRAM_MOD


def open_menu(app: App) -> None:
    QTest.mouseClick(app.window.top.speculation.source_button, Qt.MouseButton.LeftButton)
    assert app.window.top.speculation.menu.isVisible()


def drafting(app: App) -> list[Source]:
    return list(app.session.preferences.drafting)


def speculating(app: App) -> bool:
    return app.session.preferences.speculate


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


def test_several_sources_are_ticked_in_one_go(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(sources=(MODEL,))
    top = app.window.top
    assert top.speculation.source_button.text() == "Draft model"
    assert top.draft.words()[0] == "Draft · same vocabulary"
    open_menu(app)
    for source in (MOD, LOOKUP):
        QTest.mouseClick(top.speculation.menu.boxes[source], Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
    assert top.speculation.menu.isVisible()
    assert drafting(app) == [LOOKUP, MOD, MODEL]
    shown = [label.text() for label in top.speculation.menu.findChildren(QLabel)]
    for place in ("asked first", "asked second", "asked third"):
        assert place in shown
    assert top.speculation.source_button.text() == "Chain of 3"
    assert "Prompt lookup, n-gram mod, then the draft model" in top.speculation.source_button.toolTip()
    assert top.draft.words()[0] == "Draft · same vocabulary"
    QTest.mouseClick(top.speculation.menu.boxes[MOD], Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
    assert top.speculation.source_button.text() == "Lookup + draft model"
    QTest.mouseClick(top.speculation.menu.boxes[MODEL], Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
    assert top.draft.words() == ("Draft · no model", "Prompt lookup")
    top.speculation.menu.close()


def test_the_keyboard_is_enough(qtbot: QtBot, make_app: AppMaker) -> None:
    app = make_app(sources=(MODEL,))
    speculation = app.window.top.speculation
    menu = speculation.menu
    speculation.source_button.setFocus()
    QTest.keyClick(speculation.source_button, Qt.Key.Key_Space)
    menu.activateWindow()
    qtbot.waitUntil(menu.boxes[MODEL].hasFocus)
    QTest.keyClick(focused(), Qt.Key.Key_Down)
    assert menu.boxes[LOOKUP].hasFocus()
    QTest.keyClick(focused(), Qt.Key.Key_Space)
    assert drafting(app) == [LOOKUP, MODEL]
    QTest.keyClick(focused(), Qt.Key.Key_Up)
    QTest.keyClick(focused(), Qt.Key.Key_Space)
    assert drafting(app) == [LOOKUP]
    QTest.keyClick(focused(), Qt.Key.Key_Escape)
    assert not menu.isVisible()
    assert speculating(app)


def test_off_and_on_again_brings_the_chain_back(make_app: AppMaker) -> None:
    app = make_app(sources=(LOOKUP, MODEL))
    speculation = app.window.top.speculation
    open_menu(app)
    speculation.menu.off.click()
    assert not speculating(app)
    assert speculation.source_button.text() == "Off"
    assert not any(box.isChecked() for box in speculation.menu.boxes.values())
    speculation.menu.off.click()
    assert speculating(app)
    assert drafting(app) == [LOOKUP, MODEL]
    for source in (LOOKUP, MODEL):
        speculation.menu.boxes[source].click()
    assert not speculating(app)
    speculation.menu.boxes[MOD].click()
    assert speculating(app)
    assert drafting(app) == [MOD]
    speculation.menu.close()


def test_without_a_draft_model_it_cannot_be_ticked_and_comes_back_with_one(make_app: AppMaker) -> None:
    app = make_app(draft=None)
    speculation = app.window.top.speculation
    open_menu(app)
    menu = speculation.menu
    assert not menu.boxes[MODEL].isEnabled()
    assert menu.boxes[LOOKUP].isChecked()
    assert "Choose a draft model first" in menu.boxes[MODEL].accessibleDescription()
    menu.boxes[MOD].click()
    assert drafting(app) == [LOOKUP, MOD]
    menu.close()
    app.window.top.draft.picked.emit(app.folder / "other.gguf")
    assert app.session.preferences.sources == (LOOKUP, MOD, MODEL)


def test_every_source_says_what_it_does_in_one_or_two_short_sentences() -> None:
    assert set(NAMES) == set(Source)
    sentences = {what_it_does(source) for source in Source}
    assert len(sentences) == len(Source)
    assert all(len(words) < 100 and words.endswith(".") for words in sentences)


def test_each_source_of_a_chain_has_its_reason_on_a_line_of_its_own() -> None:
    labels = [f"{source.label[:1].upper()}{source.label[1:]}" for source in (LOOKUP, Source.NGRAM_MAP_K4V, MODEL)]
    told = f"{labels[0]}: a check costs 3 ms. {labels[1]}: paused: nothing repeats. {labels[2]}: a token costs 1 ms."
    assert reason_lines(told).split("\n") == [
        "Prompt lookup: a check costs 3 ms.",
        "n-gram map-k4v, paused: nothing repeats.",
        "Draft model: a token costs 1 ms.",
    ]
    assert reason_lines("a draft of 2 tokens costs 3 ms.") == "A draft of 2 tokens costs 3 ms."


def test_the_text_is_looked_up_first_and_the_model_comes_last() -> None:
    assert in_order((MODEL, MOD, MODEL, LOOKUP)) == (LOOKUP, MOD, MODEL)
    assert chain_words((LOOKUP,)) == "Prompt lookup"
    assert chain_words((LOOKUP, MOD)) == "Prompt lookup, then n-gram mod"
    assert chain_words((LOOKUP, MODEL)) == "Prompt lookup, then the draft model"
