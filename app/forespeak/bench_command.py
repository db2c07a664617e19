"""`forespeak bench`: the comparison of app/forespeak/compare on the command line."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from forespeak import terminal
from forespeak.compare.plan import Comparison, Pair, Prompt, Way
from forespeak.compare.prompts import CATEGORIES, MORE_CATEGORIES, suite
from forespeak.engines.engine import Engine, Progress, Start
from forespeak.errors import UserFacingError
from forespeak.load_arguments import add_load_arguments, load_settings
from forespeak.sampling_arguments import whole
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source

if TYPE_CHECKING:
    from forespeak.compare.report import Record
    from forespeak.compare.runner import Happening, Results, Running

STARTER, NONE, AUTO, ALL = "starter", "none", "auto", "all"
OWN_CATEGORY = "own"
_BAR_CELLS = 20

_EPILOG = """\
A --draft belongs to the targets named just before it: --target A --draft X Y --target B --draft Z measures A+X, A+Y
and B+Z. Sources are draft-model, prompt-lookup, ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod and ngram-cache;
a chain is written with plus signs: prompt-lookup+draft-model. Plain, the target alone, is always measured too."""


@dataclass(frozen=True, slots=True)
class Models:
    """How the command line makes an engine and finds the files that people name, `starter` included."""

    engine: Callable[[], Engine]
    target: Callable[[str, Engine, Callable[[Progress], None], Callable[[], bool]], Path]
    draft: Callable[[str], Path]


# The arguments


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser], models: Models) -> None:
    """Add the command to argparse's sub-commands."""
    parser = commands.add_parser(
        "bench",
        help="measure speculation against the target alone",
        description="Measure what speculation brings on this machine: each way of drafting against the target alone.",
        epilog=_EPILOG,
    )
    parser.set_defaults(command=partial(_bench, models), fail=parser.error, models=[])
    several = partial(parser.add_argument, nargs="+", action="extend")

    pairs = parser.add_argument_group("pairs").add_argument
    pairs("--target", nargs="+", action=_Models, metavar="GGUF", help="GGUF files, or starter (the default)")
    pairs("--draft", nargs="+", action=_Models, metavar="GGUF", help="draft models, starter, or none")
    add_load_arguments(pairs)

    several("--source", metavar="S", help="what drafts (default: the draft model; without one, prompt-lookup)")
    several("--length", metavar="K", help="tokens of a draft, or auto (default: auto 4)")
    several("--temperature", type=float, metavar="T", help="0 is greedy (default: 0 0.8)")
    several(
        "--category",
        choices=(*CATEGORIES, *MORE_CATEGORIES, ALL),
        metavar="C",
        help=f"kinds of prompts: {', '.join(CATEGORIES)} (the default); also {', '.join(MORE_CATEGORIES)}; or all",
    )
    several("--prompt", metavar="TEXT", help="a prompt of your own, or a text file with one")
    add = parser.add_argument
    add("--tokens", type=whole(2), default=128, metavar="N", help="the longest reply (default: 128)")
    add("--runs", type=whole(1), default=3, metavar="R", help="how often everything is measured (default: 3)")
    add("--warm-up", action=argparse.BooleanOptionalAction, default=True, help="short runs first that do not count")
    begin = parser.add_mutually_exclusive_group().add_argument
    begin("--fresh", action="store_true", help="each reply is a pair's very first: forget what was learned before it")
    begin("--keep-prompt", action="store_true", help="read a prompt once for all ways: quicker, compares decoding only")

    defaults = SamplingSettings()
    sampling = parser.add_argument_group("sampling").add_argument
    sampling("--seed", type=int, default=defaults.seed, metavar="N", help="of the first repetition; later ones add 1")
    sampling("--top-k", type=int, default=defaults.top_k, metavar="N", help="0 switches it off")
    sampling("--top-p", type=float, default=defaults.top_p, metavar="P", help="1 switches it off")
    sampling("--min-p", type=float, default=defaults.min_p, metavar="P", help="0 switches it off")
    sampling("--rule", choices=[rule.value for rule in Rule], default=Rule.COUPLED.value, help="default: coupled")

    out = parser.add_argument_group("results").add_argument
    out("--json", metavar="FILE", help="write every run's figures as JSON; - for standard output, without the table")
    out("--csv", metavar="FILE", help="write a line per run")


class _Models(argparse.Action):
    """Keeps targets and drafts in the order in which they were named."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(values, list)
        # A list of its own: the default belongs to the parser.
        namespace.models = [*namespace.models, *((self.dest, value) for value in values)]


def pair_names(named: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """(target, draft) for ("target" or "draft", name) in the order of the command line.

    A draft belongs to the targets named just before it. A target without one has the starter's draft if it is the
    starter, else none.
    """
    groups: list[tuple[list[str], list[str]]] = []
    for option, name in named:
        if option == "draft":
            if not groups:
                groups.append(([STARTER], []))
            groups[-1][1].append(name)
        elif groups and not groups[-1][1]:
            groups[-1][0].append(name)
        else:
            groups.append(([name], []))
    pairs = [
        (target, draft)
        for targets, drafts in groups or [([STARTER], [])]
        for target in targets
        for draft in drafts or [STARTER if target == STARTER else NONE]
    ]
    return list(dict.fromkeys(pairs))


def _sources(text: str, fail: Callable[[str], NoReturn]) -> tuple[Source, ...]:
    try:
        chain = tuple(Source(name) for name in text.split("+"))
    except ValueError:
        known = ", ".join(source.value for source in Source)
        fail(f"argument --source: {text!r} is not made of these, joined by +: {known}")
    if len(set(chain)) != len(chain):
        fail(f"argument --source: {text!r} names a source twice")
    if any(source.uses_model for source in chain[:-1]):
        fail(f"argument --source: in {text!r} nothing behind the draft model would ever be asked")
    return chain


def _ways(options: argparse.Namespace, pairs: Sequence[tuple[str, str]]) -> tuple[Way, ...]:
    from forespeak.engines.drafting import MAX_DRAFT_LENGTH

    fail: Callable[[str], NoReturn] = options.fail
    lengths: list[int | None] = []
    for text in options.length or [AUTO, "4"]:
        if text == AUTO:
            lengths.append(None)
        elif text.isdecimal() and int(text) <= MAX_DRAFT_LENGTH:
            lengths.append(int(text))
        else:
            fail(f"argument --length: {text!r} is neither auto nor a number from 0 to {MAX_DRAFT_LENGTH}")
    chains: list[tuple[Source, ...]] = [_sources(text, fail) for text in options.source or []]
    if not chains:
        # What each pair has: a draft model, or the text.
        with_model = [draft != NONE for _, draft in pairs]
        if any(with_model):
            chains.append((Source.DRAFT_MODEL,))
        if not all(with_model):
            chains.append((Source.PROMPT_LOOKUP,))
    # A length of 0 is plain, which is measured anyway.
    ways = [Way(chain, length) for chain in chains for length in lengths if length != 0]
    if not ways:
        fail("argument --length: with 0 alone there is nothing to compare with")
    return tuple(dict.fromkeys(ways))


def _prompts(options: argparse.Namespace) -> tuple[Prompt, ...]:
    """The user's own prompts, and those of the suite that were asked for; without either, the usual categories."""
    own = [
        Prompt(OWN_CATEGORY, f"prompt {number}", prompt_text(text))
        for number, text in enumerate(options.prompt or [], 1)
    ]
    wanted = options.category or ([] if own else CATEGORIES)
    return (*own, *(prompt for prompt in suite() if prompt.category in wanted or ALL in wanted))


def prompt_text(argument: str) -> str:
    """The argument itself, or what stands in the file that it names. Raises UserFacingError."""
    try:
        path = Path(argument).expanduser()
        text = path.read_text(encoding="utf-8") if path.is_file() else argument
        text.encode("utf-8")
    except UnicodeError as error:
        raise UserFacingError("The prompt cannot be read.", "It is not UTF-8 text.", "Convert it first.") from error
    except (OSError, RuntimeError, ValueError):
        text = argument  # too long for a name, or of characters that no name has
    if not text.strip():
        raise UserFacingError("The prompt is empty.", "", "Write something after --prompt.")
    return text


def _sampling(options: argparse.Namespace) -> SamplingSettings:
    fail: Callable[[str], NoReturn] = options.fail
    try:
        for temperature in options.temperature or ():
            SamplingSettings(temperature=temperature)
        return SamplingSettings(seed=options.seed, top_k=options.top_k, top_p=options.top_p, min_p=options.min_p)
    except ValueError as error:
        fail(f"--{error}".replace("_", "-"))


# forespeak bench


def _bench(models: Models, options: argparse.Namespace) -> int:
    from forespeak.compare.report import Record
    from forespeak.compare.runner import Runner

    sampling = _sampling(options)
    names = pair_names(options.models)
    ways, prompts = _ways(options, names), _prompts(options)
    engine = models.engine()
    try:
        with terminal.Interrupt() as interrupt, terminal.ProgressLine() as line:
            comparison = Comparison(
                pairs=_pairs(models, names, ways, engine, line, interrupt.asked),
                ways=ways,
                prompts=prompts,
                temperatures=tuple(dict.fromkeys(options.temperature or (0.0, 0.8))),
                tokens=options.tokens,
                runs=options.runs,
                sampling=sampling,
                rule=Rule(options.rule),
                start=Start.FRESH if options.fresh else Start.WARM if options.keep_prompt else Start.COLD,
                warm_up=options.warm_up,
                load_settings=load_settings(options),
            )
            see_that_pairs_fit(comparison, anyway=options.load_anyway)
            watcher = _Watcher(comparison, line, options.json, options.csv)
            runner = Runner(comparison, engine, watcher.hear, interrupt.asked)
            watcher.record = Record(runner.results)
            watcher.save()
            results = runner.run()
    finally:
        engine.close()
    code = _tell(results, watcher.record, as_json=options.json == "-")
    watcher.save()
    return code


def _pairs(
    models: Models,
    names: Sequence[tuple[str, str]],
    ways: Sequence[Way],
    engine: Engine,
    line: terminal.ProgressLine,
    cancelled: Callable[[], bool],
) -> tuple[Pair, ...]:
    """The files of all pairs, looked at before anything is measured. Raises UserFacingError."""
    from forespeak.models.vocabulary import cached_header
    from forespeak.pairing.compatibility import see_that_it_can_draft

    pairs = []
    for target_name, draft_name in names:
        target = models.target(target_name, engine, line.show, cancelled)
        draft = None if draft_name == NONE else models.draft(draft_name)
        if draft is not None:
            if not draft.is_dir():
                cached_header(draft)
            if any(way.needs_model for way in ways):
                see_that_it_can_draft(target, draft)
        elif all(way.needs_model for way in ways):
            raise UserFacingError(
                f"There is no draft model for {target.name}.",
                "All that is to be measured needs one.",
                "Name one with --draft, or another --source, such as prompt-lookup.",
            )
        pairs.append(Pair(target, draft))
    return tuple(dict.fromkeys(pairs))


def see_that_pairs_fit(comparison: Comparison, *, anyway: bool) -> None:
    """Each load is weighed before anything is measured, by one look at the machine. Raises UserFacingError."""
    from forespeak.pairing.load_plan import machine_now, see_that_it_fits

    machine = cache(machine_now)
    for pair in comparison.pairs:
        request = comparison.load_request(pair)
        see_that_it_fits(request, anyway=anyway, ask=terminal.asker(), machine=machine)


class _Watcher:
    """Shows progress, and keeps the files up to date after each visit."""

    record: Record

    def __init__(
        self, comparison: Comparison, line: terminal.ProgressLine, json_file: str | None, csv_file: str | None
    ) -> None:
        self._comparison = comparison
        self._line = line
        self._runs = RunsLine(line)
        self._json = Path(json_file).expanduser() if json_file and json_file != "-" else None
        self._csv = Path(csv_file).expanduser() if csv_file else None

    def hear(self, happening: Happening) -> None:
        from forespeak.compare.runner import Loading, Running, Visited

        match happening:
            case Loading(progress=progress):
                self._line.show(progress)
            case Running():
                self._show(happening)
            case Visited():
                # A disk that is full for a while must not cost what was measured; the last attempt counts.
                with contextlib.suppress(UserFacingError):
                    self.save()
            case _:
                pass

    def save(self) -> None:
        from forespeak.compare.report import write_file

        if self._json is not None:
            write_file(self._json, self.record.json_text())
        if self._csv is not None:
            write_file(self._csv, self.record.csv_text(), for_spreadsheets=True)

    def _show(self, running: Running) -> None:
        from forespeak.compare.table import way_label

        task, comparison = running.task, self._comparison
        part = what = "warm-up"
        if task.repetition is not None:
            part = f"repetition {task.repetition + 1} of {comparison.runs}"
            what = f"{task.prompt.category}, {way_label(task.way, comparison)}"
        self._runs.show(running, f"{comparison.pairs[task.pair].name}, {part}", what)


class RunsLine:
    """How far the runs of a comparison are: a bar on a terminal; a line for each repetition where lines stay."""

    def __init__(self, line: terminal.ProgressLine) -> None:
        self._line = line
        self._repetition = ""
        self._said = ""

    def show(self, running: Running, repetition: str, run: str) -> None:
        """`repetition` and `run` say in words which one goes on."""
        fraction = running.done / running.total if running.total else 0.0
        left = time_left(running.seconds_left)
        if not sys.stderr.isatty():
            if repetition != self._repetition:
                self._repetition, self._said = repetition, repetition + left
            self._line.show(Progress(fraction, self._said))
            return
        full = round(fraction * _BAR_CELLS)
        words = f"{'█' * full}{'░' * (_BAR_CELLS - full)} {run}{left}"
        # The line must not be longer than the terminal is wide, or it cannot be taken back.
        self._line.show(Progress(fraction, words[: max(10, shutil.get_terminal_size().columns - 8)]))


def time_left(seconds: float | None) -> str:
    """Such as `, about 4 min left`; nothing while nothing is known."""
    if seconds is None:
        return ""
    if seconds < 60:
        return ", less than a minute left"
    minutes = round(seconds / 60)
    return f", about {minutes} min left" if minutes < 60 else f", about {minutes // 60} h {minutes % 60} min left"


def _tell(results: Results, record: Record, *, as_json: bool) -> int:
    """The report, or the JSON in its place; the exit code."""
    from forespeak.compare.statistics import summarise
    from forespeak.compare.table import report

    if results.runs:
        text = report(results, summarise(results))
        if as_json:
            sys.stdout.write(record.json_text())
            terminal.say(text)
        else:
            sys.stdout.write(text)
    else:
        for pair, problem in results.problems.items():
            terminal.say(f"{results.comparison.pairs[pair].name} could not be measured: {problem}")
        if not results.complete:
            terminal.say("Stopped before anything was measured.")
    if not results.complete:
        return terminal.INTERRUPTED
    failed = results.problems or not any(run.failure is None for run in results.runs)
    return terminal.MENDABLE if failed else 0
