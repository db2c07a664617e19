"""One file over real sockets: whatever goes wrong, it is right by its hash or there is a clear error."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import downloading_child
from forespeak.errors import UserFacingError
from forespeak.models import hub_client
from forespeak.models.download_control import Control, Stopped, Tuning
from forespeak.models.downloads import FileDownload
from forespeak.models.file_hashes import FileHashes
from forespeak.models.hub_client import HubClient
from forespeak.models.hub_errors import HubError, HubProblem
from forespeak.models.hub_files import HubFile
from forespeak.models.hub_settings import HubSettings
from forespeak.models.hub_token import Token, TokenSource
from forespeak.models.part_file import Verification
from loopback_hub import Fault, LoopbackHub, Repo, Then, content

MODEL = content(3_000_000)
SHA256 = hashlib.sha256(MODEL).hexdigest()
SMALL = b'{"model_type": "llama"}\n'
REPO, NAME = "org/one-GGUF", "model-Q4_0.gguf"
QUICK = Tuning(silence=0.3, tries=4, first_wait=0.01, longest_wait=0.05, reserve=0)


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as hub:
        hub.add(Repo(REPO, {NAME: MODEL, "config.json": SMALL}))
        yield hub
        for client in Fetching.clients:
            client.close()
        Fetching.clients.clear()


class Fetching:
    """One download and what it told."""

    clients: ClassVar[list[HubClient]] = []

    def __init__(
        self,
        hub: LoopbackHub,
        folder: Path,
        file: HubFile | None = None,
        *,
        token: str | None = None,
        repo: str = REPO,
        tuning: Tuning = QUICK,
        revision: str = "main",
    ) -> None:
        self.file = file or HubFile(NAME, len(MODEL), SHA256)
        self.notices: list[str] = []
        self.progress: list[int] = []
        self.control = Control(notice=self.notices.append, progress=self.progress.append)
        found = Token(token, TokenSource.SESSION) if token else None
        self.client = HubClient(HubSettings(hub.endpoint), lambda: found)
        self.clients.append(self.client)
        self.target = folder / self.file.path
        self.download = FileDownload(
            repo, revision, self.file, self.target, lambda: self.client, self.control, tuning
        )  # fmt: skip

    def run(self) -> Verification:
        """As the queue does it. Raises what `FileDownload.run` raises."""
        try:
            verification = self.download.run()
            self.download.finish()
        finally:
            self.download.close()
        return verification

    def fails(self) -> UserFacingError:
        with pytest.raises(UserFacingError) as caught:
            self.run()
        assert caught.value.what
        assert caught.value.remedy
        return caught.value


def traces(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def is_right(folder: Path) -> bool:
    return (folder / NAME).read_bytes() == MODEL and traces(folder) == {NAME}


def stop_when(fetching: Fetching, ready: Callable[[], bool]) -> None:
    """Run it, and stop it from another thread once something is so."""

    def watch() -> None:
        while not ready():
            time.sleep(0.002)
        fetching.control.stop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(Stopped):
        fetching.run()
    watcher.join()


def part_of(hub: LoopbackHub, folder: Path, count: int) -> None:
    """Leave the first `count` bytes in a part, as a stopped download does."""
    fetching = Fetching(hub, folder)
    hub.cdn_faults.append(Fault(after=count, then=Then.STALL))
    stop_when(fetching, lambda: bool(fetching.progress) and fetching.progress[-1] >= count)
    hub.requests.clear()


# What goes well


def test_a_large_file(hub: LoopbackHub, tmp_path: Path) -> None:
    fetching = Fetching(hub, tmp_path)
    assert fetching.run() is Verification.SHA256
    assert is_right(tmp_path)
    assert fetching.progress[-1] == len(MODEL)
    assert fetching.progress == sorted(fetching.progress)
    assert hub.sent() == len(MODEL)


def test_a_small_file_is_checked_against_git(hub: LoopbackHub, tmp_path: Path) -> None:
    fetching = Fetching(hub, tmp_path, HubFile("config.json", len(SMALL)))
    assert fetching.run() is Verification.GIT
    assert fetching.download.git == hub.repos[REPO].files["config.json"].oid
    assert fetching.target.read_bytes() == SMALL


def test_an_empty_file(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.add(Repo("org/empty", {"empty.txt": b""}))
    fetching = Fetching(hub, tmp_path, HubFile("empty.txt", 0), repo="org/empty")
    download = fetching.download
    assert download.run() is Verification.GIT
    download.finish()
    download.close()
    assert fetching.target.read_bytes() == b""


def test_without_any_hash_the_size_is_checked_and_said(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.hub_faults.append(Fault(status=200, headers={"ETag": '"weak"'}))
    fetching = Fetching(hub, tmp_path, HubFile("config.json", 29))
    # The answer to HEAD is the fault's: 29 bytes of JSON, and so is the file.
    hub.hub_faults.append(Fault(status=200))
    assert fetching.run() is Verification.SIZE


def test_what_is_there_already_is_not_fetched(hub: LoopbackHub, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(MODEL)
    assert Fetching(hub, tmp_path).run() is Verification.SHA256
    assert hub.requests == []
    (tmp_path / "config.json").write_bytes(SMALL)
    assert Fetching(hub, tmp_path, HubFile("config.json", len(SMALL))).run() is Verification.GIT
    assert hub.sent() == 0


def test_another_file_of_that_name_is_replaced_only_at_the_end(hub: LoopbackHub, tmp_path: Path) -> None:
    old = content(len(MODEL), seed=1)
    (tmp_path / NAME).write_bytes(old)
    part_of(hub, tmp_path, 1_000_000)
    assert (tmp_path / NAME).read_bytes() == old
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)


@pytest.mark.parametrize("same_disk", [True, False])
def test_an_equal_file_of_this_machine_is_taken(
    hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_disk: bool
) -> None:
    other = tmp_path / "other" / "elsewhere.gguf"
    other.parent.mkdir()
    other.write_bytes(MODEL)
    if not same_disk:
        monkeypatch.setattr(
            Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(OSError(18, "Invalid cross-device link"))
        )
    fetching = Fetching(hub, tmp_path / "models")
    hashes = FileHashes(tmp_path / "models")
    assert fetching.download.run([tmp_path / "none", other], hashes) is Verification.SHA256
    assert not fetching.target.exists()
    fetching.download.finish()
    fetching.download.close()
    assert hub.requests == []
    assert fetching.target.read_bytes() == MODEL
    assert fetching.target.samefile(other) is same_disk
    assert traces(fetching.target.parent) - {"hashes.jsonl"} == {NAME}


def test_a_file_that_only_looks_equal_is_not_taken(hub: LoopbackHub, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere.gguf"
    other.write_bytes(content(len(MODEL), seed=1))
    fetching = Fetching(hub, tmp_path / "models")
    fetching.download.run([other], FileHashes(tmp_path / "models"))
    fetching.download.finish()
    fetching.download.close()
    assert fetching.target.read_bytes() == MODEL


# Interruptions


@pytest.mark.parametrize("then", list(Then))
def test_an_interruption_costs_nothing_twice(hub: LoopbackHub, tmp_path: Path, then: Then) -> None:
    """FIN, RST and a stall: the next request begins where the last byte was taken."""
    # As from a network, not faster than it is read: a reset throws away what waits in the system's buffers.
    hub.rate = 20e6
    hub.cdn_faults += [Fault(after=1_000_000, then=then), Fault(after=700_000, then=then)]
    fetching = Fetching(hub, tmp_path)
    fetching.run()
    assert is_right(tmp_path)
    assert hub.sent() - len(MODEL) <= (1 << 20 if then is Then.RST else 0)
    # A fresh address each time.
    assert len(hub.seen("hub", "HEAD")) == 3
    assert len({request.path for request in hub.seen("cdn")}) == 3
    assert fetching.progress == sorted(fetching.progress)
    assert any("Trying again" in notice for notice in fetching.notices)


def test_a_download_that_gets_nowhere_ends(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cdn_faults += [Fault(after=1_000_000)] + [Fault(after=0)] * 20
    error = Fetching(hub, tmp_path).fails()
    assert isinstance(error, HubError)
    assert error.problem is HubProblem.CONNECTION_LOST
    assert len(hub.seen("cdn")) == 1 + QUICK.tries - 1
    assert not (tmp_path / NAME).exists()
    hub.cdn_faults.clear()
    hub.requests.clear()
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert hub.sent() == len(MODEL) - 1_000_000


def test_a_silent_hub(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "SILENCE_SECONDS", 0.2)
    hub.hub_faults += [Fault(stall=True)]
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    hub.hub_faults += [Fault(stall=True)] * 9
    (tmp_path / NAME).unlink()
    error = Fetching(hub, tmp_path).fails()
    assert isinstance(error, HubError)
    assert error.problem is HubProblem.TIMEOUT


def test_a_stop_cuts_a_read_that_waits(hub: LoopbackHub, tmp_path: Path) -> None:
    patient = Tuning(silence=60.0, reserve=0)
    fetching = Fetching(hub, tmp_path, tuning=patient)
    hub.cdn_faults.append(Fault(after=1_000_000, then=Then.STALL))
    began = time.monotonic()
    stop_when(fetching, lambda: bool(fetching.progress) and fetching.progress[-1] >= 1_000_000)
    assert time.monotonic() - began < 30
    hub.requests.clear()
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert hub.sent() == len(MODEL) - 1_000_000


def start_child(hub: LoopbackHub, folder: Path, size: int = len(MODEL), sha256: str = SHA256) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, downloading_child.__file__, hub.endpoint, REPO, str(size), sha256, NAME, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@contextlib.contextmanager
def child(hub: LoopbackHub, folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = start_child(hub, folder)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_killed_process_costs_at_most_a_mebibyte(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 3e6
    part = tmp_path / f"{NAME}.part"
    kills = 0
    for wanted in (800_000, 1_900_000):
        with child(hub, tmp_path):
            until = time.monotonic() + 20
            while not (part.exists() and part.stat().st_size >= wanted) and time.monotonic() < until:
                time.sleep(0.002)
            kills += 1
    assert part.stat().st_size >= 1_900_000
    assert not (tmp_path / NAME).exists()
    # The dead process's last connection may still be counting.
    time.sleep(0.1)
    hub.rate = None
    fetched = hub.sent()
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert hub.sent() - len(MODEL) <= kills << 20, (fetched, part)


def test_two_processes_do_not_share_a_file(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 4e6
    with child(hub, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "running\n"
        while not hub.seen("cdn") and not (tmp_path / f"{NAME}.part").exists():
            time.sleep(0.002)
        ours = Fetching(hub, tmp_path)
        ours.run()
        assert other.wait(20) == 0
    assert any(f"Process {other.pid} is downloading" in notice for notice in ours.notices)
    assert is_right(tmp_path)
    assert hub.sent() == len(MODEL)


def test_a_lock_of_a_dead_process_does_not_hold(hub: LoopbackHub, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part.lock").write_text("1\n")
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)


# What is there of it


def test_a_damaged_part_is_trusted_as_far_as_it_is_right(hub: LoopbackHub, tmp_path: Path) -> None:
    """A power cut: the file has its length, and zeros where the disk did not get to."""
    part_of(hub, tmp_path, 2_000_000)
    part = tmp_path / f"{NAME}.part"
    data = bytearray(part.read_bytes())
    data[1_500_000:] = bytes(len(data) - 1_500_000)
    part.write_bytes(data)
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert len(MODEL) - 1_500_000 <= hub.sent() <= len(MODEL) - 1_500_000 + (1 << 20)


@pytest.mark.parametrize("state", [b"", b"nonsense", b"{}\n", b'{"repo": 1}\n', b"\xff\xff\n", b"[]\n1 2\n"])
def test_a_part_without_a_note_is_not_trusted(hub: LoopbackHub, tmp_path: Path, state: bytes) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(content(1_000_000, seed=5))
    (tmp_path / f"{NAME}.part.state").write_bytes(state)
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)


@pytest.mark.parametrize("torn", [b"2500000 0123456789abcdef\n", b"25000", b"verified x\n", b"\xc3\n", b"-1 00\n"])
def test_a_note_that_says_too_much_is_not_believed(hub: LoopbackHub, tmp_path: Path, torn: bytes) -> None:
    part_of(hub, tmp_path, 1_000_000)
    with (tmp_path / f"{NAME}.part.state").open("ab") as state:
        state.write(torn)
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)


def test_a_whole_part_is_not_fetched_again(hub: LoopbackHub, tmp_path: Path) -> None:
    fetching = Fetching(hub, tmp_path)
    fetching.download.run()
    fetching.download.close()
    assert not (tmp_path / NAME).exists()
    hub.requests.clear()
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert hub.sent() == 0


def test_a_verified_part_that_was_changed_is_noticed(hub: LoopbackHub, tmp_path: Path) -> None:
    fetching = Fetching(hub, tmp_path)
    fetching.download.run()
    fetching.download.close()
    with (tmp_path / f"{NAME}.part").open("r+b") as part:
        part.write(b"XXXX")
    os.utime(tmp_path / f"{NAME}.part", ns=(1, 1))
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)


# Servers


def test_a_server_without_ranges(hub: LoopbackHub, tmp_path: Path) -> None:
    """It sends everything again; what is there stays there."""
    part_of(hub, tmp_path, 2_000_000)
    hub.cdn_faults += [Fault(ignore_range=True, after=1_000_000), Fault(ignore_range=True)]
    fetching = Fetching(hub, tmp_path)
    fetching.run()
    assert is_right(tmp_path)
    assert min(fetching.progress) == 2_000_000


def test_a_server_that_sends_another_range(hub: LoopbackHub, tmp_path: Path) -> None:
    part_of(hub, tmp_path, 2_000_000)
    hub.cdn_faults.append(Fault(wrong_range=True))
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)


def test_416_starts_anew(hub: LoopbackHub, tmp_path: Path) -> None:
    part_of(hub, tmp_path, 2_000_000)
    hub.cdn_faults.append(Fault(status=416))
    fetching = Fetching(hub, tmp_path)
    fetching.run()
    assert is_right(tmp_path)
    assert 0 in fetching.progress
    assert "range" not in hub.seen("cdn")[-1].headers


def test_416_for_ever_ends(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cdn_faults += [Fault(status=416)] * 20
    Fetching(hub, tmp_path).fails()
    assert len(hub.cdn_faults) > 10


@pytest.mark.parametrize("server", ["hub", "cdn"])
@pytest.mark.parametrize(
    "asked", [{"Retry-After": "1"}, {"RateLimit": '"api";r=0;t=1'}], ids=["retry-after", "ratelimit"]
)
def test_429_waits_as_long_as_the_server_says(
    hub: LoopbackHub, tmp_path: Path, server: str, asked: dict[str, str]
) -> None:
    (hub.hub_faults if server == "hub" else hub.cdn_faults).append(Fault(status=429, headers=asked))
    fetching = Fetching(hub, tmp_path)
    began = time.monotonic()
    fetching.run()
    assert time.monotonic() - began >= 1.0
    assert is_right(tmp_path)
    assert any("asked too often" in notice for notice in fetching.notices)


@pytest.mark.parametrize(
    ("server", "status"), [("hub", 500), ("hub", 503), ("cdn", 408), ("cdn", 500), ("cdn", 502), ("cdn", 503)]
)
def test_a_server_in_trouble(hub: LoopbackHub, tmp_path: Path, server: str, status: int) -> None:
    faults = hub.hub_faults if server == "hub" else hub.cdn_faults
    faults += [Fault(status=status)] * 2
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    (tmp_path / NAME).unlink()
    faults += [Fault(status=status)] * 9
    error = Fetching(hub, tmp_path).fails()
    assert isinstance(error, HubError)
    assert error.problem.passes
    assert len(faults) == 9 - QUICK.tries


def test_an_expired_address_is_asked_for_anew(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cdn_faults += [Fault(after=1_000_000, then=Then.STALL), Fault(status=403)]
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert hub.sent() == len(MODEL)


def test_an_address_that_expires_between_question_and_answer(
    hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locate, located = HubClient.locate, []

    def late(client: HubClient, repo: str, revision: str, path: str) -> hub_client.Location:
        located.append(locate(client, repo, revision, path))
        if len(located) == 1:
            hub.expire_locations()
        return located[-1]

    monkeypatch.setattr(HubClient, "locate", late)
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert [request.status for request in hub.seen("cdn")] == [403, 200]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_by_the_server_of_the_files(hub: LoopbackHub, tmp_path: Path, status: int) -> None:
    hub.cdn_faults += [Fault(status=status)] * 9
    error = Fetching(hub, tmp_path).fails()
    assert str(status) in error.why
    assert len(hub.cdn_faults) == 6


# Wrong bytes


def test_corrupted_bytes_are_fetched_again_once(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cdn_faults.append(Fault(corrupt=(10, 2_000_000)))
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    assert hub.sent() == 2 * len(MODEL)


def test_bytes_corrupted_for_ever_are_an_error(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.cdn_faults += [Fault(corrupt=(10,))] * 9
    error = Fetching(hub, tmp_path).fails()
    assert "damaged" in error.what
    assert "SHA-256" in error.why
    assert not (tmp_path / NAME).exists()
    assert len(hub.cdn_faults) == 7


def test_a_corrupted_small_file(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.hub_faults += [Fault(path="resolve-cache", corrupt=())] * 1 + [Fault(path="resolve-cache", corrupt=(3,))] * 1
    assert Fetching(hub, tmp_path, HubFile("config.json", len(SMALL))).run() is Verification.GIT
    assert (tmp_path / "config.json").read_bytes() == SMALL
    assert hub.sent() == 2 * len(SMALL)


@pytest.mark.parametrize("body", [MODEL[:-1000], MODEL + b"more"], ids=["short", "long"])
def test_a_body_of_another_size(hub: LoopbackHub, tmp_path: Path, body: bytes) -> None:
    hub.cdn_faults += [Fault(body=body)]
    Fetching(hub, tmp_path).run()
    assert is_right(tmp_path)
    (tmp_path / NAME).unlink()
    hub.cdn_faults += [Fault(body=body)] * 9
    error = Fetching(hub, tmp_path).fails()
    assert f"{len(MODEL):,}" in error.why or "3 MB" in error.why
    assert not (tmp_path / NAME).exists()


def test_a_wrong_size_is_noticed_before_anything_is_fetched(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.repos[REPO].files[NAME].linked_size = len(MODEL) + 1
    error = Fetching(hub, tmp_path).fails()
    assert f"{len(MODEL) + 1:,} bytes" in error.why
    assert hub.seen("cdn") == []


def test_a_changed_etag_starts_anew(hub: LoopbackHub, tmp_path: Path) -> None:
    """Of a file whose hash nobody had listed: what is there belongs to another file."""
    unlisted = HubFile(NAME, len(MODEL))
    hub.cdn_faults.append(Fault(after=1_000_000, then=Then.STALL))
    first = Fetching(hub, tmp_path, unlisted)
    stop_when(first, lambda: bool(first.progress) and first.progress[-1] >= 1_000_000)
    hub.requests.clear()
    new = content(len(MODEL), seed=9)
    hub.repos[REPO].replace(NAME, new)
    second = Fetching(hub, tmp_path, unlisted)
    assert second.run() is Verification.SHA256
    assert (tmp_path / NAME).read_bytes() == new
    assert second.download.sha256 == hashlib.sha256(new).hexdigest()
    assert hub.sent() == len(new)


def test_an_etag_that_changes_in_the_middle(hub: LoopbackHub, tmp_path: Path) -> None:
    new = content(len(MODEL), seed=9)
    hub.cdn_faults.append(Fault(after=1_000_000, then=Then.STALL))
    fetching = Fetching(hub, tmp_path, HubFile(NAME, len(MODEL)))

    def change() -> None:
        hub.released.wait(0.15)
        hub.repos[REPO].replace(NAME, new)

    changed = threading.Thread(target=change, daemon=True)
    changed.start()
    fetching.run()
    changed.join()
    assert (tmp_path / NAME).read_bytes() == new
    assert traces(tmp_path) == {NAME}


def test_a_file_that_is_no_longer_the_listed_one_is_not_fetched(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.repos[REPO].replace(NAME, content(len(MODEL), seed=9))
    error = Fetching(hub, tmp_path).fails()
    assert "another file" in error.what
    assert hub.seen("cdn") == []
    assert traces(tmp_path) == set()


# Who may


def test_the_token_stays_with_the_hub(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.add(Repo("org/gated", {NAME: MODEL, "config.json": SMALL}, gated="manual", needs="hf_right"))
    for file in (None, HubFile("config.json", len(SMALL))):
        Fetching(hub, tmp_path, file, repo="org/gated", token="hf_right").run()
    assert {request.token for request in hub.seen("hub")} == {"Bearer hf_right"}
    assert {request.token for request in hub.seen("cdn")} == {None}


def test_the_token_does_not_follow_a_redirect(hub: LoopbackHub, tmp_path: Path) -> None:
    """Neither from where the small files lie nor from the question for a large one."""
    with LoopbackHub() as stranger:
        stranger.add(Repo(REPO, {"config.json": SMALL}))
        elsewhere = f"{stranger.endpoint}/{REPO}/resolve/main/config.json"
        hub.hub_faults += [Fault(path="resolve-cache"), Fault(path="resolve-cache", location=elsewhere)]
        Fetching(hub, tmp_path, HubFile("config.json", len(SMALL)), token="hf_secret").run()
        hub.hub_faults += [Fault(location=f"{stranger.endpoint}/{REPO}/resolve/main/{NAME}")] * 9
        Fetching(hub, tmp_path, token="hf_secret").fails()
        assert stranger.requests
        assert {request.token for request in stranger.requests} == {None}


@pytest.mark.parametrize(
    ("repo", "file", "token", "problem"),
    [
        ("org/gated", NAME, None, HubProblem.GATED),
        ("org/gated", NAME, "hf_other", HubProblem.GATED),
        ("org/private", NAME, None, HubProblem.PRIVATE_OR_MISSING),
        ("org/none", NAME, "hf_other", HubProblem.NO_SUCH_REPO),
        (REPO, NAME, "hf_wrong", HubProblem.TOKEN_WRONG),
        (REPO, "none.gguf", None, HubProblem.NO_SUCH_FILE),
    ],
)
def test_what_may_not_be_had(
    hub: LoopbackHub, tmp_path: Path, repo: str, file: str, token: str | None, problem: HubProblem
) -> None:
    hub.tokens = {"hf_right", "hf_other"}
    hub.add(Repo("org/gated", {NAME: MODEL}, gated="manual", needs="hf_right"))
    hub.add(Repo("org/private", {NAME: MODEL}, private=True, needs="hf_right"))
    error = Fetching(hub, tmp_path, HubFile(file, len(MODEL), SHA256), repo=repo, token=token).fails()
    assert isinstance(error, HubError)
    assert error.problem is problem
    # Not asked again: nothing would change.
    assert len(hub.seen("hub")) == 1
    assert traces(tmp_path) == set()


def test_offline(hub: LoopbackHub, tmp_path: Path) -> None:
    fetching = Fetching(hub, tmp_path)
    fetching.client = HubClient(HubSettings(hub.endpoint, offline=True))
    error = fetching.fails()
    assert isinstance(error, HubError)
    assert error.problem is HubProblem.OFFLINE
    assert hub.requests == []


# The disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.name != "posix":
        pytest.skip("no small disk can be made here")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False, capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_too_small_is_noticed_before(hub: LoopbackHub, small_disk: Path) -> None:
    error = Fetching(hub, small_disk).fails()
    assert "disk space" in error.what
    assert re.search(r"3 MB are still to come, and 2(\.\d+)? MB are free", error.why)
    assert hub.seen("cdn") == []


def test_a_disk_that_fills_up(hub: LoopbackHub, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else writes on it meanwhile, so that the look before did not help."""
    monkeypatch.setattr(FileDownload, "_check_space", lambda *_: None)
    error = Fetching(hub, small_disk).fails()
    assert "full" in error.what
    assert traces(small_disk) == {f"{NAME}.part", f"{NAME}.part.state"}
    kept = (small_disk / f"{NAME}.part").stat().st_size
    assert kept > 1_500_000
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    hub.requests.clear()
    Fetching(hub, small_disk).run()
    assert is_right(small_disk)
    assert hub.sent() - (len(MODEL) - kept) <= 1 << 20


def test_the_space_is_looked_at_meanwhile(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.rate = 1.5e6
    usage = shutil.disk_usage(tmp_path)
    looks: list[int] = []

    def fuller(path: object) -> object:
        looks.append(1)
        return usage if len(looks) == 1 else usage._replace(free=1000)

    monkeypatch.setattr(shutil, "disk_usage", fuller)
    fetching = Fetching(hub, tmp_path)
    error = fetching.fails()
    assert "disk space" in error.what
    assert 0 < fetching.progress[-1] < len(MODEL)


def test_a_folder_that_cannot_be_written(hub: LoopbackHub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    error = Fetching(hub, tmp_path / "file").fails()
    assert "cannot be written" in error.what


def test_cancelling_removes_what_is_there(hub: LoopbackHub, tmp_path: Path) -> None:
    part_of(hub, tmp_path, 1_000_000)
    assert traces(tmp_path) == {f"{NAME}.part", f"{NAME}.part.state"}
    Fetching(hub, tmp_path).download.discard()
    assert traces(tmp_path) == set()


def test_cancelling_leaves_what_another_works_on(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 3e6
    with child(hub, tmp_path) as other:
        while not (tmp_path / f"{NAME}.part").exists():
            time.sleep(0.002)
        Fetching(hub, tmp_path).download.discard()
        assert other.wait(20) == 0
    assert is_right(tmp_path)


def test_a_killed_process_leaves_nothing_that_is_listed(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.rate = 3e6
    with child(hub, tmp_path) as other:
        while not (tmp_path / f"{NAME}.part").exists():
            time.sleep(0.002)
        os.kill(other.pid, signal.SIGTERM)
        other.wait()
    assert not list(tmp_path.rglob("*.gguf"))
