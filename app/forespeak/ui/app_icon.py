"""The program's own picture."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from forespeak.resource_files import resource_path

SIZES = (16, 22, 24, 32, 44, 48, 64, 128, 256)


@cache
def app_icon() -> QIcon:
    """In every size that a task bar or a title bar asks for. Raises OSError."""
    renderer = QSvgRenderer(resource_path("icons", "forespeak.svg").read_bytes())
    result = QIcon()
    for size in SIZES:
        pixmap = QPixmap(QSize(size, size))
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        result.addPixmap(pixmap)
    return result
