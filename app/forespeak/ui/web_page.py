"""Opens a page in the user's browser."""

from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices


def open_web_page(address: str) -> None:
    """Nothing happens for another scheme than http and https: the address may be a stranger's."""
    url = QUrl(address)
    if url.scheme() in {"http", "https"}:
        QDesktopServices.openUrl(url)
