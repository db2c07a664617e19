from __future__ import annotations

import pytest
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from forespeak.speculation.trace import Source
from forespeak.ui.legend import Legend, LegendMark
from forespeak.ui.theme import DARK, LIGHT, MarkKind, source_kind


@pytest.mark.parametrize("kind", list(MarkKind))
def test_a_mark_is_explained_by_itself(qtbot: QtBot, kind: MarkKind) -> None:
    mark = LegendMark(kind)
    qtbot.addWidget(mark)
    mark.show()
    for theme in (LIGHT, DARK):
        mark.set_theme(theme)
        image = mark.grab().toImage()
        there = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
        assert QColor(theme.mark(kind).fill).name() in there
        assert any(QColor(theme.mark(kind).line).name() == colour for colour in there) or kind is MarkKind.CORRECTED
    assert mark.accessibleName() == kind.label
    assert mark.toolTip()


def test_only_what_is_there_is_explained_and_takes_room(qtbot: QtBot) -> None:
    legend = Legend()
    qtbot.addWidget(legend)
    legend.show()
    marks = {mark.accessibleName(): mark for mark in legend.findChildren(LegendMark)}
    legend.set_kinds({source_kind(Source.NGRAM_MOD), MarkKind.BONUS})
    low = legend.sizeHint().height()
    assert {name for name, mark in marks.items() if mark.isVisible()} == {"n-gram mod", "bonus"}
    legend.set_kinds(set(MarkKind))
    assert legend.sizeHint().height() > low
    assert all(mark.isVisible() for mark in marks.values())
