"""Cyclic garbage goes, but not while a reply streams."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from forespeak.ui import garbage
from forespeak.ui.garbage import GarbageKeeper


class Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def busy() -> list[bool]:
    return [True]


@pytest.fixture
def keeper(qtbot: QtBot, busy: list[bool]) -> Iterator[GarbageKeeper]:
    made = GarbageKeeper(lambda: busy[0])
    made.start()
    yield made
    made.stop()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    generations: list[int] = []
    monkeypatch.setattr("forespeak.ui.garbage.gc.collect", lambda generation=2: generations.append(generation))
    return generations


def test_young_garbage_goes_even_while_busy(keeper: GarbageKeeper) -> None:
    assert not gc.isenabled()
    gone = weakref.ref(Knot())
    assert gone() is not None
    keeper.tick()
    assert gone() is None


def test_the_whole_heap_waits_for_a_quiet_moment(
    keeper: GarbageKeeper, busy: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    generations = collected(monkeypatch)
    monkeypatch.setattr(garbage, "FULL_SECONDS", 0.0)
    for _ in range(8):
        keeper.tick()
    assert generations == [0, 0, 0, 1, 0, 0, 0, 1]
    busy[0] = False
    keeper.note_input()
    keeper.tick()
    assert generations[-1] == 0, "somebody is typing"
    monkeypatch.setattr(garbage, "QUIET_SECONDS", 0.0)
    keeper.tick()
    assert generations[-1] == 2
