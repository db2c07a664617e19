"""The queue over real sockets: order, pausing, what survives, and that nothing is listed before it is whole."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import queueing_child
from forespeak.errors import UserFacingError
from forespeak.models.download_control import Tuning
from forespeak.models.download_queue import Download, DownloadQueue
from forespeak.models.download_record import FOLDER, DownloadState, RecordFiles
from forespeak.models.formats import ModelFormat
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_errors import HubError, HubProblem, offline_error
from forespeak.models.hub_files import HubFile, HubFileGroup, group_files
from forespeak.models.hub_settings import HubSettings
from loopback_hub import Fault, LoopbackHub, Repo, Then, content

SIZE = 1_200_000
QUICK = Tuning(silence=0.5, tries=3, first_wait=0.01, longest_wait=0.05, reserve=0)
THIRD = "Q8_0/big-Q8_0-00003-of-00003.gguf"
MLX = {
    "config.json": b"{}",
    "model-00001-of-00002.safetensors": content(SIZE, 20),
    "model-00002-of-00002.safetensors": content(SIZE // 2, 21),
    "tokenizer.json": b'{"a": 1}',
}


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as hub:
        for number in range(4):
            hub.add(Repo(f"org/m{number}", {f"m{number}-Q4_0.gguf": content(SIZE, number)}))
        shards = {f"Q8_0/big-Q8_0-0000{number}-of-00003.gguf": content(SIZE, 10 + number) for number in (1, 2, 3)}
        hub.add(Repo("org/shards", shards))
        hub.add(Repo("org/mlx", MLX, tags=("mlx",)))
        yield hub


def group_of(hub: LoopbackHub, name: str) -> HubFileGroup:
    repo = hub.repos[name]
    files = [HubFile(path, each.size, each.sha256 if each.lfs else None) for path, each in repo.files.items()]
    return group_files(name, repo.commit, files, mlx="mlx" in repo.tags)[0]


class Queue(DownloadQueue):
    """With what it told, and a way to wait for it."""

    def __init__(self, hub: LoopbackHub, folder: Path, *, keep: bool = True, tuning: Tuning = QUICK) -> None:
        self.told: list[Download] = []
        self.changed = threading.Condition()
        self.client = HubClient(HubSettings(hub.endpoint))
        super().__init__(folder, lambda: self.client, self._hear, keep=keep, tuning=tuning)

    def _hear(self, download: Download) -> None:
        with self.changed:
            self.told.append(download)
            self.changed.notify_all()

    def one(self, name: str) -> Download:
        return next(each for each in self.downloads() if each.id == name)

    def wait_for(self, ready: Callable[[], bool], seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        with self.changed:
            while not ready():
                assert time.monotonic() < until, [
                    (each.state, each.error, each.done_bytes) for each in self.downloads()
                ]
                self.changed.wait(0.01)

    def wait_state(self, name: str, *states: DownloadState) -> Download:
        self.wait_for(lambda: self.one(name).state in states)
        return self.one(name)

    def wait_bytes(self, name: str, count: int) -> None:
        self.wait_for(lambda: self.one(name).done_bytes >= count)

    def states(self) -> list[DownloadState]:
        return [each.state for each in self.downloads()]

    def end(self) -> None:
        self.close()
        self.client.close()


@pytest.fixture
def queue(hub: LoopbackHub, tmp_path: Path) -> Iterator[Queue]:
    queue = Queue(hub, tmp_path)
    yield queue
    queue.end()


def traces(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and FOLDER not in path.parts
    }  # fmt: skip


def models(folder: Path) -> set[str]:
    return {name for name in traces(folder) if name.endswith((".gguf", ".safetensors", ".json"))}


D = DownloadState


def test_a_download_from_beginning_to_end(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.rate = 4e6
    name = queue.add(group_of(hub, "org/m0"))
    done = queue.wait_state(name, D.DONE)
    assert done.paths == (tmp_path / "org" / "m0" / "m0-Q4_0.gguf",)
    assert done.paths[0].read_bytes() == content(SIZE, 0)
    assert (done.done_bytes, done.total_bytes, done.error) == (SIZE, SIZE, None)
    assert traces(tmp_path) == {"org/m0/m0-Q4_0.gguf"}
    queue.wait_for(lambda: queue.told[-1].state is D.DONE)
    seen = [each.state for each in queue.told]
    assert seen[0] in {D.QUEUED, D.RUNNING}
    assert {D.RUNNING, D.DONE} <= set(seen)
    assert [each.done_bytes for each in queue.told] == sorted(each.done_bytes for each in queue.told)
    known = queue.hashes.of(done.paths[0])
    assert known is not None
    assert (known.sha256, known.repo, known.path) == (
        hashlib.sha256(content(SIZE, 0)).hexdigest(),
        "org/m0",
        "m0-Q4_0.gguf",
    )
    queue.forget(name)
    assert queue.downloads() == ()


def test_two_at_a_time_in_an_order_that_can_be_changed(hub: LoopbackHub, queue: Queue) -> None:
    hub.rate = 1.5e6
    names = [queue.add(group_of(hub, f"org/m{number}")) for number in range(4)]
    queue.wait_for(lambda: queue.states()[:2] == [D.RUNNING, D.RUNNING])
    assert queue.states()[2:] == [D.QUEUED, D.QUEUED]
    queue.move(names[3], 0)
    assert [each.id for each in queue.downloads()] == [names[3], names[0], names[1], names[2]]
    for name in names:
        queue.wait_state(name, D.DONE)
    order = [each.id for each in queue.told if each.state is D.RUNNING]
    assert sorted(names, key=order.index)[2:] == [names[3], names[2]]
    running = [0]
    for told in queue.told:
        current = {each.id: each.state for each in queue.told[: queue.told.index(told) + 1]}
        running.append(sum(1 for state in current.values() if state.is_active))
    assert max(running) == 2


def test_speed_and_time_left(hub: LoopbackHub, queue: Queue) -> None:
    hub.rate = 0.6e6
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(name, 600_000)
    snapshot = queue.one(name)
    assert snapshot.bytes_per_second is not None
    assert snapshot.seconds_left is not None
    assert 0.2e6 < snapshot.bytes_per_second < 1.2e6
    assert snapshot.seconds_left == pytest.approx(
        (SIZE - snapshot.done_bytes) / snapshot.bytes_per_second, rel=0.01
    )  # fmt: skip
    hub.rate = None
    assert queue.wait_state(name, D.DONE).bytes_per_second is None


def test_pause_and_resume(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.rate = 2e6
    hub.cdn_faults.append(Fault(after=700_000, then=Then.STALL))
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(name, 700_000)
    began = time.monotonic()
    queue.pause(name)
    assert queue.one(name).state is D.PAUSED
    assert time.monotonic() - began < 5
    assert models(tmp_path) == set()
    queue.resume(name)
    queue.wait_state(name, D.DONE)
    assert hub.sent() == SIZE
    assert (tmp_path / "org/m0/m0-Q4_0.gguf").read_bytes() == content(SIZE, 0)


def test_pausing_makes_room_for_the_next(hub: LoopbackHub, queue: Queue) -> None:
    hub.rate = 1e6
    names = [queue.add(group_of(hub, f"org/m{number}")) for number in range(3)]
    queue.pause(names[0])
    queue.wait_state(names[2], D.RUNNING, D.DONE)
    assert queue.one(names[0]).state is D.PAUSED
    queue.pause(names[0])
    assert queue.one(names[0]).state is D.PAUSED


def test_cancelling_leaves_nothing(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.rate = 2e6
    hub.cdn_faults.append(Fault(after=700_000, then=Then.STALL))
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(name, 700_000)
    queue.cancel(name)
    assert queue.downloads() == ()
    queue.wait_for(lambda: queue.told[-1].state is D.CANCELLED)
    queue.wait_for(lambda: not list(tmp_path.glob("org")))
    queue.wait_for(lambda: not list((tmp_path / FOLDER).glob("*")))
    # What waits is cancelled too, and what is done stays.
    hub.rate = None
    done = queue.add(group_of(hub, "org/m1"))
    queue.wait_state(done, D.DONE)
    queue.cancel(done)
    assert traces(tmp_path) == {"org/m1/m1-Q4_0.gguf"}
    queue.cancel("nobody")


def test_cancelled_and_added_again_at_once(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.rate = 2e6
    group = group_of(hub, "org/m0")
    for _ in range(3):
        name = queue.add(group)
        queue.wait_bytes(name, 200_000)
        queue.cancel(name)
    hub.rate = None
    name = queue.add(group)
    queue.wait_state(name, D.DONE)
    assert (tmp_path / "org/m0/m0-Q4_0.gguf").read_bytes() == content(SIZE, 0)


def test_a_failure_can_be_tried_again(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.cdn_faults += [Fault(after=500_000)] + [Fault(status=500)] * 3
    name = queue.add(group_of(hub, "org/m0"))
    failed = queue.wait_state(name, D.FAILED)
    assert isinstance(failed.error, HubError)
    assert failed.error.problem is HubProblem.SERVER
    assert failed.done_bytes == 500_000
    assert models(tmp_path) == set()
    hub.cdn_faults.clear()
    queue.retry(name)
    assert queue.wait_state(name, D.DONE).error is None
    assert hub.sent() == SIZE


def test_a_failure_does_not_hold_up_the_others(hub: LoopbackHub, queue: Queue) -> None:
    hub.hub_faults += [Fault(status=403, error_code="GatedRepo", path="org/m0")]
    names = [queue.add(group_of(hub, f"org/m{number}")) for number in range(3)]
    for name in names[1:]:
        queue.wait_state(name, D.DONE)
    assert queue.wait_state(names[0], D.FAILED).error is not None


def test_a_failure_is_the_same_one_after_a_restart(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.hub_faults += [Fault(status=403, error_code="GatedRepo", path="org/m0")]
    name = queue.add(group_of(hub, "org/m0"))
    before = queue.wait_state(name, D.FAILED).error
    assert isinstance(before, HubError)
    queue.end()
    after = Queue(hub, tmp_path)
    try:
        error = after.one(name).error
        assert isinstance(error, HubError)
        assert (error.problem, error.page) == (before.problem, before.page)
        assert (error.what, error.why, error.remedy) == (before.what, before.why, before.remedy)
    finally:
        after.end()


def test_a_failure_that_an_older_version_wrote_is_read(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.hub_faults += [Fault(status=403, error_code="GatedRepo", path="org/m0")]
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_state(name, D.FAILED)
    queue.end()
    record = tmp_path / FOLDER / f"{name}.json"
    plain = json.loads(record.read_text("utf-8"))
    plain["error"] = ["It failed.", "Because.", "Try again."]
    record.write_text(json.dumps(plain), "utf-8")
    after = Queue(hub, tmp_path)
    try:
        error = after.one(name).error
        assert error is not None
        assert (error.what, error.why, error.remedy) == ("It failed.", "Because.", "Try again.")
    finally:
        after.end()


def test_offline_it_waits_and_does_not_fail(hub: LoopbackHub, queue: Queue) -> None:
    queue.client = HubClient(HubSettings(hub.endpoint, offline=True))
    name = queue.add(group_of(hub, "org/m0"))
    waiting = queue.wait_state(name, D.PAUSED)
    assert waiting.error is not None
    assert "offline" in waiting.error.what
    queue.client = HubClient(HubSettings(hub.endpoint))
    queue.resume(name)
    assert queue.wait_state(name, D.DONE).error is None


def test_a_pause_keeps_its_reason(hub: LoopbackHub, queue: Queue) -> None:
    hub.rate = 1e6
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(name, 100_000)
    queue.pause(name, offline_error())
    error = queue.wait_state(name, D.PAUSED).error
    assert isinstance(error, HubError)
    assert error.problem is HubProblem.OFFLINE
    queue.pause(name)
    assert queue.one(name).error is error, "the user changes nothing by pausing what is paused"


def test_why_nothing_comes_is_said(hub: LoopbackHub, queue: Queue) -> None:
    hub.cdn_faults.append(Fault(status=429, headers={"Retry-After": "1"}))
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_for(lambda: "asked too often" in queue.one(name).notice)
    assert queue.wait_state(name, D.DONE).notice == ""


def test_the_same_again_is_not_doubled(hub: LoopbackHub, queue: Queue) -> None:
    hub.rate = 2e6
    group = group_of(hub, "org/m0")
    name = queue.add(group)
    assert queue.add(group) == name
    queue.pause(name)
    assert queue.add(group) == name
    assert queue.wait_state(name, D.DONE)
    asked = len(hub.seen("hub", "HEAD"))
    again = queue.add(group)
    assert again != name
    queue.wait_state(again, D.DONE)
    assert len(hub.seen("hub", "HEAD")) == asked


def test_a_limit_for_all(hub: LoopbackHub, queue: Queue) -> None:
    queue.set_limit(1.2e6)
    began = time.monotonic()
    names = [queue.add(group_of(hub, f"org/m{number}")) for number in range(2)]
    for name in names:
        queue.wait_state(name, D.DONE)
    assert time.monotonic() - began >= 2 * SIZE / 1.2e6 - 0.3


def test_a_limit_can_be_lifted(hub: LoopbackHub, queue: Queue) -> None:
    queue.set_limit(1000.0)
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(name, 1)
    queue.set_limit(None)
    queue.wait_state(name, D.DONE)


# Models of several files


def test_parts_appear_together(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.rate = 3e6
    hub.cdn_faults.append(
        Fault(path=hub.repos["org/shards"].files["Q8_0/big-Q8_0-00003-of-00003.gguf"].sha256, stall=True)
    )
    group = group_of(hub, "org/shards")
    name = queue.add(group)
    queue.wait_bytes(name, 2 * SIZE)
    assert models(tmp_path) == set()
    done = queue.wait_state(name, D.DONE)
    assert done.total_bytes == 3 * SIZE
    assert [path.read_bytes() for path in done.paths] == [content(SIZE, 10 + number) for number in (1, 2, 3)]
    assert len(traces(tmp_path)) == 3


def test_an_mlx_folder(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.cdn_faults.append(Fault(status=500, path=hub.repos["org/mlx"].files["model-00002-of-00002.safetensors"].sha256))
    group = group_of(hub, "org/mlx")
    assert group.format is ModelFormat.MLX
    name = queue.add(group)
    queue.wait_state(name, D.DONE)
    assert {path.name: path.read_bytes() for path in (tmp_path / "org/mlx").iterdir()} == MLX
    git = queue.hashes.of(tmp_path / "org/mlx/config.json")
    assert git is not None
    assert git.git == hub.repos["org/mlx"].files["config.json"].oid


def test_what_makes_it_a_model_comes_last(
    hub: LoopbackHub, tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forespeak.models.downloads import FileDownload

    order: list[str] = []
    finish = FileDownload.finish

    def noted(self: FileDownload) -> None:
        order.append(self.file.name)
        finish(self)

    monkeypatch.setattr(FileDownload, "finish", noted)
    queue.wait_state(queue.add(group_of(hub, "org/mlx")), D.DONE)
    assert order[-1] == "config.json"
    order.clear()
    queue.wait_state(queue.add(group_of(hub, "org/shards")), D.DONE)
    assert order[-1] == "big-Q8_0-00001-of-00003.gguf"


def test_a_cancelled_set_leaves_no_part_behind(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    hub.rate = 3e6
    hub.cdn_faults.append(
        Fault(path=hub.repos["org/shards"].files["Q8_0/big-Q8_0-00003-of-00003.gguf"].sha256, stall=True)
    )
    name = queue.add(group_of(hub, "org/shards"))
    queue.wait_bytes(name, 2 * SIZE)
    queue.cancel(name)
    queue.wait_for(lambda: not list(tmp_path.glob("org")))


def test_a_set_with_a_part_missing_on_the_hub(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    del hub.repos["org/shards"].files["Q8_0/big-Q8_0-00002-of-00003.gguf"]
    with pytest.raises(UserFacingError, match="art 2 of 3 is missing"):
        queue.add(group_of(hub, "org/shards"))
    assert queue.downloads() == ()
    assert hub.requests == []


def test_a_part_that_disappears_from_the_hub(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    group = group_of(hub, "org/shards")
    del hub.repos["org/shards"].files["Q8_0/big-Q8_0-00002-of-00003.gguf"]
    failed = queue.wait_state(queue.add(group), D.FAILED)
    assert isinstance(failed.error, HubError)
    assert failed.error.problem is HubProblem.NO_SUCH_FILE
    assert models(tmp_path) == set()


@pytest.mark.parametrize("path", ["../evil.gguf", "/evil.gguf", "C:evil.gguf", "a/../../evil.gguf"])
def test_a_hostile_name(hub: LoopbackHub, tmp_path: Path, queue: Queue, path: str) -> None:
    group = HubFileGroup("org/m0", "main", None, ModelFormat.GGUF, (HubFile(path, 10, "0" * 64),))
    with pytest.raises(UserFacingError, match="under its name"):
        queue.add(group)
    assert queue.downloads() == ()
    assert hub.requests == []


@pytest.mark.parametrize(
    ("path", "place"), [("CON.gguf", "_CON.gguf"), ("模型 é.gguf", "模型 é.gguf"), ("ab:c.gguf", "ab_c.gguf")]
)
def test_an_awkward_name(hub: LoopbackHub, tmp_path: Path, queue: Queue, path: str, place: str) -> None:
    hub.add(Repo("org/awkward", {path: content(1000)}))
    queue.wait_state(queue.add(group_of(hub, "org/awkward")), D.DONE)
    assert traces(tmp_path) == {f"org/awkward/{place}"}


def test_what_this_machine_has_is_not_fetched(hub: LoopbackHub, tmp_path: Path, queue: Queue) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    files = {path: elsewhere / f"blob{number}" for number, path in enumerate(MLX)}
    for path, place in files.items():
        place.write_bytes(MLX[path])
    name = queue.add(group_of(hub, "org/mlx"), files.values())
    queue.wait_state(name, D.DONE)
    assert hub.sent() == sum(len(data) for path, data in MLX.items() if not path.endswith(".safetensors"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "org/mlx").iterdir()} == MLX


def test_a_models_folder_that_cannot_be_written(hub: LoopbackHub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    queue = Queue(hub, tmp_path / "file")
    with pytest.raises(UserFacingError, match="cannot be written"):
        queue.add(group_of(hub, "org/m0"))
    assert queue.downloads() == ()
    queue.end()


def test_two_downloads_do_not_both_count_on_the_same_space(
    hub: LoopbackHub, tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=int(1.5 * SIZE)))
    hub.rate = 1e6
    first = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(first, 1)
    second = queue.add(group_of(hub, "org/m1"))
    failed = queue.wait_state(second, D.FAILED)
    assert failed.error is not None
    assert "disk space" in failed.error.what
    queue.wait_state(first, D.DONE)


# What survives


def test_a_list_survives_its_queue(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 1.5e6
    first = Queue(hub, tmp_path)
    hub.hub_faults.append(Fault(status=403, error_code="GatedRepo", path="org/m3"))
    names = [first.add(group_of(hub, f"org/m{number}")) for number in (3, 0, 1, 2)]
    first.wait_state(names[0], D.FAILED)
    first.pause(names[2])
    first.wait_bytes(names[1], 300_000)
    first.move(names[3], 0)
    first.end()
    sent = hub.sent()
    hub.rate = None
    second = Queue(hub, tmp_path)
    assert [each.id for each in second.downloads()] == [names[3], *names[:3]]
    failed = second.one(names[0])
    assert failed.state is D.FAILED
    assert failed.error is not None
    assert "licence" in failed.error.what
    paused = second.one(names[2])
    assert paused.state is D.PAUSED
    second.wait_state(names[1], D.DONE)
    second.wait_state(names[3], D.DONE)
    assert second.one(names[2]).state is D.PAUSED
    for name in (names[0], names[2]):
        second.resume(name)
        second.wait_state(name, D.DONE)
    assert sent < hub.sent() <= 4 * SIZE + (4 << 20)
    second.end()
    third = Queue(hub, tmp_path)
    assert third.downloads() == ()
    third.end()
    assert [path.suffix for path in (tmp_path / FOLDER).iterdir()] == [".jsonl"]


def start_child(hub: LoopbackHub, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, queueing_child.__file__, hub.endpoint, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def tell(child: subprocess.Popen[str], line: str) -> str:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{line}\n")
    child.stdin.flush()
    return child.stdout.readline().strip()


def test_a_list_survives_kill(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 1.5e6
    child = start_child(hub, tmp_path)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "\n"
        for line in ("add org/shards Q8_0", "add org/m0 Q4_0", "add org/m1 Q4_0", "pause 2"):
            assert tell(child, line) == "ok"
        until = time.monotonic() + 20
        part = tmp_path / "org/shards/Q8_0/big-Q8_0-00002-of-00003.gguf.part"
        while not (part.exists() and part.stat().st_size > 300_000) and time.monotonic() < until:
            time.sleep(0.005)
        # Ours takes nothing of a list that somebody has.
        ours = Queue(hub, tmp_path)
        assert ours.downloads() == ()
        ours.end()
    finally:
        child.kill()
        child.communicate()
    assert not [name for name in models(tmp_path) if "shards" in name]
    time.sleep(0.1)
    hub.rate = None
    fetched = hub.sent("/blobs/")
    queue = Queue(hub, tmp_path)
    # The first of the small ones may have come to its end before.
    shards, *_, paused = queue.downloads()
    assert paused.state is D.PAUSED
    assert shards.done_bytes >= SIZE + 300_000
    queue.wait_for(lambda: queue.states()[:-1] == [D.DONE] * (len(queue.states()) - 1))
    queue.cancel(paused.id)
    queue.end()
    assert fetched > SIZE + 300_000
    # Two were running when it was killed.
    assert hub.sent("/blobs/") - 4 * SIZE <= 2 << 20
    assert len(models(tmp_path)) == 4


def test_a_cancelling_survives_kill(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.rate = 1.5e6
    queue = Queue(hub, tmp_path)
    name = queue.add(group_of(hub, "org/m0"))
    queue.wait_bytes(name, 300_000)
    with monkeypatch.context() as patch:
        patch.setattr(queue, "_discard", lambda entry: None)
        queue.cancel(name)
        queue.end()
    assert traces(tmp_path)
    again = Queue(hub, tmp_path)
    assert again.downloads() == ()
    again.wait_for(lambda: not list(tmp_path.glob("org")))
    again.end()


def test_an_ephemeral_queue_keeps_no_list(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 1.5e6
    queue = Queue(hub, tmp_path, keep=False)
    queue.wait_bytes(queue.add(group_of(hub, "org/m0")), 300_000)
    queue.end()
    assert not list(tmp_path.rglob("*.json"))
    hub.rate = None
    again = Queue(hub, tmp_path, keep=False)
    assert again.downloads() == ()
    again.wait_state(again.add(group_of(hub, "org/m0")), D.DONE)
    again.end()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"place": 0}', '{"place":0,"state":"no","error":null}'])
def test_a_damaged_record_is_passed_over(hub: LoopbackHub, tmp_path: Path, text: str) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "x.json").write_text(text)
    queue = Queue(hub, tmp_path)
    assert queue.downloads() == ()
    queue.end()


def test_a_record_that_somebody_forged_leads_nowhere(hub: LoopbackHub, tmp_path: Path) -> None:
    first = Queue(hub, tmp_path / "models")
    hub.rate = 1e6
    first.add(group_of(hub, "org/m0"))
    first.end()
    (record,) = (tmp_path / "models" / FOLDER).glob("*.json")
    record.write_text(record.read_text().replace("m0-Q4_0.gguf", "../../../evil.gguf"))
    second = Queue(hub, tmp_path / "models")
    assert second.downloads() == ()
    second.end()
    assert not list(tmp_path.rglob("evil*"))


def test_a_slow_disk_does_not_hold_up_who_looks(
    hub: LoopbackHub, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window reads the list on its own thread, while a record waits for the disk on another."""
    hub.rate = 1e6
    name = queue.add(group_of(hub, "org/m0"))
    waiting, free = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        waiting.set()
        free.wait(30)

    monkeypatch.setattr(RecordFiles, "write", slow)
    pausing = threading.Thread(target=queue.pause, args=(name,))
    pausing.start()
    assert waiting.wait(30)
    looked: list[tuple[Download, ...]] = []
    looking = threading.Thread(target=lambda: looked.append(queue.downloads()), daemon=True)
    looking.start()
    looking.join(20)
    free.set()
    pausing.join()
    assert [each.state for each in looked[0]] == [D.PAUSED]


def test_closing_is_quick_and_final(hub: LoopbackHub, queue: Queue) -> None:
    hub.cdn_faults += [Fault(after=1000, then=Then.STALL)] * 2
    names = [queue.add(group_of(hub, f"org/m{number}")) for number in range(3)]
    queue.wait_bytes(names[0], 1000)
    began = time.monotonic()
    queue.close()
    assert time.monotonic() - began < 5
    queue.resume(names[2])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("download")]
