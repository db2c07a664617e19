from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from forespeak.ui.length_bars import LengthBars
from forespeak.ui.theme import LIGHT


@pytest.fixture
def bars(qtbot: QtBot) -> LengthBars:
    made = LengthBars()
    qtbot.addWidget(made)
    made.resize(250, made.height())
    made.show()
    return made


def inked(image: QImage, colour: str) -> list[int]:
    """Pixels of that colour in each column."""
    wanted = QColor(colour)
    return [sum(image.pixelColor(x, y) == wanted for y in range(image.height())) for x in range(image.width())]


def test_the_most_frequent_length_has_the_highest_bar(bars: LengthBars) -> None:
    bars.set_lengths({0: 10, 2: 5, 6: 20})
    image = bars.grab().toImage()
    drafted, plain = inked(image, LIGHT.accent), inked(image, LIGHT.control_line)
    places = sorted({x * 9 // 250 for x, ink in enumerate(drafted) if ink > 3})
    assert places == [2, 6]
    assert max(drafted) == pytest.approx(2 * max(plain), abs=3)
    assert {x * 9 // 250 for x, ink in enumerate(plain) if ink > 3} == {0}
    assert bars.accessibleName() == "Draft lengths chosen: no draft 10 times, 2 tokens 5 times, 6 tokens 20 times"


@pytest.mark.parametrize("longest", [0, 1, 8, 9, 16, 17, 48])
def test_any_length_fits(bars: LengthBars, longest: int) -> None:
    bars.set_lengths({longest: 1})
    ink = inked(bars.grab().toImage(), LIGHT.accent if longest else LIGHT.control_line)
    assert max(ink) > 20
    assert "once" in bars.accessibleName()
