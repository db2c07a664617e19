"""Comparisons as the window has them: measured in an engine process of their own, kept in a folder. It blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forespeak.compare import session
from forespeak.compare.control import Control
from forespeak.compare.journal import Journal
from forespeak.compare.lane_results import result_of
from forespeak.compare.lanes import Plan
from forespeak.compare.machine import Disturbance, machine_notes
from forespeak.compare.plan import Prompt
from forespeak.compare.runner import Happening, Results
from forespeak.compare.store import ComparisonStore, RemovedComparison, StoredComparison
from forespeak.compare.waiting import WaitingEngine
from forespeak.engines.engine import EngineClient, EngineEvent
from forespeak.errors import UserFacingError
from forespeak.ui.compare_prompt_files import read_prompts
from forespeak.ui.compare_reading import history_row, result_values
from forespeak.ui.compare_values import HistoryRow, ResultValues

Connect = Callable[[Callable[[EngineEvent], None]], EngineClient]
Listen = Callable[[Happening], None]
HashOf = Callable[[Path, Callable[[], bool]], str | None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A kept comparison, read."""

    plan: Plan
    values: ResultValues


class RemovedSeveral:
    def __init__(self, removed: list[RemovedComparison]) -> None:
        self._removed = removed

    def undo(self) -> None:
        """Raises UserFacingError."""
        for each in self._removed:
            each.undo()


class ComparisonDesk:
    """`connect` makes the engine that measures; it ends with each comparison, so that its memory comes back.

    `hash_of` gives the SHA-256 of a model's file for reports, None once it is stopped.
    """

    def __init__(self, folder: Path, connect: Connect, hash_of: HashOf | None = None) -> None:
        self._folder = folder
        self._connect = connect
        self._hash_of = hash_of
        self._store: ComparisonStore | None = None

    @property
    def store(self) -> ComparisonStore:
        if self._store is None:
            self._store = ComparisonStore(self._folder)
        return self._store

    # -- measuring

    def measure(self, plan: Plan, name: str, listen: Listen, control: Control) -> str:
        return self._run(plan, self.store.begin(plan, machine_notes(), name), listen, control, None)

    def go_on(self, comparison: str, listen: Listen, control: Control) -> str:
        plan, former, journal = self.store.taken(comparison)
        try:
            return self._run(plan, journal, listen, control, former)
        finally:
            journal.release()

    def _run(self, plan: Plan, journal: Journal, listen: Listen, control: Control, former: Results | None) -> str:
        engine = WaitingEngine(self._connect)
        try:
            # The chat's engine, and what other pages compute, are others too.
            others = Disturbance(engine=lambda: engine.pid).since_last_look
            result = session.measure(plan, engine, journal, listen, control, former=former, others=others)
        finally:
            engine.close()
        if journal.problem is not None:
            raise journal.problem
        results, before = result.results, 0 if former is None else len(former.runs)
        problem = next(iter(results.problems.values()), "")
        if before and problem and len(results.runs) <= before and not control.stopped():
            raise UserFacingError("Nothing more could be measured.", problem, "What was measured before is kept.")
        if results.runs:
            return journal.id
        self.store.remove(journal.id).finish()
        if problem:
            raise UserFacingError("Nothing could be compared.", problem, "Choose other lanes.")
        return ""

    # -- what is kept

    def rows(self, query: str) -> tuple[HistoryRow, ...]:
        found = self.store.search(query) if query else self.store.all()
        return tuple(history_row(stored) for stored in found)

    def open(self, comparison: str) -> Opened:
        """Raises UserFacingError."""
        stored = self._stored(comparison)
        plan, results = self.store.load(comparison)
        return Opened(plan, result_values(stored, result_of(plan, results, stored.state)))

    def _stored(self, comparison: str) -> StoredComparison:
        stored = self.store.get(comparison)
        if stored is None:
            raise UserFacingError("This comparison cannot be read.", "Its file is damaged, or gone.", "Make a new one.")
        return stored

    def rename(self, comparison: str, name: str) -> None:
        self.store.rename(comparison, name)

    def read_prompts(self, path: Path) -> tuple[Prompt, ...]:
        return read_prompts(path)

    def export(
        self, comparison: str, kind: str, path: Path, private: bool, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """A report of that kind: html, md, json or csv. `private`: with the user's own words in it.

        Reads the models, which may take minutes; nothing is written if it is stopped meanwhile.
        """
        # What reports are made of is wanted seldom.
        from forespeak.compare.model_files import model_records
        from forespeak.compare.report import write_file
        from forespeak.compare.report_files import report_of

        stored = self._stored(comparison)
        plan, results = self.store.load(comparison)
        # A CSV says nothing of the models, whose hashes take a while.
        hash_of = self._hash_of
        known = None if hash_of is None else lambda file: hash_of(file, stopped)
        models = [] if kind == "csv" else model_records(plan, known)
        if stopped():
            return
        text = report_of(
            kind,
            result_of(plan, results, stored.state),
            models,
            private=private,
            comparison_id=stored.id,
            name=stored.name,
        )
        write_file(path, text, for_spreadsheets=kind == "csv")

    def remove(self, comparisons: tuple[str, ...]) -> RemovedSeveral:
        removed: list[RemovedComparison] = []
        try:
            for each in comparisons:
                removed.append(self.store.remove(each))  # noqa: PERF401 -- those before one that fails count
        except UserFacingError:
            # All of them or none: what went before the one that cannot go comes back.
            RemovedSeveral(removed).undo()
            raise
        return RemovedSeveral(removed)
