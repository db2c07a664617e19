from __future__ import annotations

import pytest
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from forespeak.ui.elided_label import ElidedLabel
from forespeak.ui.tool_tips import plain_tip


def shown(tip: str) -> str:
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


@pytest.mark.parametrize("words", ["Salt & pepper", "<b>bold</b>", "a < b > c", "one\ntwo", "&amp;", '"said"'])
def test_a_name_is_shown_as_it_is_whatever_it_looks_like(words: str) -> None:
    assert plain_tip(words).startswith("<qt>"), "what tells a tool tip that the rest is markup"
    assert shown(plain_tip(words)) == words


def test_no_words_no_tip() -> None:
    assert plain_tip("") == ""


def test_a_cut_label_shows_its_words_whole(qtbot: QtBot) -> None:
    label = ElidedLabel()
    qtbot.addWidget(label)
    label.resize(60, 20)
    words = "Salt & pepper, <i>and</i> everything else that is on the table"
    label.set_words(words)
    assert label.text() != words
    assert shown(label.toolTip()) == words
