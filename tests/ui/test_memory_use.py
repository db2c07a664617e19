"""What the app takes now, and what a pair would take beside it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from forespeak.engines.engine import LoadRequest
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.memory import MAIN_MEMORY
from forespeak.pairing.load_plan import plan_load
from forespeak.ui.memory_use import memory_of, plan_beside
from models import architectures

GB = 10**9


def test_the_app_and_its_engine_count_together() -> None:
    used, total = memory_of(None)
    assert total == psutil.virtual_memory().total
    twice, _ = memory_of(os.getpid())
    assert used < twice <= total
    assert memory_of(2**22 + 1)[0] > 0


def test_the_pair_in_use_makes_room_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = architectures.lfm2().write(tmp_path / "m.gguf")
    machine = Machine(16 * GB, 4 * GB, (Gpu("Card", 2 * GB, 8 * GB),))
    monkeypatch.setattr("forespeak.pairing.load_plan.machine_now", lambda: machine)
    monkeypatch.setattr("forespeak.models.machine_memory.private_bytes", lambda pid: 3 * GB if pid == 77 else 0)
    request = LoadRequest(model)
    first = plan_beside(None, request, None)
    assert first == plan_load(request, machine)
    assert first is not None
    again = plan_beside(77, request, first)
    assert again is not None
    free = {need.device: need.free_bytes for need in again.devices}
    on_card = {need.device: need.needed_bytes for need in first.devices}["Card"]
    assert free == {MAIN_MEMORY: 7 * GB, "Card": 2 * GB + on_card}
    # An engine that has died has already given everything back.
    assert plan_beside(None, request, first) == first


def test_a_file_that_cannot_be_read_has_no_plan(tmp_path: Path) -> None:
    assert plan_beside(None, LoadRequest(tmp_path / "gone.gguf"), None) is None
