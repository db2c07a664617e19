"""Checks of a pair in the engine process."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path

import pytest

from forespeak.engines.engine import (
    Body,
    ChatMessage,
    EngineEvent,
    Failed,
    GenerationRequest,
    LoadRequest,
    Progress,
    Role,
)
from forespeak.engines.host import EngineProcess, is_last
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import Source
from hosted_engine import refuse_pair, scripted_engine
from hosted_parity import checkable_engine, count_cases


class Host:
    def __init__(self, folder: Path, *, checks: bool) -> None:
        self.events: queue.Queue[EngineEvent] = queue.Queue()
        self.process = EngineProcess(
            self.events.put,
            log_path=folder / "engine.log",
            pair_check=refuse_pair,
            engine=checkable_engine if checks else scripted_engine,
            parity_check=count_cases,
        )
        self.until_last(self.process.load(LoadRequest(Path("model"))))

    def until_last(self, number: int) -> list[Body]:
        bodies: list[Body] = []
        while not bodies or not is_last(bodies[-1]):
            event = self.events.get(timeout=30.0)
            if event.request == number:
                bodies.append(event.body)
        return bodies


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path, checks=True)
    yield made
    made.process.close()


def test_a_check_tells_its_progress_and_ends_with_its_result(host: Host) -> None:
    bodies = host.until_last(host.process.check(ParityRequest((Source.DRAFT_MODEL,), tokens=9, prompts=3)))
    assert [body.doing for body in bodies if isinstance(body, Progress)] == ["case 0", "case 1", "case 2"]
    result = bodies[-1]
    assert isinstance(result, ParityResult)
    assert (result.engine, result.sources, len(result.cases)) == ("CheckableEngine", (Source.DRAFT_MODEL,), 3)


def test_a_cancelled_check_gives_what_is_done_and_makes_room_for_a_message(host: Host) -> None:
    number = host.process.check(ParityRequest(()))
    assert isinstance(host.events.get(timeout=30.0).body, Progress)
    message = host.process.generate(GenerationRequest((ChatMessage(Role.USER, "2"),)))
    host.process.cancel(number)
    result = host.until_last(number)[-1]
    assert isinstance(result, ParityResult)
    assert result.cases
    assert isinstance(host.until_last(message)[-1], Finished)


def test_an_engine_whose_scores_cannot_be_read_says_so(tmp_path: Path) -> None:
    host = Host(tmp_path, checks=False)
    body = host.until_last(host.process.check(ParityRequest(())))[-1]
    host.process.close()
    assert isinstance(body, Failed)
    assert body.what == "This engine cannot be checked."
