from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from forespeak.ui.web_page import open_web_page


def test_only_pages_of_the_web_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    for address in ("https://hub.example/a", "http://hub.example/b", "file:///etc/passwd", "smb://host/share", ""):
        open_web_page(address)
    assert opened == ["https://hub.example/a", "http://hub.example/b"]
