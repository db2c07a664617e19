"""What looks like markup is shown as it was written, wherever the window shows words."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

import forespeak.ui
from forespeak.errors import UserFacingError
from forespeak.ui.dialogs import ErrorDialog
from forespeak.ui.notices import Banner, ModelCard, Toast
from forespeak.ui.plain_label import PlainLabel

MARKUP = "Token 1 is “<s>” in the target and “<b>x</b>” in the draft."


def test_words_are_shown_as_they_are(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    with_parent, without = PlainLabel(MARKUP, parent), PlainLabel(MARKUP)
    qtbot.addWidget(without)
    assert with_parent.parentWidget() is parent
    assert PlainLabel(parent).parentWidget() is parent
    assert with_parent.textFormat() is Qt.TextFormat.PlainText
    # Markup would be narrower by its tags.
    assert without.sizeHint().width() >= without.fontMetrics().horizontalAdvance(MARKUP)


def test_notices_and_dialogs_show_markup_as_words(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    banner, toast, card = Banner(parent), Toast(parent), ModelCard(parent)
    banner.show_message(MARKUP)
    toast.offer(MARKUP, "Undo", lambda: None)
    card.show_card(MARKUP, MARKUP)
    dialog = ErrorDialog(UserFacingError(MARKUP, MARKUP, MARKUP), parent)
    labels = [label for each in (banner, toast, card, dialog) for label in each.findChildren(QLabel)]
    showing = [label for label in labels if label.text() == MARKUP]
    assert len(showing) == 7
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in showing)


def test_no_part_of_the_window_makes_labels_that_guess() -> None:
    folder = Path(forespeak.ui.__file__).parent
    guessing = [path.name for path in folder.glob("*.py") if re.search(r"\bQLabel\b", path.read_text("utf-8"))]
    assert guessing == ["plain_label.py"], "make a PlainLabel, and set the format where markup is meant"
