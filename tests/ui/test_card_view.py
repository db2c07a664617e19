"""A card on the screen: laid out where it is seen, links that say where they lead, nothing fetched."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from forespeak.ui.card_view import CardView, LinkDialog
from forespeak.ui.theme import DARK
from ui.hub_doubles import CARD

PAGE = "https://hub.example/someone/Small"


@pytest.fixture
def card(qtbot: QtBot) -> CardView:
    made = CardView()
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def test_only_what_is_seen_is_laid_out(card: CardView) -> None:
    card.set_card("A paragraph of words.\n\n" * 3000, PAGE)
    card.show_part(0, 400)
    sections = card.body.document._sections
    assert len(sections) == 3000
    assert 10 < sum(section.laid_out for section in sections) < 60
    assert card.height() > 50_000
    card.show_part(40_000, 40_400)
    assert sum(section.laid_out for section in sections) < 120


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("https://papers.example/1", "https://papers.example/1"),
        ("LICENSE", f"{PAGE}/blob/main/LICENSE"),
        ("./docs/use.md", f"{PAGE}/blob/main/docs/use.md"),
        ("/datasets/x", "https://hub.example/datasets/x"),
        ("mailto:a@b.example", "mailto:a@b.example"),
        ("#usage", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("data:text/html,x", None),
    ],
)
def test_where_links_lead(card: CardView, link: str, address: str | None) -> None:
    card.set_card("text", PAGE)
    assert card.address_of(link) == address


def place_of(card: CardView, words: str) -> QPoint:
    """The middle of some words of the card."""
    body = card.body
    for y in range(2, int(body.document.height), 6):
        for x in range(2, body.width(), 6):
            point = QPoint(x, y)
            hit = body.document.hit(point.toPointF())
            if hit is not None and hit[0].text[hit[1] :].startswith(words[1:]):
                return point
    raise AssertionError(words)


def test_a_link_shows_its_address_and_asks(qtbot: QtBot, card: CardView) -> None:
    card.set_card(CARD, PAGE)
    card.show_part(0, 400)
    place = place_of(card, "the licence")
    event = QHelpEvent(QEvent.Type.ToolTip, place, card.body.mapToGlobal(place))
    QApplication.sendEvent(card.body, event)
    assert QToolTip.text() == f"{PAGE}/blob/main/LICENSE"
    QToolTip.hideText()
    with qtbot.waitSignal(card.linkActivated) as asked:
        QTest.mouseClick(card.body, Qt.MouseButton.LeftButton, pos=place)
    assert asked.args == [f"{PAGE}/blob/main/LICENSE"]


def test_pictures_are_words(card: CardView) -> None:
    card.set_card(CARD, PAGE)
    card.show_part(0, 2000)
    texts = [flow.text for section in card.body.document._sections for flow, _ in card.body.document._flows(section)]
    assert "chart" in texts
    assert not any("tracker.example" in text for text in texts)


def test_another_theme_is_worn(card: CardView) -> None:
    card.set_card(CARD, PAGE)
    card.show_part(0, 400)
    card.set_theme(DARK)
    assert card.grab().toImage().pixelColor(2, 2).name() == DARK.window.lower()


def test_the_dialog_opens_only_when_asked(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    address = "https://papers.example/" + "a" * 300
    dialog = LinkDialog(address)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.copy_button.click()
    assert QGuiApplication.clipboard().text() == address
    assert opened == []
    dialog.open_button.click()
    assert opened == [address]
