"""One comparison's file: a line of JSON for the plan, for each load, for each run, appended as they happen.

Nothing is ever changed in it, so what stands there survives whatever happens to the program. A last line that was cut
off is passed over when it is read, and closed with a line's end before anything is written behind it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forespeak.compare.lanes import Plan
from forespeak.compare.machine import MachineNotes
from forespeak.compare.plan_record import plan_from, plan_record
from forespeak.compare.run_record import (
    loaded_from,
    loaded_record,
    machine_from,
    machine_record,
    run_from,
    run_record,
)
from forespeak.compare.runner import Results, Run, compared_by_visit
from forespeak.engines.engine import Loaded
from forespeak.errors import UserFacingError, unsaved
from forespeak.models.file_lock import FileLock

FORMAT = 1
Json = dict[str, Any]
FOREIGN = (ValueError, TypeError, KeyError, IndexError, AttributeError, StopIteration, RecursionError)
"""What reading values that are not ours may raise."""
_LOCK = ".lock"
_LOOKS, _LOOK_SECONDS = 5, 0.02
"""Whoever lists comparisons holds a lock for a moment, to see whether it is free."""


class Journal:
    """Appends to a comparison's file. Whoever measures takes it first; its name may be changed meanwhile.

    A disk that refuses a line is asked again with the next one; `problem` says why it last refused, None if all that
    was noted is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting: list[str] = []
        self._lock = FileLock(path.with_suffix(_LOCK))
        self.problem: UserFacingError | None = None

    @property
    def id(self) -> str:
        return self.path.stem

    def take(self) -> None:
        """Be the only one who measures it or removes it, until `release`. Raises UserFacingError if somebody else is.

        Nothing happens if it is taken by this journal already. However the process ends, it is free again.
        """
        for _ in range(_LOOKS):
            if self._lock.held or self._acquired():
                return
            time.sleep(_LOOK_SECONDS)
        raise UserFacingError(
            "This comparison is being measured now.",
            "It goes on in the window, or on a command line.",
            "Wait for its end, or end it there first.",
        )

    def release(self) -> None:
        self._lock.release()

    @property
    def is_taken(self) -> bool:
        """Whether somebody measures it now, here or in another process."""
        if not self.path.with_suffix(_LOCK).exists():
            return False
        look = FileLock(self.path.with_suffix(_LOCK))
        try:
            free = look.acquire()
        except OSError:
            return False
        look.release()
        return not free

    def _acquired(self) -> bool:
        try:
            return self._lock.acquire()
        except OSError as error:
            raise self._unsaved(error) from error

    def begin(self, plan: Plan, name: str, machine: MachineNotes) -> None:
        """Write the first line. Raises UserFacingError: without it there is no comparison."""
        self._note(
            "comparison",
            format=FORMAT,
            name=name,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine_record(machine),
            plan=plan_record(plan),
        )
        if self.problem is not None:
            raise self.problem

    def loaded(self, pair: int, loaded: Loaded) -> None:
        self._note("loaded", pair=pair, **loaded_record(loaded))

    def failed(self, pair: int, problem: str) -> None:
        self._note("failed", pair=pair, problem=problem)

    def ran(self, plan: Plan, run: Run) -> None:
        self._note("run", **run_record(plan, run))

    def ended(self, state: str, headline: str) -> None:
        self._note("ended", state=state, headline=headline)

    def named(self, name: str) -> None:
        self._note("named", name=name)

    def _note(self, kind: str, **values: Any) -> None:  # noqa: ANN401 -- JSON values
        self._waiting.append(json.dumps({"kind": kind, **values}, ensure_ascii=False, allow_nan=False) + "\n")
        try:
            _append(self.path, "".join(self._waiting).encode("utf-8", "surrogatepass"))
        except OSError as error:
            self.problem = self._unsaved(error)
        else:
            self._waiting.clear()
            self.problem = None

    def _unsaved(self, error: OSError) -> UserFacingError:
        return unsaved("The comparison could not be saved.", error, str(self.path.parent))


def _append(path: Path, data: bytes) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            if os.read(descriptor, 1) != b"\n":
                data = b"\n" + data
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lines_of(path: Path, *kinds: str) -> Iterator[Json]:
    """The whole lines of a file that are of these kinds, in their order; of any kind without a name.

    Lines of other kinds are not taken apart. Raises OSError.
    """
    wanted = tuple(f'{{"kind": "{kind}"'.encode() for kind in kinds)
    with path.open("rb") as file:
        for line in file:
            if wanted and not line.startswith(wanted):
                continue
            try:
                record = json.loads(line)
            except ValueError:
                continue  # cut off, or damaged
            if isinstance(record, dict):
                yield record


def results_of(path: Path) -> tuple[Plan, Results]:
    """The plan and all runs of a file. Raises UserFacingError."""
    try:
        records = list(lines_of(path))
        head = records[0]
        if head["kind"] != "comparison" or head["format"] > FORMAT:
            raise ValueError("not a comparison, or one of a newer version")
        plan = plan_from(head["plan"])
        began_at = datetime.fromisoformat(head["created_at"])
        results = Results(plan.comparison(), machine_from(head["machine"]), began_at)
    except (OSError, *FOREIGN) as error:
        raise _unreadable(path, error) from error
    runs: dict[object, Run] = {}
    for record in records[1:]:
        try:
            _take(plan, results, runs, record)
        except FOREIGN:
            continue  # one damaged line costs one run
    results.runs += compared_by_visit(runs.values())
    return plan, results


def _take(plan: Plan, results: Results, runs: dict[object, Run], record: Mapping[str, Any]) -> None:
    if record["kind"] in {"run", "loaded", "failed"}:
        # However it ended before, it was begun again.
        results.complete = results.out_of_time = False
    match record["kind"]:
        case "run":
            run = run_from(plan, record)
            runs[run.task] = run
        case "loaded":
            pair = record["pair"]
            results.loaded[pair] = loaded_from({key: record[key] for key in record if key not in {"kind", "pair"}})
            results.problems.pop(pair, None)
        case "failed":
            results.problems[record["pair"]] = record["problem"]
        case "ended":
            results.complete = record["state"] == "complete"
            results.out_of_time = record["state"] == "out of time"
        case _:
            pass


def _unreadable(path: Path, error: Exception) -> UserFacingError:
    why = (error.strerror or str(error)) if isinstance(error, OSError) else "Its file is damaged, or not ours"
    return UserFacingError("This comparison cannot be read.", f"{path.name}: {why}.", "Remove it, or make a new one.")
