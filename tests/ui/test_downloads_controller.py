"""The queue behind the window: acts are done off the UI thread, changes come at most a few times a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.download_queue import Download
from forespeak.models.download_record import DownloadState
from forespeak.models.hub_errors import offline_error
from forespeak.ui.downloads_controller import DownloadsController
from ui.hub_doubles import FakeQueue, download_of, group


class Fixture:
    def __init__(self) -> None:
        self.queues: list[FakeQueue] = []
        self.threads: list[str] = []
        self.controller = DownloadsController(self._make, limit=5_000_000)

    def _make(self, listen: Callable[[Download], None]) -> FakeQueue:
        self.threads.append(threading.current_thread().name)
        self.queues.append(FakeQueue(listen))
        return self.queues[-1]

    def shows(self, state: DownloadState) -> bool:
        return self.controller.downloads[0].state is state

    @property
    def queue(self) -> FakeQueue:
        return self.queues[-1]


@pytest.fixture
def it(qtbot: QtBot) -> Iterator[Fixture]:
    made = Fixture()
    made.controller.start()
    qtbot.waitUntil(lambda: made.controller.started)
    yield made
    made.controller.close()
    made.controller.deleteLater()


def test_the_queue_is_made_off_the_ui_thread(it: Fixture) -> None:
    assert it.threads == ["downloads"]
    assert it.queue.limit == 5_000_000


def test_what_is_asked_before_the_queue_is_there_is_not_lost(qtbot: QtBot) -> None:
    made = Fixture()
    made.controller.start()
    made.controller.add(group())
    qtbot.waitUntil(lambda: len(made.controller.downloads) == 1)
    assert made.controller.running == 1
    made.controller.close()
    assert made.queue.closed


def test_a_flood_of_news_is_shown_a_few_times(qtbot: QtBot, it: Fixture) -> None:
    shown: list[int] = []
    it.controller.changed.connect(lambda: shown.append(it.controller.downloads[0].done_bytes))
    it.queue.put(download_of(group()))

    def flood() -> None:
        for done in range(1, 3001):
            it.queue.change("d1", done_bytes=done)

    thread = threading.Thread(target=flood)
    thread.start()
    qtbot.waitUntil(lambda: bool(shown) and shown[-1] == 3000)
    thread.join()
    assert len(shown) <= 6


def test_acts_reach_the_queue(qtbot: QtBot, it: Fixture) -> None:
    it.queue.put(download_of(group()))
    qtbot.waitUntil(lambda: len(it.controller.downloads) == 1)

    def pause(name: str) -> None:
        it.controller.pause(name)

    steps: list[tuple[Callable[[str], None], DownloadState]] = [
        (pause, DownloadState.PAUSED),
        (it.controller.resume, DownloadState.QUEUED),
        (pause, DownloadState.PAUSED),
        (it.controller.retry, DownloadState.QUEUED),
    ]
    for act, state in steps:
        act("d1")
        qtbot.waitUntil(partial(it.shows, state))
    it.controller.cancel("d1")
    qtbot.waitUntil(lambda: it.controller.downloads == ())
    it.controller.set_limit(None)
    qtbot.waitUntil(lambda: it.queue.limit is None)


def test_moving_counts_among_what_is_open(qtbot: QtBot, it: Fixture) -> None:
    for name, state in (
        ("a", DownloadState.RUNNING),
        ("done", DownloadState.DONE),
        ("b", DownloadState.QUEUED),
        ("c", DownloadState.QUEUED),
    ):
        it.queue.put(download_of(group(name), name, state))
    qtbot.waitUntil(lambda: len(it.controller.downloads) == 4)

    def order() -> str:
        return "".join(each.id for each in it.controller.downloads if each.id != "done")

    it.controller.move("c", up=True)
    qtbot.waitUntil(lambda: order() == "acb")
    it.controller.move("c", up=True)
    qtbot.waitUntil(lambda: order() == "cab")
    it.controller.move("c", up=True)
    it.controller.move("done", up=True)
    it.controller.move("c", up=False)
    qtbot.waitUntil(lambda: order() == "acb")


def test_finished_and_running_are_told(qtbot: QtBot, it: Fixture) -> None:
    counts: list[int] = []
    it.controller.runningChanged.connect(counts.append)
    it.queue.put(download_of(group()))
    qtbot.waitUntil(lambda: counts == [1])
    with qtbot.waitSignal(it.controller.finished) as finished:
        it.queue.change("d1", state=DownloadState.DONE)
    assert finished.args is not None
    assert finished.args[0].id == "d1"
    assert counts == [1, 0]
    it.controller.forget_finished()
    qtbot.waitUntil(lambda: it.controller.downloads == ())


def test_all_are_paused_and_go_on(qtbot: QtBot, it: Fixture) -> None:
    for name in "ab":
        it.queue.put(download_of(group(name), name))
    qtbot.waitUntil(lambda: len(it.controller.downloads) == 2)
    it.controller.pause_all()
    qtbot.waitUntil(lambda: {each.state for each in it.controller.downloads} == {DownloadState.PAUSED})
    it.controller.resume_all()
    qtbot.waitUntil(lambda: {each.state for each in it.controller.downloads} == {DownloadState.QUEUED})


def test_what_cannot_be_begun_is_said_so(qtbot: QtBot, it: Fixture) -> None:
    it.queue.error = UserFacingError("The disk is full.")
    with qtbot.waitSignal(it.controller.problemFound) as problem:
        it.controller.add(group())
    assert problem.args == [it.queue.error]


def test_a_group_finds_its_download(qtbot: QtBot, it: Fixture) -> None:
    it.controller.add(group("Q8_0"))
    qtbot.waitUntil(lambda: len(it.controller.downloads) == 1)
    found = it.controller.find(group("Q8_0"))
    assert found is not None
    assert found.id == "d1"
    assert it.controller.find(group("Q2_K")) is None


def test_another_models_folder_has_another_queue(qtbot: QtBot, it: Fixture) -> None:
    it.controller.reopen()
    qtbot.waitUntil(lambda: len(it.queues) == 2)
    assert it.queues[0].closed
    it.controller.add(group())
    qtbot.waitUntil(lambda: len(it.controller.downloads) == 1)
    assert it.queues[1].added


def test_offline_pauses_all_and_online_goes_on_with_those(qtbot: QtBot, it: Fixture) -> None:
    for name in "ab":
        it.queue.put(download_of(group(name), name))
    qtbot.waitUntil(lambda: len(it.controller.downloads) == 2)
    it.controller.pause("a")
    qtbot.waitUntil(lambda: it.queue.of("a").state is DownloadState.PAUSED)
    it.controller.follow_network(offline_error())
    qtbot.waitUntil(lambda: it.queue.of("b").state is DownloadState.PAUSED)
    error = it.queue.of("b").error
    assert error is not None
    assert "offline" in error.what
    qtbot.waitUntil(lambda: [each.state for each in it.controller.downloads] == [DownloadState.PAUSED] * 2)
    it.controller.follow_network(None)
    qtbot.waitUntil(lambda: it.queue.of("b").state is DownloadState.QUEUED)
    assert it.queue.of("a").state is DownloadState.PAUSED, "that was the user's own wish"


def test_suspended_it_lets_go_of_the_folder_until_it_starts_again(qtbot: QtBot, it: Fixture) -> None:
    closed: list[bool] = []
    it.controller.suspend(lambda: closed.append(it.queues[0].closed))
    qtbot.waitUntil(lambda: closed == [True])
    assert not it.controller.started
    it.controller.start()
    qtbot.waitUntil(lambda: it.controller.started)
    assert len(it.queues) == 2
