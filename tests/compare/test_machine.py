"""What is known about the machine, and what others do on it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

import psutil
import pytest

from forespeak.compare.machine import Disturbance, machine_notes, processor_name


def test_notes_are_filled_in() -> None:
    notes = machine_notes()
    assert 1 <= notes.cores <= notes.logical_cores
    assert notes.memory_bytes == psutil.virtual_memory().total
    assert dict(notes.versions).keys() >= {"forespeak", "python", "numpy", "llama-cpp-python"}
    assert notes.processor == processor_name() != ""
    assert len(notes.load) == 3
    json.dumps(asdict(notes))


def test_others_are_averaged_between_two_looks() -> None:
    clock, used = [10.0], [100.0]
    disturbance = Disturbance(lambda: clock[0], lambda: used[0])
    clock[0], used[0] = 12.0, 101.0
    assert disturbance.since_last_look() == pytest.approx(0.5)
    clock[0] = 13.0
    assert disturbance.since_last_look() == 0.0
    # Two clocks of the system need not agree to the last tick.
    clock[0], used[0] = 14.0, 100.9
    assert disturbance.since_last_look() == 0.0
    assert disturbance.since_last_look() == 0.0


def test_our_own_work_is_not_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_it = psutil.cpu_times()
    monkeypatch.setattr(psutil, "cpu_times", lambda: all_of_it)
    own = psutil.Process().cpu_times
    clock = [0.0]
    disturbance = Disturbance(lambda: clock[0])
    before = own().user
    while own().user < before + 0.3:
        sum(range(10_000))
    clock[0] = 1.0
    # The machine as a whole did nothing more, so others must have done less than nothing.
    assert disturbance.since_last_look() == 0.0
    monkeypatch.setattr(psutil, "cpu_times", lambda: all_of_it._replace(user=all_of_it.user + 0.5))
    clock[0] = 2.0
    assert disturbance.since_last_look() == pytest.approx(0.5, abs=0.2)


def test_beside_an_engine_of_its_own_other_children_are_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = psutil.Popen([sys.executable, "-c", "while True: sum(range(10_000))"])
    this = psutil.Process()
    try:
        # Only what the child does counts as done on the machine.
        total = psutil.cpu_times()
        monkeypatch.setattr(psutil, "cpu_times", lambda: total._replace(user=total.user + _spent(this) + _spent(chat)))
        clock = [0.0]
        for engine, expected in ((None, 0.0), (this.pid, 0.3)):
            look = Disturbance(lambda: clock[0], engine=lambda engine=engine: engine).since_last_look  # type: ignore[misc]
            began = _spent(chat)
            while _spent(chat) < began + 0.3:
                time.sleep(0.01)
            clock[0] += 1.0
            assert look() == pytest.approx(expected, abs=0.1)
    finally:
        chat.kill()
        chat.wait()


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
