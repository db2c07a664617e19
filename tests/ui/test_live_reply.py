"""Saving replies as they grow: in order, nothing twice, nothing lost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot

from forespeak.chats.records import MessageState
from forespeak.engines.engine import GenerationRequest
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import FinishReason, GenerationStats, Step
from forespeak.ui import live_reply
from forespeak.ui.background import Worker
from forespeak.ui.live_reply import Ending, LiveReply, ReplySaver
from ui.scripted_engine import scripted_steps

STEPS = scripted_steps("one two three four five six seven eight nine ten eleven twelve thirteen fourteen")


@dataclass
class Disk:
    """A store that can be slow, full, or broken."""

    saved: dict[int, list[Step]] = field(default_factory=dict)
    ended: dict[int, MessageState] = field(default_factory=dict)
    error: Exception | None = None
    gate: threading.Event | None = None

    def append_steps(self, message_id: int, steps: Sequence[Step]) -> None:
        if self.gate is not None:
            self.gate.wait(5)
        if self.error is not None:
            raise self.error
        self.saved.setdefault(message_id, []).extend(steps)

    def finish_reply(
        self,
        message_id: int,
        state: MessageState,
        *,
        note: str = "",
        stats: GenerationStats | None = None,
        finish_reason: FinishReason | None = None,
    ) -> None:
        if self.error is not None:
            raise self.error
        assert message_id not in self.ended
        self.ended[message_id] = state


class Saving:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(live_reply, "SAVE_MS", 15)
        monkeypatch.setattr(live_reply, "RETRY_SECONDS", 0.05)
        self.disk = Disk()
        self.worker = Worker("chats")
        self.saver = ReplySaver(self.disk, self.worker)
        self.failures: list[UserFacingError] = []
        self.recoveries = 0
        self.stored: list[LiveReply] = []
        self.saver.failed.connect(self.failures.append)
        self.saver.recovered.connect(self._recovered)
        self.saver.stored.connect(self.stored.append)

    def _recovered(self) -> None:
        self.recoveries += 1

    def reply(self, message: int = 1) -> LiveReply:
        made = LiveReply(1, message, GenerationRequest(()))
        self.saver.track(made)
        return made


@pytest.fixture
def saving(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Saving:
    return Saving(monkeypatch)


FULL = UserFacingError("The chat could not be saved.", "No space is left.")


def test_what_came_is_saved_without_being_asked(qtbot: QtBot, saving: Saving) -> None:
    reply = saving.reply()
    reply.add(STEPS[:2])
    qtbot.waitUntil(lambda: saving.disk.saved == {1: STEPS[:2]})
    reply.add(STEPS[2:])
    reply.ending = Ending(MessageState.COMPLETE)
    saving.saver.end(reply)
    qtbot.waitUntil(lambda: saving.stored == [reply])
    assert saving.disk.saved == {1: STEPS}
    assert not saving.saver.pending
    saving.worker.close()


def test_what_comes_while_a_save_is_under_way_is_saved_once_after_it(qtbot: QtBot, saving: Saving) -> None:
    saving.disk.gate = threading.Event()
    reply = saving.reply()
    for step in STEPS:
        reply.add([step])
        saving.saver.save_all()
    reply.ending = Ending(MessageState.COMPLETE)
    saving.saver.end(reply)
    saving.disk.gate.set()
    qtbot.waitUntil(lambda: saving.stored == [reply])
    assert saving.disk.saved == {1: STEPS}
    saving.worker.close()


def test_a_refused_part_is_kept_told_and_saved_later(qtbot: QtBot, saving: Saving) -> None:
    saving.disk.error = FULL
    reply = saving.reply()
    reply.add(STEPS[:3])
    reply.ending = Ending(MessageState.COMPLETE)
    saving.saver.end(reply)
    qtbot.waitUntil(lambda: saving.failures[:1] == [FULL])
    assert saving.saver.pending
    saving.disk.error = None
    qtbot.waitUntil(lambda: saving.stored == [reply])
    assert saving.disk.saved == {1: STEPS[:3]}
    assert saving.disk.ended == {1: MessageState.COMPLETE}
    assert saving.recoveries == 1
    saving.worker.close()


def test_a_part_is_not_written_twice_when_only_the_end_was_refused(qtbot: QtBot, saving: Saving) -> None:
    reply = saving.reply()
    finish = saving.disk.finish_reply
    refusals = [FULL, FULL]

    def refuse(*args: object, **named: object) -> None:
        if refusals:
            raise refusals.pop()
        finish(*args, **named)  # type: ignore[arg-type]

    saving.disk.finish_reply = refuse  # type: ignore[method-assign]
    reply.add(STEPS)
    reply.ending = Ending(MessageState.STOPPED)
    saving.saver.end(reply)
    qtbot.waitUntil(lambda: saving.stored == [reply])
    assert saving.disk.saved == {1: STEPS}
    saving.worker.close()


def test_the_last_save_takes_everything(qtbot: QtBot, saving: Saving) -> None:
    saving.disk.gate = threading.Event()
    first, second = saving.reply(1), saving.reply(2)
    first.add(STEPS[:1])
    saving.saver.save_all()
    first.add(STEPS[1:])
    second.add(STEPS)
    for reply in (first, second):
        reply.ending = Ending(MessageState.STOPPED)
    saving.saver.save_last()
    saving.disk.gate.set()
    assert saving.worker.close()
    assert saving.disk.saved == {1: STEPS, 2: STEPS}
    assert saving.disk.ended == {1: MessageState.STOPPED, 2: MessageState.STOPPED}


def test_a_bug_in_saving_is_not_taken_for_a_full_disk(qtbot: QtBot, saving: Saving) -> None:
    saving.disk.error = TypeError("a bug")
    reply = saving.reply()
    reply.add(STEPS)
    with capture_exceptions() as exceptions:
        qtbot.waitUntil(lambda: bool(exceptions))
    assert exceptions[0][0] is TypeError
    assert saving.failures == []
    saving.disk.error = None
    saving.worker.close()


def test_the_rate_looks_at_the_last_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = LiveReply(1, 1, GenerationRequest(()))
    now = [100.0]
    monkeypatch.setattr("forespeak.ui.live_reply.time.perf_counter", lambda: now[0])
    plain = scripted_steps("x " * 40, None)
    assert reply.rate is None
    for step in plain[:10]:
        reply.add([step])
        now[0] += 0.5
    assert reply.rate == pytest.approx(2.0)
    for step in plain[10:35]:
        reply.add([step])
        now[0] += 0.1
    assert reply.rate == pytest.approx(10.0)
    assert reply.text == ("x " * 35).strip()
