"""What the Hub, the downloads, the library and the memory know of a repo, put together; and what is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from forespeak.errors import UserFacingError
from forespeak.models.download_record import DownloadState
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.hub_results import SearchQuery
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.ui.file_groups import GroupRow
from forespeak.ui.hub_view import MachineWatch
from ui.hub_desk import Desk
from ui.hub_doubles import GB, MACHINE, FakeHub, download_of, group, groups, item_of

REPO = "someone/Small-7B-GGUF"
FOUND = groups(REPO)
MakeDesk = Callable[..., Desk]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[MakeDesk]:
    made: list[Desk] = []

    def desk(**more: object) -> Desk:
        made.append(Desk(tmp_path, **more))  # type: ignore[arg-type]
        desk = made[-1]
        qtbot.waitUntil(lambda: desk.ready)
        desk.parts.controller.open_repo(REPO)
        qtbot.waitUntil(lambda: bool(desk.discover.repo.groups.rows) and desk.view._measured is not None)
        return desk

    yield desk
    for each in made:
        each.close()


def row(desk: Desk, label: str) -> GroupRow:
    return next(each for each in desk.discover.repo.groups.rows if each.view.group.label == label)


def test_a_download_is_begun_and_followed(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    row(desk, "Q4_K_M").button.click()
    qtbot.waitUntil(lambda: row(desk, "Q4_K_M").note.text().startswith("Downloading"))
    assert desk.queue.added == [(FOUND[1], ())]
    desk.queue.change("d1", done_bytes=GB)
    qtbot.waitUntil(lambda: "1 GB of 4.7 GB" in row(desk, "Q4_K_M").note.text())
    with qtbot.waitSignal(desk.view.downloadsRequested):
        row(desk, "Q4_K_M").button.click()
    with qtbot.waitSignal(desk.parts.downloads.finished):
        desk.queue.change("d1", state=DownloadState.DONE)
    desk.items.append(item_of(FOUND[1]))
    desk.view.library_changed()
    assert row(desk, "Q4_K_M").here.words == "Here"
    assert desk.discover.list.repos._here == {REPO}


def test_what_is_here_is_used(qtbot: QtBot, make: MakeDesk) -> None:
    item = item_of(FOUND[2])
    desk = make(items=[item])
    assert row(desk, "Q6_K").here.words == "Here"
    with qtbot.waitSignal(desk.view.useRequested) as used:
        row(desk, "Q6_K").button.click()
    assert used.args == [item.path, False]


def test_the_same_file_elsewhere_is_compared_and_used(qtbot: QtBot, make: MakeDesk) -> None:
    item = item_of(FOUND[2], own=False, repo=None)
    desk = make(items=[item])
    assert row(desk, "Q6_K").button.text() == "Use it"
    with qtbot.waitSignal(desk.view.useRequested) as used:
        row(desk, "Q6_K").button.click()
        assert row(desk, "Q6_K").note.text() == "Comparing the two files…"
    assert used.args == [item.path, False]


def test_another_file_of_the_same_size_is_not_used(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(items=[item_of(FOUND[2], own=False, repo=None)])
    desk.same = False
    with qtbot.waitSignal(desk.view.problemFound) as problem:
        row(desk, "Q6_K").button.click()
    assert problem.args is not None
    assert problem.args[0].what == "The file here is another one."
    assert row(desk, "Q6_K").button.text() == "Download", "it is not offered again"


def test_a_download_beside_a_like_file_lets_the_queue_look(qtbot: QtBot, make: MakeDesk) -> None:
    item = item_of(FOUND[2], own=False, repo=None)
    desk = make(items=[item])
    row(desk, "Q6_K").other.click()
    qtbot.waitUntil(lambda: desk.queue.added == [(FOUND[2], item.files)])


def test_a_file_that_cannot_be_read_is_said_so(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make(items=[item_of(FOUND[2], own=False, repo=None)])

    def unreadable(*_: object) -> bool:
        raise PermissionError(13, "Permission denied")

    desk.view._compare = unreadable  # type: ignore[assignment]
    with qtbot.waitSignal(desk.view.problemFound) as problem:
        row(desk, "Q6_K").button.click()
    assert problem.args is not None
    assert "Permission denied" in problem.args[0].why
    assert row(desk, "Q6_K").button.text() == "Use it"


def test_what_cannot_be_begun_is_told(qtbot: QtBot, make: MakeDesk) -> None:
    desk = make()
    desk.queue.error = UserFacingError("The disk is full.")
    with qtbot.waitSignal(desk.view.problemFound) as problem:
        row(desk, "Q4_K_M").button.click()
    assert problem.args == [desk.queue.error]


def test_memory_decides_what_is_recommended(make: MakeDesk) -> None:
    desk = make(machine=Machine(8 * GB, 4 * GB))
    assert [each.fit.words for each in desk.discover.repo.groups.rows] == [
        "Tight", "Too large", "Too large", "Too large", "Too large"
    ]  # fmt: skip
    assert row(desk, "Q2_K").advice.words == "Recommended"


def test_the_memory_is_measured_now_and_then() -> None:
    measured: list[int] = []

    def measure(gpus: Sequence[Gpu]) -> Machine:
        measured.append(1)
        return replace(MACHINE, gpus=tuple(gpus))

    cards = [Gpu("A card", 48 * GB, 48 * GB)]
    watch = MachineWatch(measure, lambda: cards)
    assert watch.fits(GB)
    assert not watch.fits(40 * GB)
    assert len(measured) == 1
    assert watch.look()
    assert watch.fits(40 * GB)
    assert not watch.look(), "asked a moment ago"


def test_what_is_loaded_of_a_download() -> None:
    parts = download_of(group(shards=2))
    assert parts.model_path.name == "small-7b-q4_k_m-00001-of-00002.gguf"
    files = (HubFile("config.json", 10), HubFile("model.safetensors", 1000))
    folder = download_of(HubFileGroup("maker/Small-4bit", "c" * 40, "4-bit", ModelFormat.MLX, files))
    assert folder.model_path == Path("/models/maker/Small-4bit")


def test_a_dead_network_does_not_keep_the_window(qtbot: QtBot, tmp_path: Path) -> None:
    hub = FakeHub(wait=threading.Event())
    desk = Desk(tmp_path, hub)
    qtbot.waitUntil(lambda: desk.ready)
    desk.parts.controller.ask(SearchQuery("small"))
    desk.parts.controller.open_repo(REPO)
    qtbot.waitUntil(lambda: len(hub.asked) == 2)
    waited: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        join = threading.Thread.join

        def counted(thread: threading.Thread, timeout: float | None = None) -> None:
            assert timeout is not None
            waited.append(timeout)
            join(thread, timeout)

        patch.setattr(threading.Thread, "join", counted)
        desk.parts.close()
    assert sum(waited) < 1.0, "even if every thread hangs"
    desk.close()
