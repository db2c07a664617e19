"""The engine process with a scripted engine in it: order of events, cancel, failure, death, and what is left behind."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from forespeak.engines import huge_pages
from forespeak.engines.engine import (
    Body,
    ChatMessage,
    ConversionRequest,
    Converted,
    Died,
    EngineEvent,
    Failed,
    GenerationRequest,
    Loaded,
    LoadRequest,
    Progress,
    Role,
)
from forespeak.engines.host import EngineProcess, is_last
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import FinishReason, Step
from hosted_engine import refuse_pair, scripted_engine

PATIENCE = 30.0


class Host:
    def __init__(self, folder: Path) -> None:
        self.events: queue.Queue[EngineEvent] = queue.Queue()
        self.log = folder / "engine.log"
        self.process = EngineProcess(self.events.put, log_path=self.log, pair_check=refuse_pair, engine=scripted_engine)

    @property
    def pid(self) -> int:
        pid = self.process.pid
        assert pid is not None
        return pid

    def say(self, script: str) -> int:
        return self.process.generate(GenerationRequest((ChatMessage(Role.USER, script),)))

    def load(self, name: str = "model", draft: str | None = None) -> Loaded:
        body = self.until_last(self.process.load(LoadRequest(Path(name), Path(draft) if draft else None)))[-1]
        assert isinstance(body, Loaded)
        return body

    def until_last(self, number: int) -> list[Body]:
        """Everything told about a request, up to its end."""
        bodies: list[Body] = []
        while True:
            event = self.events.get(timeout=PATIENCE)
            if event.request == number:
                bodies.append(event.body)
                if is_last(event.body):
                    return bodies

    def next_step(self, number: int) -> None:
        while not isinstance((event := self.events.get(timeout=PATIENCE)).body, Step) or event.request != number:
            pass


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.process.close()


def test_a_request_is_answered_in_order_and_ends_once(host: Host) -> None:
    host.load()
    bodies = host.until_last(host.say("50"))
    assert [body.index for body in bodies if isinstance(body, Step)] == list(range(51))
    assert [is_last(body) for body in bodies] == [False] * 51 + [True]


@pytest.mark.skipif(huge_pages.tunables({}) is None, reason="only the GNU C library on Linux can be told")
def test_the_engine_has_huge_pages(host: Host) -> None:
    host.load()
    assert huge_pages.tunables(psutil.Process(host.pid).environ()) is None


def test_a_load_tells_its_progress_and_uses_the_pair_check(host: Host) -> None:
    assert host.load("model", "draft").draft_problem == "draft does not suit model."


def test_requests_wait_for_each_other(host: Host) -> None:
    host.load()
    first, second = host.say("20"), host.say("raise")
    assert isinstance(host.until_last(first)[-1], Finished)
    assert isinstance(host.until_last(second)[-1], Failed)


def test_a_cancel_arrives_while_it_generates(host: Host) -> None:
    host.load()
    number = host.say("for ever")
    host.next_step(number)
    host.process.cancel(number)
    finished = host.until_last(number)[-1]
    assert isinstance(finished, Finished)
    assert finished.reason is FinishReason.CANCELLED
    assert isinstance(host.until_last(host.say("3"))[-1], Finished)


def test_a_waiting_request_can_be_cancelled(host: Host) -> None:
    host.load()
    running, waiting = host.say("for ever"), host.say("for ever")
    host.process.cancel(waiting)
    host.process.cancel(running)
    host.until_last(running)
    finished = host.until_last(waiting)[-1]
    assert isinstance(finished, Finished)
    assert finished.reason is FinishReason.CANCELLED


def test_a_load_can_be_cancelled(host: Host) -> None:
    number = host.process.load(LoadRequest(Path("slow")))
    assert isinstance(host.events.get(timeout=PATIENCE).body, Progress)
    host.process.cancel(number)
    assert host.until_last(number)[-1] == Failed("Cancelled.")


def test_what_the_user_can_mend_comes_as_it_is(host: Host) -> None:
    host.load()
    assert host.until_last(host.say("raise"))[-1] == Failed("What.", "Why.", "Remedy.")


def test_a_bug_inside_is_told_and_does_not_end_the_process(host: Host) -> None:
    host.load()
    body = host.until_last(host.say("bug"))[-1]
    assert isinstance(body, Failed)
    assert body.is_bug
    assert "ZeroDivisionError" in body.details
    assert isinstance(host.until_last(host.say("2"))[-1], Finished)


@pytest.mark.parametrize(("script", "reason"), [("abort", "SIGABRT"), ("exit", "exit code 3")])
def test_a_death_is_told_with_its_reason_and_the_next_message_works(host: Host, script: str, reason: str) -> None:
    host.load()
    body = host.until_last(host.say(script))[-1]
    assert isinstance(body, Died)
    assert reason in body.why
    assert body.remedy
    if script == "abort":
        assert "GGML_ASSERT(something) failed" in body.details
    assert isinstance(host.until_last(host.say("2"))[-1], Finished)


def test_killed_twenty_times_in_mid_reply(host: Host) -> None:
    host.load()
    for _ in range(20):
        number = host.say("for ever")
        host.next_step(number)
        os.kill(host.pid, signal.SIGKILL)
        died = host.until_last(number)[-1]
        assert isinstance(died, Died)
        assert "SIGKILL" in died.why
    assert isinstance(host.until_last(host.say("2"))[-1], Finished)


def test_a_death_answers_for_every_waiting_request(host: Host) -> None:
    host.load()
    numbers = [host.say("for ever"), host.say("2"), host.say("2")]
    host.next_step(numbers[0])
    os.kill(host.pid, signal.SIGKILL)
    assert [type(host.until_last(number)[-1]) for number in numbers] == [Died, Died, Died]


def test_a_death_between_requests_is_told_and_costs_nothing(host: Host) -> None:
    host.load()
    os.kill(host.pid, signal.SIGKILL)
    assert isinstance(host.until_last(0)[-1], Died)
    assert host.process.pid is None
    assert isinstance(host.until_last(host.say("2"))[-1], Finished)


class Broken:
    """A pipe whose other end is dying: it takes nothing more, and what it still brings is read."""

    def __init__(self, pipe: object) -> None:
        self._pipe = pipe

    def send(self, _message: object) -> None:
        raise BrokenPipeError

    def __getattr__(self, name: str) -> object:
        return getattr(self._pipe, name)


def test_a_cancel_that_meets_a_dying_child_leaves_its_request_an_end(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.load()
    number = host.say("for ever")
    host.next_step(number)
    child = host.process._child
    assert child is not None
    monkeypatch.setattr(child, "_pipe", Broken(child._pipe))
    host.process.cancel(number)
    os.kill(host.pid, signal.SIGKILL)
    assert isinstance(host.until_last(number)[-1], Died)


def test_a_request_that_meets_a_dying_child_goes_to_the_next_one(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.load()
    child, pid = host.process._child, host.pid
    assert child is not None
    monkeypatch.setattr(child, "_pipe", Broken(child._pipe))
    assert isinstance(host.until_last(host.say("2"))[-1], Finished)
    assert host.pid != pid
    os.kill(pid, signal.SIGKILL)
    assert isinstance(host.until_last(0)[-1], Died)


def test_a_child_that_dies_before_it_takes_anything_ends_what_it_was_sent(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.load()
    os.kill(host.pid, signal.SIGKILL)
    host.until_last(0)

    def send(*_: object) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "send", send)
        number = host.say("2")
    os.kill(host.pid, signal.SIGKILL)
    assert isinstance(host.until_last(number)[-1], Died)


def test_a_request_that_fails_behind_its_end_has_ended(host: Host) -> None:
    host.load()
    first, second = host.say("fail late"), host.say("2")
    ends: list[EngineEvent] = []
    while not ends or ends[-1].request != second:
        event = host.events.get(timeout=PATIENCE)
        if is_last(event.body):
            ends.append(event)
    assert [(event.request, type(event.body)) for event in ends] == [(first, Finished), (second, Finished)]


def test_a_generation_has_its_pair_whatever_came_first_after_a_death(host: Host) -> None:
    host.load()
    os.kill(host.pid, signal.SIGKILL)
    host.until_last(0)
    host.until_last(host.process.convert(ConversionRequest(Path("a"), Path("b"))))
    assert isinstance(host.until_last(host.say("2"))[-1], Finished)


def test_the_listener_hears_one_event_at_a_time(tmp_path: Path) -> None:
    """Also while one child ends and the next one begins."""
    inside = threading.Lock()
    overlaps: list[EngineEvent] = []

    def listen(event: EngineEvent) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(event)
            return
        time.sleep(0.001)
        inside.release()

    process = EngineProcess(listen, log_path=tmp_path / "engine.log", pair_check=refuse_pair, engine=scripted_engine)

    def tell() -> None:
        for _ in range(20):
            process._tell(EngineEvent(1, Failed("x")))

    tellers = [threading.Thread(target=tell) for _ in range(2)]
    for teller in tellers:
        teller.start()
    for teller in tellers:
        teller.join()
    assert not overlaps


def test_another_target_is_loaded_in_a_new_process(host: Host) -> None:
    host.load("first")
    first = host.pid
    host.load("second")
    second = host.pid
    assert second != first
    deadline = time.monotonic() + PATIENCE
    while psutil.pid_exists(first) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not psutil.pid_exists(first)
    host.load("second", "draft")
    assert host.pid == second


def test_closing_ends_the_child_and_answers_what_was_open(host: Host) -> None:
    host.load()
    number = host.say("for ever")
    host.next_step(number)
    pid = host.pid
    host.process.close()
    assert isinstance(host.until_last(number)[-1], Failed)
    assert not psutil.pid_exists(pid)
    host.process.close()


def test_a_conversion_needs_no_loaded_model(host: Host) -> None:
    number = host.process.convert(ConversionRequest(Path("a"), Path("b")))
    assert host.until_last(number) == [Converted(Path("b"))]


def test_a_killed_parent_leaves_no_child(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}\n"
        "from pathlib import Path\n"
        "from test_host import Host\n"
        "if __name__ == '__main__':\n"
        "    host = Host(Path(sys.argv[1]))\n"
        "    host.load()\n"
        "    host.next_step(host.say('for ever'))\n"
        "    print(host.process.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    psutil.wait_procs([child], timeout=PATIENCE)
    assert not child.is_running()
