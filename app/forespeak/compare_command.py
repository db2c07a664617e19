"""`forespeak compare`: one target in lanes, on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forespeak import terminal
from forespeak.bench_command import Models, RunsLine, see_that_pairs_fit
from forespeak.compare_arguments import EPILOG, STARTER, add_plan_arguments, plan_file, plan_of, read_record
from forespeak.engines.engine import Engine, Progress
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.models.library_settings import users_folders

if TYPE_CHECKING:
    from forespeak.compare.estimate import PlanCosts
    from forespeak.compare.journal import Journal
    from forespeak.compare.lane_results import ComparisonResult
    from forespeak.compare.lanes import Lane, Plan
    from forespeak.compare.runner import Happening, Results, Running
    from forespeak.compare.store import ComparisonStore, StoredComparison

_WRITTEN_AS = (".md", ".json", ".csv", ".html")
_SHOWN_ID = 8


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser], models: Models) -> None:
    """Add the command to argparse's sub-commands."""
    parser = commands.add_parser(
        "compare",
        help="compare ways of speculation on one target",
        description="Compare ways to answer with one target: speculation off, draft models, sources, lengths.",
        epilog=EPILOG,
    )
    parser.set_defaults(command=partial(_compare, models), fail=parser.error)
    begin = parser.add_argument_group("instead of the options below").add_mutually_exclusive_group().add_argument
    begin("--plan", type=Path, metavar="FILE", help="what to compare, as JSON or TOML")
    begin("--repeat", type=Path, metavar="REPORT", help="measure again what a JSON report tells, exactly")
    begin("--resume", metavar="ID", help="go on with a comparison that was stopped, or killed; last: the newest one")
    begin("--list", nargs="*", metavar="WORD", help="list the comparisons that are kept, those with these words")
    add_plan_arguments(parser)
    out = parser.add_argument_group("results").add_argument
    out("--name", default="", metavar="NAME", help="of the comparison, in the list")
    out("--json", action="store_true", help="print the report as JSON in place of the table")
    out("--report", nargs="+", action="extend", type=_report_file, metavar="FILE", help=f"{', '.join(_WRITTEN_AS)}")
    out("--private", action="store_true", help="with the words of your own prompts, and of their replies")


def _report_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix.lower() not in _WRITTEN_AS:
        more = "; charts as PNG are saved from the window" if path.suffix.lower() == ".png" else ""
        raise argparse.ArgumentTypeError(f"{name!r} must end with {', '.join(_WRITTEN_AS)}{more}")
    return path


def _store() -> ComparisonStore:
    from forespeak.compare.store import FOLDER, ComparisonStore

    return ComparisonStore(folders().data / FOLDER)


def _compare(models: Models, options: argparse.Namespace) -> int:
    if options.list is not None:
        return _list(options)
    engine = models.engine()
    try:
        with terminal.Interrupt() as interrupt, terminal.ProgressLine() as line:
            command = _Command(models, options, engine, interrupt.asked, line)
            result, journal = command.measured()
            if result is None or journal is None:
                terminal.say("Stopped before anything was measured.")
                return terminal.INTERRUPTED
    finally:
        engine.close()
    return _tell(result, journal, options, stopped=interrupt.asked())


class _Command:
    """From the options to the result, over a loaded engine."""

    def __init__(
        self,
        models: Models,
        options: argparse.Namespace,
        engine: Engine,
        stopped: Callable[[], bool],
        line: terminal.ProgressLine,
    ) -> None:
        self._models = models
        self._options = options
        self._engine = engine
        self._stopped = stopped
        self._line = line
        self._store = _store()

    def measured(self) -> tuple[ComparisonResult | None, Journal | None]:
        """None: stopped before anything began. Raises UserFacingError."""
        from forespeak.compare.control import Control
        from forespeak.compare.machine import machine_notes
        from forespeak.compare.session import measure

        former: Results | None = None
        if self._options.resume is not None:
            stored = self._stored(self._options.resume)
            self._see_that_it_works(stored.plan)
            plan, former, journal = self._store.taken(stored.id)
        else:
            plan = self._plan()
            self._see_that_it_works(plan)
            for path in self._options.report or ():
                _see_that_it_can_be_written(path)
            if not self._tell_the_time(plan):
                return None, None
            journal = self._store.begin(plan, machine_notes(), self._options.name)
        watcher = _Watcher(plan, self._line)
        result = measure(plan, self._engine, journal, watcher.hear, Control(), former=former, cancelled=self._stopped)
        return result, journal

    def _stored(self, name: str) -> StoredComparison:
        from forespeak.compare.store import State

        found = self._store.get(name)
        if name == "last":
            found = next((each for each in self._store.all() if each.can_resume), None)
        if found is None:
            raise UserFacingError(f"There is no comparison {name!r}.", "", "forespeak compare --list shows all.")
        if found.state is State.COMPLETE:
            raise UserFacingError("This comparison is complete.", "", "Measure it again with --repeat and its report.")
        return found

    def _plan(self) -> Plan:
        options = self._options
        if options.plan is not None:
            return plan_file(options.plan.expanduser(), self._target)
        if options.repeat is not None:
            from forespeak.compare_files import plan_to_repeat

            return plan_to_repeat(
                read_record(options.repeat.expanduser()), self._store, self._starter_files, self._stopped
            )
        target = self._target(options.target)
        return plan_of(options, target, self._draft, partial(_kept_pair, target))

    def _target(self, name: str) -> Path:
        return self._models.target(self._file_of(name), self._engine, self._line.show, self._stopped)

    def _draft(self, name: str) -> Path:
        return self._models.draft(self._file_of(name))

    def _file_of(self, name: str) -> str:
        """The file of a model that is named as the library lists it; what is a file already stays."""
        if name == STARTER or Path(name).expanduser().exists():
            return name
        from forespeak.models.library import users_library
        from forespeak.models.library_names import named_item

        return str(named_item(users_library().scan(cancelled=self._stopped), name).path)

    def _starter_files(self) -> Sequence[Path]:
        try:
            return (self._target(STARTER), self._models.draft(STARTER))
        except UserFacingError:
            return ()

    def _see_that_it_works(self, plan: Plan) -> None:
        """Files and memory, before anybody waits. Raises UserFacingError."""
        from forespeak.models.vocabulary import cached_header
        from forespeak.pairing.compatibility import see_that_it_can_draft

        comparison = plan.comparison()
        for pair in comparison.pairs:
            for path in (pair.target, pair.draft):
                if path is not None and not path.is_dir():
                    cached_header(path)
            if pair.draft is not None:
                see_that_it_can_draft(pair.target, pair.draft)
        see_that_pairs_fit(comparison, anyway=self._options.load_anyway)

    def _tell_the_time(self, plan: Plan) -> bool:
        """Say how long it will take. False: stopped meanwhile."""
        from forespeak.compare.estimate import calibrate, plan_time

        costs = self._known_costs(plan)
        if costs is None:
            self._line.show(Progress(0.0, "Measuring how fast the target is"))
            costs = calibrate(plan, self._engine, self._line.show, self._stopped)
        if self._stopped():
            return False
        if costs is not None:
            time = plan_time(plan, costs)
            words = f"This will take {_range_words(time.least, time.most)}."
            if plan.budget_seconds is not None and time.least > plan.budget_seconds:
                words += f" It will be stopped after {_minutes_words(plan.budget_seconds)} min."
            terminal.say(words)
        return True

    def _known_costs(self, plan: Plan) -> PlanCosts | None:
        """From the newest comparison of the same target."""
        from forespeak.compare.estimate import costs_of

        for stored in self._store.all():
            if stored.done and (stored.plan.target, stored.plan.load_settings) == (plan.target, plan.load_settings):
                return costs_of(self._store.load(stored.id)[1])
        return None


def _kept_pair(target: Path, name: str) -> Lane | None:
    from forespeak.compare.lanes import Lane
    from forespeak.pairing.pairs import FOLDER, NamedPairs

    for pair in NamedPairs(folders().data / FOLDER).of_target(target):
        if pair.name.casefold() == name.casefold() and pair.is_usable:
            draft = None if pair.draft is None else pair.draft.path
            return Lane(pair.name, pair.settings.sources, draft, pair.settings.draft_length, pair_id=pair.id)
    return None


def _see_that_it_can_be_written(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise UserFacingError(
            f"The report could not be written to {path}.", "There is no such folder.", "Make it, or choose another."
        )


def _range_words(least: float, most: float) -> str:
    if most < 60:
        return "less than a minute"
    low, high = _minutes_words(least), _minutes_words(most)
    return f"about {high} min" if low == high else f"{low} to {high} min"


def _minutes_words(seconds: float) -> str:
    return f"{max(1, round(seconds / 60))}"


class _Watcher:
    """Shows progress on stderr."""

    def __init__(self, plan: Plan, line: terminal.ProgressLine) -> None:
        self._plan = plan
        self._line = line
        self._runs = RunsLine(line)

    def hear(self, happening: Happening) -> None:
        from forespeak.compare.runner import Loading, PairFailed, Running

        match happening:
            case Loading(progress=progress):
                self._line.show(progress)
            case PairFailed(_, problem):
                terminal.say(problem)
            case Running():
                self._show(happening)
            case _:
                pass

    def _show(self, running: Running) -> None:
        task, plan = running.task, self._plan
        if task.repetition is None:
            self._runs.show(running, "Warming up", "warming up")
        else:
            run = f"{task.prompt.category}, {plan.lane_at(task.where).name}"
            self._runs.show(running, f"Repeat {task.repetition + 1} of {plan.repeats}", run)


# What is told


def _tell(result: ComparisonResult, journal: Journal, options: argparse.Namespace, *, stopped: bool) -> int:
    from forespeak.compare.document import Heading, document_of
    from forespeak.compare.report import write_file
    from forespeak.compare.report_files import report_of
    from forespeak.compare.written import text_of

    if journal.problem is not None:
        terminal.say_error(journal.problem)
    stored = _store().get(journal.id)
    name = stored.name if stored is not None else options.name
    files: Sequence[Path] = options.report or ()
    models = _models(result.plan) if files or options.json else []
    write = partial(
        report_of, result=result, models=models, private=options.private, comparison_id=journal.id, name=name
    )
    if options.json:
        sys.stdout.write(write("json"))
    else:
        blocks = document_of(result, models, private=options.private, name=name)
        last = next(place for place, block in enumerate(blocks) if block == Heading(2, "To repeat it"))
        sys.stdout.write(text_of(blocks[:last]))
    for path in files:
        kind = path.suffix.lower().removeprefix(".")
        write_file(path, write(kind), for_spreadsheets=kind == "csv")
    results = result.results
    if not results.complete:
        terminal.say(f"Go on with: forespeak compare --resume {journal.id[:_SHOWN_ID]}")
    if not results.complete and stopped:
        return terminal.INTERRUPTED
    failed = results.problems or not any(run.failure is None for run in results.runs)
    return terminal.MENDABLE if failed else 0


def _models(plan: Plan) -> list[dict[str, Any]]:
    from forespeak.compare.model_files import model_records
    from forespeak.models.file_hashes import FileHashes

    terminal.say("Computing the hashes of the model files")
    return model_records(plan, FileHashes(users_folders().models).sha256)


def _list(options: argparse.Namespace) -> int:
    found = _store().search(" ".join(options.list))
    if options.json:
        import json

        record = [
            {
                "id": each.id,
                "name": each.name,
                "created_at": each.created_at.isoformat(),
                "state": each.state.value,
                "done": each.done,
                "planned": each.planned,
                "headline": each.headline,
            }
            for each in found
        ]
        sys.stdout.write(json.dumps(record, ensure_ascii=False, indent=1) + "\n")
        return 0
    for each in found:
        day = each.created_at.astimezone().strftime("%Y-%m-%d %H:%M")
        state = f"{each.state.value}, {each.done} of {each.planned} runs"
        sys.stdout.write(
            f"{each.id[:_SHOWN_ID]}  {day}  {each.name}\n          {state}. {each.headline}".rstrip() + "\n"
        )
    if not found:
        terminal.say("There is no comparison like that." if options.list else "No comparison is kept yet.")
    return 0
