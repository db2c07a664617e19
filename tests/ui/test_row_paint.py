"""What is painted in a row stays in its place, however long it is."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from forespeak.ui.row_paint import paint_two_lines

NAME, CAPTION = "#ff0000", "#0000ff"
ROOM = QRect(10, 0, 120, 54)


def painted(name: str, caption: str) -> QImage:
    image = QImage(200, 54, QImage.Format.Format_RGB32)
    image.fill(QColor("#ffffff"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.TextAntialiasing, False)
    paint_two_lines(painter, ROOM, name, NAME, caption, CAPTION)
    painter.end()
    return image


def rows_and_columns(image: QImage, colour: str) -> tuple[set[int], set[int]]:
    wanted = QColor(colour).rgb()
    found = [(x, y) for x in range(image.width()) for y in range(image.height()) if image.pixel(x, y) == wanted]
    return {y for _, y in found}, {x for x, _ in found}


def test_the_name_stands_above_the_small_words_and_both_within_their_room(qtbot: QtBot) -> None:
    image = painted("A long name of a model " * 5, "small words " * 9)
    upper, name_columns = rows_and_columns(image, NAME)
    lower, caption_columns = rows_and_columns(image, CAPTION)
    assert upper
    assert lower
    assert max(upper) < min(lower)
    for columns in (name_columns, caption_columns):
        assert min(columns) >= ROOM.left()
        assert max(columns) <= ROOM.right()
