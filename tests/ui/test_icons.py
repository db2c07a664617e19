from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication

from forespeak.resource_files import resource_path
from forespeak.ui.icons import icon


def colours(image: QImage) -> set[str]:
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {pixel.name() for pixel in pixels if pixel.alpha() == 255}


def names() -> list[str]:
    return [path.stem for path in sorted(resource_path("icons").glob("*.svg")) if "#000000" in path.read_text("utf-8")]


@pytest.mark.parametrize("name", names())
def test_icons_take_the_colour_they_are_given(qapp: QApplication, name: str) -> None:
    image = icon(name, "#12ab34", size=60).pixmap(QSize(60, 60)).toImage()
    assert colours(image) <= {QColor("#12ab34").name()}
    assert colours(image)


def test_a_disabled_icon_may_have_another_colour(qapp: QApplication) -> None:
    from PySide6.QtGui import QIcon

    image = icon("copy", "#000000", "#cc0000", size=60).pixmap(QSize(60, 60), QIcon.Mode.Disabled).toImage()
    assert colours(image) == {"#cc0000"}


def test_a_missing_icon_is_an_error(qapp: QApplication) -> None:
    with pytest.raises(FileNotFoundError):
        icon("no-such-icon", "#000000")
