"""The Discover tab as a person uses it: searching, filters, every way it can fail, one repo, and a narrow page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_results import Gate, Sort
from forespeak.ui.hub_controller import SearchState
from ui.hub_desk import Desk
from ui.hub_doubles import FakeHub, gated, missing, model, no_network, rate_limited

MakeDesk = Callable[..., Desk]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[MakeDesk]:
    made: list[Desk] = []

    def desk(hub: FakeHub | None = None, **more: object) -> Desk:
        made.append(Desk(tmp_path, hub, **more))  # type: ignore[arg-type]
        qtbot.waitUntil(lambda: made[-1].ready)
        return made[-1]

    yield desk
    for each in made:
        each.close()


def found(desk: Desk) -> Callable[[], bool]:
    return lambda: desk.parts.controller.search.state is SearchState.FOUND


def names(desk: Desk) -> list[str]:
    repos = desk.discover.list.repos
    return [str(repos.index(row).data()) for row in range(repos.rowCount())]


def test_the_first_visit_sends_nothing(make: MakeDesk) -> None:
    desk = make()
    assert desk.discover.state.title.text() == "Find a model on the Hub"
    assert "Nothing is sent before that" in desk.discover.state.text.text()
    assert desk.hub.asked == []


def test_what_is_popular_can_be_shown(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    desk.discover.state.primary.click()
    qtbot.waitUntil(found(desk))
    assert names(desk) == ["someone/Small-7B-GGUF"]


def test_typing_searches(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(models=[model("a/One"), model("b/Two")]))
    desk.type("two")
    assert desk.hub.asked == []
    qtbot.waitUntil(found(desk))
    assert desk.hub.asked == [("search", "two")]
    assert names(desk) == ["b/Two"]
    assert desk.discover.footer.text() == "1 model"


def test_the_keyboard_goes_from_the_search_to_what_was_found(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(models=[model("a/One"), model("b/Two")]))
    search, found_list = desk.discover.search, desk.discover.list
    QTest.keyClick(search, Qt.Key.Key_Down)
    assert not found_list.hasFocus(), "there is nothing to go to"
    desk.type("o")
    desk.enter()
    qtbot.waitUntil(found(desk))
    desk.enter()
    assert found_list.hasFocus()
    assert desk.hub.asked == [("search", "o")], "it was not searched again"
    assert found_list.currentIndex().row() == 0
    search.setFocus()
    QTest.keyClick(search, Qt.Key.Key_Down)
    assert found_list.hasFocus()


def test_while_it_searches_it_says_so(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(wait=threading.Event()))
    desk.type("small")
    desk.enter()
    assert desk.discover.state.title.text() == "Searching…"
    assert desk.discover.state.bar.isVisible()
    assert desk.hub.wait is not None
    desk.hub.wait.set()
    qtbot.waitUntil(found(desk))
    assert desk.discover.list.isVisible()


def test_filters_and_order_are_asked_for(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    box = desk.discover
    box.format.setCurrentIndex(1)
    box.licence.setCurrentIndex(box.licence.findText("MIT"))
    box.sort.setCurrentIndex(box.sort.findText("Most liked"))
    box.fits_here.click()
    assert desk.hub.queries == [], "a filter alone asks for nothing"
    desk.type("x")
    desk.enter()
    qtbot.waitUntil(lambda: len(desk.hub.queries) == 1)
    query = desk.hub.queries[0]
    assert (query.text, query.format, query.licence, query.sort) == ("x", ModelFormat.MLX, "mit", Sort.LIKES)
    assert query.fits is not None
    assert query.fits(1_000_000_000)
    assert not query.fits(50_000_000_000)
    qtbot.waitUntil(lambda: desk.parts.controller.search.state is SearchState.NOTHING)
    box.sort.setCurrentIndex(0)
    box.sort.activated.emit(0)
    qtbot.waitUntil(lambda: len(desk.hub.queries) == 2)
    assert desk.hub.queries[1].sort is Sort.TRENDING


def test_nothing_found_offers_what_may_help(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    desk.type("no such thing")
    qtbot.waitUntil(lambda: desk.discover.state.title.text() == "Nothing found")
    assert not desk.discover.state.primary.isVisible()
    desk.discover.search.setText("small")
    desk.discover.licence.setCurrentIndex(2)
    desk.discover.licence.activated.emit(2)
    qtbot.waitUntil(lambda: desk.discover.state.primary.text() == "Any licence")
    desk.discover.state.primary.click()
    qtbot.waitUntil(found(desk))
    assert desk.discover.licence.currentIndex() == 0


def test_nothing_that_fits_can_be_shown_anyway(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(models=[model("big/One", parameters=400_000_000_000)]))
    desk.discover.fits_here.click()
    desk.discover.state.primary.click()
    qtbot.waitUntil(lambda: desk.discover.state.title.text() == "Nothing that fits this machine")
    desk.discover.state.primary.click()
    qtbot.waitUntil(found(desk))
    assert not desk.discover.fits_here.isChecked()


def test_scrolling_loads_more(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(models=[model(f"o/M{number:02}") for number in range(45)], page_size=20))
    desk.discover.state.primary.click()
    qtbot.waitUntil(lambda: len(names(desk)) == 20)
    desk.discover.list.scrollToBottom()
    qtbot.waitUntil(lambda: len(names(desk)) == 40)
    desk.discover.more_button.click()
    qtbot.waitUntil(lambda: len(names(desk)) == 45)
    assert not desk.discover.more_button.isVisible()
    assert desk.discover.footer.text() == "45 models"


def test_a_page_that_fails_says_so_below_the_list(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(models=[model(f"o/M{number:02}") for number in range(45)], page_size=20))
    desk.discover.state.primary.click()
    qtbot.waitUntil(lambda: len(names(desk)) == 20)
    desk.hub.errors["more"] = no_network()
    desk.discover.list.scrollToBottom()
    qtbot.waitUntil(lambda: desk.discover.footer.text() == "There is no network.")
    assert desk.discover.list.isVisible()
    desk.hub.errors.clear()
    desk.discover.more_button.click()
    qtbot.waitUntil(lambda: len(names(desk)) == 40)


@pytest.mark.parametrize("error", [no_network(), rate_limited()], ids=["network", "rate"])
def test_a_failure_says_why_and_can_be_tried_again(qtbot: QtBot, make: MakeDesk, error: UserFacingError) -> None:
    desk = make(FakeHub(errors={"search": error}))
    desk.type("small")
    qtbot.waitUntil(lambda: desk.discover.state.title.text() == error.what)
    assert desk.discover.state.text.text() == f"{error.why}\n{error.remedy}"
    desk.hub.errors.clear()
    desk.discover.state.primary.click()
    qtbot.waitUntil(found(desk))


def test_offline_leads_to_the_settings(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    account = desk.parts.account
    account.set_settings(replace(account.settings, offline=True))
    desk.type("small")
    desk.enter()
    assert desk.discover.state.title.text() == "Forespeak is set to work offline."
    with qtbot.waitSignal(desk.discover.settingsRequested):
        desk.discover.state.primary.click()
    assert desk.hub.asked == []
    account.set_settings(replace(account.settings, offline=False))
    qtbot.waitUntil(found(desk))


def open_first(qtbot: QtBot, desk: Desk) -> None:
    desk.discover.state.primary.click()
    qtbot.waitUntil(found(desk))
    place = desk.discover.list.visualRect(desk.discover.list.repos.index(0)).center()
    QTest.mouseClick(desk.discover.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: desk.parts.controller.repo.card is not None)


def test_a_repo_shows_what_it_is(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    open_first(qtbot, desk)
    repo = desk.discover.repo
    assert repo.title.text() == "Small-7B-GGUF"
    assert repo.owner.text() == "someone"
    assert repo.facts.text() == (
        "7.6B parameters · qwen2 · context of 32,768 tokens · licence: apache-2.0 · 1.2M downloads a month · "
        "890 likes · updated 3 days ago"
    )
    assert "A model for tests" in repo.card.text
    assert not repo.gate.isVisible()
    qtbot.waitUntil(lambda: repo.groups.rows[1].advice.words == "Recommended")
    assert [row.fit.words for row in repo.groups.rows] == ["Fits", "Fits", "Fits", "Tight", "Too large"]


def test_the_arrow_keys_open_what_one_stops_at(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(models=[model(f"o/M{number}") for number in range(5)]))
    desk.discover.state.primary.click()
    qtbot.waitUntil(found(desk))
    desk.discover.list.setFocus()
    for _ in range(4):
        QTest.keyClick(desk.discover.list, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: desk.parts.controller.repo.repo is not None)
    opened = [about for method, about in desk.hub.asked if method == "repo"]
    assert len(opened) == 1
    assert desk.discover.list.repos.index_of(opened[0]).row() == desk.discover.list.currentIndex().row()


def test_a_private_or_missing_repo_says_what_it_may_be(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(errors={"repo": missing("someone/Secret")}))
    desk.type("someone/Secret")
    desk.enter()
    state = desk.discover.repo.state
    qtbot.waitUntil(lambda: "no public repo" in state.title.text())
    assert "it is private" in state.text.text()
    with qtbot.waitSignal(desk.discover.settingsRequested):
        state.primary.click()
    desk.hub.errors.clear()
    desk.hub.models.append(model("someone/Secret", private=True))
    state.secondary.click()
    qtbot.waitUntil(lambda: desk.discover.repo.gated.words == "Private")


@pytest.mark.parametrize(
    ("gate", "title"),
    [
        (Gate.AUTOMATIC, "The files of this model are for those who accept its licence"),
        (Gate.MANUAL, "The owner of this model decides who may have its files"),
    ],
)
def test_a_gated_repo_says_what_to_do(
    qtbot: QtBot, make: MakeDesk, monkeypatch: pytest.MonkeyPatch, gate: Gate, title: str
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    desk = make(FakeHub(models=[model("owner/Gated", gate=gate)]))
    open_first(qtbot, desk)
    card = desk.discover.repo.gate
    assert card.isVisible()
    assert card.title.text() == title
    assert "put it in here" in card.text.text()
    card.page_button.click()
    assert opened == ["https://hub.example/owner/Gated"]
    card.entry.field.setText("hf_abcdefghijkl")
    card.entry.store_button.click()
    qtbot.waitUntil(lambda: card.entry.outcome.text() == "Signed in as ada.")
    assert "with the token that is stored" in card.text.text()
    asked = [each for each in desk.hub.asked if each[0] == "repo"]
    qtbot.waitUntil(lambda: len([each for each in desk.hub.asked if each[0] == "repo"]) > 1)
    assert asked[0] == ("repo", "owner/Gated")


def test_a_gated_answer_leads_to_the_page(qtbot: QtBot, make: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    desk = make(FakeHub(errors={"repo": gated("owner/Gated")}))
    desk.parts.controller.open_repo("owner/Gated")
    state = desk.discover.repo.state
    qtbot.waitUntil(lambda: state.secondary.text() == "Open the page")
    state.secondary.click()
    assert opened == ["https://hub.example/owner/Gated"]


def test_a_card_that_fails_can_be_tried_again(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(errors={"card": no_network()}))
    desk.parts.controller.open_repo("someone/Small-7B-GGUF")
    repo = desk.discover.repo
    qtbot.waitUntil(lambda: "There is no network." in repo.card_note.text())
    assert repo.groups.rows
    desk.hub.errors.clear()
    repo.card_retry.click()
    qtbot.waitUntil(lambda: "A model for tests" in repo.card.text)
    assert not repo.card_note.isVisible()


def test_a_repo_without_a_card(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(FakeHub(card_text=""))
    open_first(qtbot, desk)
    assert desk.discover.repo.card_note.text() == "This repo has none."


def test_a_narrow_page_shows_one_at_a_time(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(size=(500, 760))
    assert desk.discover.left.isVisible()
    assert not desk.discover.repo.isVisible()
    open_first(qtbot, desk)
    assert not desk.discover.left.isVisible()
    assert desk.discover.repo.isVisible()
    assert desk.page.width() == 500
    desk.discover.repo.back.click()
    assert desk.discover.left.isVisible()
    desk.page.resize(1100, 760)
    qtbot.waitUntil(desk.discover.repo.isVisible)
    assert not desk.discover.repo.back.isVisible()


def test_the_search_key_finds_the_box(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(size=(500, 760))
    open_first(qtbot, desk)
    desk.page.activateWindow()
    desk.discover.focus_search()
    qtbot.waitUntil(desk.discover.search.hasFocus)


def test_a_link_of_the_card_is_asked_about(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    open_first(qtbot, desk)
    desk.discover.repo.card.body.linkActivated.emit("LICENSE")
    dialogs = [child for child in desk.page.children() if child.objectName() == "linkDialog"]
    assert len(dialogs) == 1
    dialogs[0].reject()  # type: ignore[attr-defined]
