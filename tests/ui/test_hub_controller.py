"""Searching while one types, page by page, and opening repos: what is asked anew makes the former void."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_results import SearchQuery
from forespeak.models.hub_settings import HubSettingsFile
from forespeak.ui.hub_account import HubAccount
from forespeak.ui.hub_controller import HubController, SearchState
from ui.hub_desk import token_store
from ui.hub_doubles import FakeHub, missing, model, no_network


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub(models=[model(f"owner/Model-{number}") for number in range(7)], page_size=3)


@pytest.fixture
def controller(qtbot: QtBot, tmp_path: Path, hub: FakeHub) -> Iterator[HubController]:
    account = HubAccount(HubSettingsFile(tmp_path), token_store(), lambda _: hub)
    made = HubController(account)
    yield made
    if hub.wait is not None:
        hub.wait.set()
    made.close()
    account.close()
    made.deleteLater()
    account.deleteLater()


def test_nothing_is_asked_before_somebody_does(controller: HubController, hub: FakeHub) -> None:
    assert controller.search.state is SearchState.FIRST
    controller.load_more()
    assert hub.asked == []


def test_typing_searches_once_when_it_pauses(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    for text in ("m", "mo", "model-3"):
        controller.type_query(SearchQuery(text))
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FOUND)
    assert hub.asked == [("search", "model-3")]
    assert [each.repo for each in controller.search.models] == ["owner/Model-3"]


def test_a_new_search_cancels_the_former(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    hub.wait = threading.Event()
    controller.ask(SearchQuery("model-1"))
    controller.ask(SearchQuery("model-2"))
    assert controller.search.state is SearchState.SEARCHING
    hub.wait.set()
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FOUND)
    qtbot.wait(30)
    assert [each.repo for each in controller.search.models] == ["owner/Model-2"]


def test_pages_come_as_they_are_wanted(qtbot: QtBot, controller: HubController) -> None:
    controller.ask(SearchQuery())
    qtbot.waitUntil(lambda: len(controller.search.models) == 3)
    for count, more in ((6, True), (7, False)):
        controller.load_more()
        assert controller.search.loading_more
        controller.load_more()
        qtbot.waitUntil(lambda: not controller.search.loading_more)
        assert len(controller.search.models) == count
        assert controller.search.more is more
    controller.load_more()
    assert not controller.search.loading_more


def test_a_page_that_fails_can_be_tried_again(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    controller.ask(SearchQuery())
    qtbot.waitUntil(lambda: len(controller.search.models) == 3)
    hub.errors["more"] = no_network()
    controller.load_more()
    qtbot.waitUntil(lambda: controller.search.more_error is not None)
    assert len(controller.search.models) == 3
    controller.load_more()
    assert not controller.search.loading_more, "scrolling does not hammer a dead network"
    hub.errors.clear()
    controller.retry_more()
    qtbot.waitUntil(lambda: len(controller.search.models) == 6)


def test_what_moved_between_two_pages_comes_once(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    controller.ask(SearchQuery())
    qtbot.waitUntil(lambda: len(controller.search.models) == 3)
    hub.models.insert(0, model("owner/New"))
    controller.load_more()
    qtbot.waitUntil(lambda: not controller.search.loading_more)
    names = [each.name for each in controller.search.models]
    assert names == ["Model-0", "Model-1", "Model-2", "Model-3", "Model-4"]


def test_pages_without_anything_that_fits_are_passed_over(
    qtbot: QtBot, controller: HubController, hub: FakeHub
) -> None:
    hub.models[6] = model("owner/Tiny", parameters=1_000)
    controller.ask(SearchQuery(fits=lambda size: size < 1_000_000))
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FOUND)
    assert [each.name for each in controller.search.models] == ["Tiny"]
    assert controller.search.left_out == 6


def test_nothing_that_fits_is_told_apart(qtbot: QtBot, controller: HubController) -> None:
    controller.ask(SearchQuery(fits=lambda _: False))
    qtbot.waitUntil(lambda: controller.search.state is SearchState.NOTHING)
    assert controller.search.left_out == 7


def test_a_failed_search_says_why_and_can_be_tried_again(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    hub.errors["search"] = no_network()
    controller.ask(SearchQuery("model"))
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FAILED)
    assert controller.search.error is hub.errors.pop("search")
    controller.retry()
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FOUND)


def test_offline_asks_nothing(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    account = controller._account
    account.set_settings(replace(account.settings, offline=True))
    controller.ask(SearchQuery("model"))
    controller.open_repo("owner/Model-1")
    for error in (controller.search.error, controller.repo.error):
        assert isinstance(error, HubError)
        assert error.problem is HubProblem.OFFLINE
    assert hub.asked == []
    account.set_settings(replace(account.settings, offline=False))
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FOUND)
    qtbot.waitUntil(lambda: controller.repo.card is not None)


def test_a_repo_opens_and_then_its_card(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    controller.open_repo("owner/Model-1")
    assert controller.repo.loading
    qtbot.waitUntil(lambda: controller.repo.card is not None)
    assert controller.repo.repo is not None
    assert hub.asked == [("repo", "owner/Model-1"), ("card", "owner/Model-1")]
    controller.open_repo("owner/Model-1")
    assert len(hub.asked) == 2, "it is open already"


def test_a_card_comes_without_html(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    hub.card_text = "<script>x</script><b>Words</b>"
    controller.open_repo("owner/Model-1")
    qtbot.waitUntil(lambda: controller.repo.card is not None)
    assert controller.repo.card is not None
    assert controller.repo.card.text == "**Words**"


def test_a_card_that_fails_leaves_the_files(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    hub.errors["card"] = no_network()
    controller.open_repo("owner/Model-1")
    qtbot.waitUntil(lambda: controller.repo.card_error is not None)
    assert controller.repo.repo is not None
    hub.errors.clear()
    controller.retry_card()
    qtbot.waitUntil(lambda: controller.repo.card is not None)


def test_a_missing_repo_is_said_so(qtbot: QtBot, controller: HubController) -> None:
    controller.open_repo("owner/Gone")
    qtbot.waitUntil(lambda: controller.repo.error is not None)
    assert str(controller.repo.error) == str(missing("owner/Gone"))


def test_the_next_repo_makes_the_former_void(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    hub.wait = threading.Event()
    controller.open_repo("owner/Model-1")
    controller.open_repo("owner/Model-2")
    hub.wait.set()
    qtbot.waitUntil(lambda: controller.repo.card is not None)
    assert controller.repo.repo is not None
    assert controller.repo.repo.repo == "owner/Model-2"
    controller.close_repo()
    assert controller.repo.name is None


@pytest.mark.parametrize("pasted", ["owner/Model-2", "https://huggingface.co/owner/Model-2/tree/main"])
def test_a_pasted_name_or_address_opens_the_repo(qtbot: QtBot, controller: HubController, pasted: str) -> None:
    controller.ask(SearchQuery(pasted))
    qtbot.waitUntil(lambda: controller.repo.repo is not None)
    qtbot.waitUntil(lambda: controller.search.state is SearchState.FOUND)
    assert [each.repo for each in controller.search.models] == ["owner/Model-2"]


def test_a_bug_of_ours_is_no_problem_of_the_world(qtbot: QtBot, controller: HubController, hub: FakeHub) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("ours")

    hub.search = broken  # type: ignore[method-assign]
    with qtbot.captureExceptions() as caught:
        controller.ask(SearchQuery("model"))
        qtbot.waitUntil(lambda: bool(caught))
    assert [kind for kind, _, _ in caught] == [KeyError]
