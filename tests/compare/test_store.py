"""Kept comparisons: listed, searched, renamed, removed and brought back; and files that are not ours."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from compare.lane_plans import LOOKUP, OFF, SMALL, measured, plan
from compare.timed_engine import TimedEngine
from forespeak.compare.store import ComparisonStore, State, planned_runs, usual_name
from forespeak.errors import UserFacingError


@pytest.fixture
def store(tmp_path: Path) -> ComparisonStore:
    return ComparisonStore(tmp_path / "kept")


def keep(store: ComparisonStore, *lanes: object) -> str:
    return measured(plan(*lanes), store._folder)[1]  # type: ignore[arg-type]


def test_what_a_list_shows(store: ComparisonStore) -> None:
    assert store.all() == ()
    first, second = keep(store), keep(store, LOOKUP)
    found = {stored.id: stored for stored in store.all()}
    assert set(found) == {first, second}
    assert found[first].name == "big: Small"
    assert found[first].headline == "Small is 2.00 times as fast as the target alone."
    assert (found[first].state, found[first].done, found[first].planned) == (State.COMPLETE, 8, 8)
    assert not found[first].can_resume
    assert store.get(first[:6]) == found[first]
    assert store.get("") is None
    assert store.get("../kept") is None


def test_names_of_many_lanes() -> None:
    assert usual_name(plan(OFF, SMALL)) == "big: Small"
    assert planned_runs(plan(OFF, SMALL, LOOKUP)) == 3 * 2 * 2


def test_search_and_rename(store: ComparisonStore) -> None:
    first, second = keep(store), keep(store, LOOKUP)
    store.rename(first, "  Before   the update ")
    assert [stored.id for stored in store.search("UPDATE small")] == [first]
    assert [stored.id for stored in store.search("lookup prose")] == [second]
    assert len(store.search("")) == 2
    assert store.search("nothing like it") == ()
    store.rename(first, " ")
    stored = store.get(first)
    assert stored is not None
    assert (stored.name, stored.state) == ("Before the update", State.COMPLETE)


def test_removed_and_brought_back(store: ComparisonStore, tmp_path: Path) -> None:
    known = keep(store)
    removed = store.remove(known)
    assert store.all() == ()
    removed.undo()
    assert [stored.id for stored in store.all()] == [known]
    store.remove(known).finish()
    assert list((tmp_path / "kept").iterdir()) == []
    with pytest.raises(UserFacingError, match="no such comparison"):
        store.remove(known)
    with pytest.raises(UserFacingError, match="no such comparison"):
        store.load(known)


def test_what_nobody_came_back_for_goes_after_a_day(store: ComparisonStore, tmp_path: Path) -> None:
    store.remove(keep(store))
    (hidden,) = (tmp_path / "kept").iterdir()
    ComparisonStore(tmp_path / "kept")
    assert hidden.exists()
    long_ago = time.time() - 2 * 86_400
    os.utime(hidden, (long_ago, long_ago))
    ComparisonStore(tmp_path / "kept")
    assert not hidden.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff",
        b"{}\n",
        b'{"kind": "comparison", "format": 99}\n',
        b'{"kind": "comparison", "format": 1}\n',
        b"[1]\n",
    ],
)
def test_foreign_files_are_left_alone(store: ComparisonStore, tmp_path: Path, content: bytes) -> None:
    known = keep(store)
    path = tmp_path / "kept" / "foreign.jsonl"
    path.write_bytes(content)
    assert [stored.id for stored in store.all()] == [known]
    assert path.read_bytes() == content
    with pytest.raises(UserFacingError, match="cannot be read"):
        store.load("foreign")


def test_a_damaged_line_costs_one_run(store: ComparisonStore, tmp_path: Path) -> None:
    known = keep(store)
    path = tmp_path / "kept" / f"{known}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    places = [index for index, line in enumerate(lines) if line.startswith(b'{"kind": "run"')]
    lines[places[2]] = lines[places[2]][:100] + b"\n"
    lines[places[5]] = b'{"kind": "run", "lane": 99}\n'
    path.write_bytes(b"".join(lines))
    assert len(store.load(known)[1].runs) == 6


def test_one_that_goes_on_is_left_alone_by_others(store: ComparisonStore) -> None:
    engine = TimedEngine()
    seen: list[State] = []

    def look(_: object) -> str | None:
        (stored,) = store.all()
        seen.append(stored.state)
        assert not stored.can_resume
        for others in (store.taken, store.remove):
            with pytest.raises(UserFacingError, match="being measured now"):
                others(stored.id)
        store.rename(stored.id, f"Name {len(seen)}")
        return None

    engine.fails = look
    known = measured(plan(), store._folder, engine)[1]
    assert set(seen) == {State.RUNNING}
    stored = store.get(known)
    assert stored is not None
    assert (stored.state, stored.done, stored.name) == (State.COMPLETE, 8, "Name 8")
    assert [path.suffix for path in store._folder.iterdir()] == [".jsonl"]


def test_one_goes_on_with_it_at_a_time(store: ComparisonStore) -> None:
    engine = TimedEngine()
    known = measured(plan(), store._folder, engine, cancelled=lambda: len(engine.requests) == 3)[1]
    journal = store.taken(known)[2]
    with pytest.raises(UserFacingError, match="being measured now"):
        ComparisonStore(store._folder).taken(known)
    journal.release()
    store.taken(known)[2].release()
    store.remove(known)


def test_what_cannot_be_read_is_not_kept_from_others(store: ComparisonStore, tmp_path: Path) -> None:
    keep(store)
    path = tmp_path / "kept" / "foreign.jsonl"
    path.write_bytes(b"[1]\n")
    for _ in range(2):
        with pytest.raises(UserFacingError, match="cannot be read"):
            store.taken("foreign")
