"""The comparisons that were made on this machine, one file each, in a folder that only we write to."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

from forespeak.compare.journal import FOREIGN, FORMAT, Journal, lines_of, results_of
from forespeak.compare.lanes import Plan
from forespeak.compare.machine import MachineNotes
from forespeak.compare.plan_record import plan_from
from forespeak.compare.runner import Results
from forespeak.errors import UserFacingError, disk_told
from forespeak.models.formats import model_stem

FOLDER = "comparisons"
"""Of the data folder."""
_REMOVED = ".removed"
_DAY = 86_400.0
_LONGEST_NAME = 200


class State(Enum):
    """How far a comparison is."""

    COMPLETE = "complete"
    OUT_OF_TIME = "out of time"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    """It never said that it ended: the program was killed."""
    RUNNING = "running"
    """It is measured now, here or in another process."""


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """What a list shows of a comparison. `done` of `planned` runs; `headline` is empty before it has ended."""

    id: str
    name: str
    created_at: datetime
    plan: Plan
    state: State
    done: int
    planned: int
    headline: str

    @property
    def can_resume(self) -> bool:
        return self.state not in {State.COMPLETE, State.RUNNING}

    @property
    def words(self) -> str:
        """All that a search looks at, in lower case."""
        plan = self.plan
        drafts = [model_stem(lane.draft) for lane in plan.lanes if lane.draft is not None]
        categories = dict.fromkeys(prompt.category for prompt in plan.prompts)
        names = [lane.name for lane in plan.all_lanes]
        date = self.created_at.astimezone().date().isoformat()
        return " ".join(
            [self.name, model_stem(plan.target), *drafts, *names, *categories, date, self.headline]
        ).casefold()


class RemovedComparison:
    """A comparison that was removed and can come back until `finish`."""

    def __init__(self, path: Path, hidden: Path) -> None:
        self._path = path
        self._hidden = hidden

    def undo(self) -> None:
        """Put it back. Raises UserFacingError if it cannot be."""
        with disk_told("The comparison could not be put back."):
            self._hidden.replace(self._path)

    def finish(self) -> None:
        """Remove it for good."""
        with contextlib.suppress(OSError):
            self._hidden.unlink(missing_ok=True)


class ComparisonStore:
    """The comparisons in a folder, which is made with the first one. Everything is read anew each time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for path in folder.glob(f"*{_REMOVED}"):
            # Nobody came back for it.
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _DAY:
                    path.unlink()

    def begin(self, plan: Plan, machine: MachineNotes, name: str = "") -> Journal:
        """A new comparison. Raises UserFacingError: the disk is full."""
        with disk_told("The comparison could not be saved."):
            self._folder.mkdir(parents=True, exist_ok=True)
        journal = Journal(self._path(uuid.uuid4().hex))
        journal.begin(plan, _tidy(name) or usual_name(plan), machine)
        return journal

    def taken(self, comparison_id: str) -> tuple[Plan, Results, Journal]:
        """To go on with a comparison: what there is of it, and its journal, taken until it is released.

        Raises UserFacingError if it is not there, cannot be read, or is being measured.
        """
        journal = Journal(self._existing(comparison_id))
        journal.take()
        try:
            return *results_of(journal.path), journal
        except BaseException:
            journal.release()
            raise

    def all(self) -> tuple[StoredComparison, ...]:
        """The newest first. Files that are damaged, foreign or of a newer version are left alone and not listed."""
        found = [stored for path in self._folder.glob("*.jsonl") if (stored := _stored(path)) is not None]
        return tuple(sorted(found, key=lambda stored: (stored.created_at, stored.id), reverse=True))

    def search(self, words: str) -> tuple[StoredComparison, ...]:
        """Those in which each word occurs somewhere: names, models, lanes, categories, the day, what was found."""
        wanted = words.casefold().split()
        return tuple(stored for stored in self.all() if all(word in stored.words for word in wanted))

    def get(self, comparison_id: str) -> StoredComparison | None:
        """By its id, or by as much of its beginning as no other's has."""
        if (exact := _stored(self._path(comparison_id))) is not None:
            return exact
        found = [stored for stored in self.all() if comparison_id and stored.id.startswith(comparison_id)]
        return found[0] if len(found) == 1 else None

    def load(self, comparison_id: str) -> tuple[Plan, Results]:
        """All that was measured. Raises UserFacingError."""
        return results_of(self._existing(comparison_id))

    def rename(self, comparison_id: str, name: str) -> None:
        """An empty name changes nothing. Raises UserFacingError."""
        journal = Journal(self._existing(comparison_id))
        if _tidy(name):
            journal.named(_tidy(name))
        if journal.problem is not None:
            raise journal.problem

    def remove(self, comparison_id: str) -> RemovedComparison:
        """Hide it until `finish` or `undo`. Raises UserFacingError, also while it is measured."""
        path = self._existing(comparison_id)
        hidden = path.with_suffix(_REMOVED)
        journal = Journal(path)
        journal.take()
        try:
            with disk_told("The comparison could not be removed."):
                path.replace(hidden)
                # The day until it is forgotten begins now.
                os.utime(hidden)
        finally:
            journal.release()
        return RemovedComparison(path, hidden)

    def _path(self, comparison_id: str) -> Path:
        # Ids come from the command line too, and must not lead out of the folder.
        return self._folder / f"{Path(comparison_id).name}.jsonl"

    def _existing(self, comparison_id: str) -> Path:
        path = self._path(comparison_id)
        if not path.is_file():
            raise UserFacingError(
                "There is no such comparison.", f"{comparison_id} is not kept here.", "Look at the list."
            )
        return path


def usual_name(plan: Plan) -> str:
    """Such as `big: small auto against off`."""
    lanes = [lane.name for lane in plan.all_lanes if not lane.is_off] or [lane.name for lane in plan.lanes]
    shown = ", ".join(lanes[:3]) + (f" and {len(lanes) - 3} more" if len(lanes) > 3 else "")
    return f"{model_stem(plan.target)}: {shown}"[:_LONGEST_NAME]


def planned_runs(plan: Plan) -> int:
    """All runs of a plan, warm-ups aside."""
    return sum(len(load.lanes) for load in plan.loads) * len(plan.prompts) * plan.repeats


def _stored(path: Path) -> StoredComparison | None:
    """What the file says of itself; None if it is not ours, or gone."""
    try:
        lines = lines_of(path, "comparison", "named", "ended", "loaded", "failed")
        head = next(lines)
        if head["kind"] != "comparison" or head["format"] > FORMAT:
            return None
        name, state, headline = str(head["name"]), State.INTERRUPTED, ""
        for record in lines:
            match record["kind"]:
                case "named":
                    name = str(record["name"])
                case "ended":
                    state, headline = State(record["state"]), str(record["headline"])
                case _:
                    state = State.INTERRUPTED  # it was begun again
        if state is not State.COMPLETE and Journal(path).is_taken:
            # It may be gone on with, and still load.
            state = State.RUNNING
        plan = plan_from(head["plan"])
        return StoredComparison(
            path.stem,
            name,
            datetime.fromisoformat(head["created_at"]),
            plan,
            state,
            _count_runs(path),
            planned_runs(plan),
            headline,
        )
    except (OSError, UserFacingError, *FOREIGN):
        return None


def _count_runs(path: Path) -> int:
    with path.open("rb") as file:
        return sum(line.startswith(b'{"kind": "run"') and line.endswith(b"}\n") for line in file)


def _tidy(name: str) -> str:
    return " ".join(name.split())[:_LONGEST_NAME]
