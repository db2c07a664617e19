"""One family of line icons, tinted by the theme."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from forespeak.resource_files import resource_path

_SCALES = (1.0, 1.5, 2.0, 3.0)


@cache
def icon(name: str, colour: str, disabled: str | None = None, size: int = 20) -> QIcon:
    """The icon resources/icons/<name>.svg in `colour` (#RRGGBB), sharp at every usual scale. Raises OSError."""
    drawing = resource_path("icons", f"{name}.svg").read_text("utf-8")
    result = QIcon()
    for mode, tint in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, disabled or colour)):
        renderer = QSvgRenderer(QByteArray(drawing.replace("#000000", QColor(tint).name()).encode()))
        for scale in _SCALES:
            side = round(size * scale)
            pixmap = QPixmap(QSize(side, side))
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            renderer.render(painter, QRectF(0, 0, side, side))
            painter.end()
            pixmap.setDevicePixelRatio(scale)
            result.addPixmap(pixmap, mode)
    return result
