"""`forespeak parity`: whether speculation leaves the words as they are, shown on this machine and these files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from forespeak import terminal
from forespeak.bench_command import Models, time_left
from forespeak.engines.engine import Engine, LoadRequest, Progress
from forespeak.engines.parity_result import DifferenceKind, ParityCase, ParityRequest, ParityResult
from forespeak.errors import UserFacingError
from forespeak.load_arguments import add_load_arguments, load_settings
from forespeak.models.folders import folders
from forespeak.models.formats import model_stem
from forespeak.sampling_arguments import whole
from forespeak.speculation.trace import Source

if TYPE_CHECKING:
    from forespeak.engines.pair_knowledge import ParityCheck

STARTER, NONE = "starter", "none"
_TOKENS, _QUICK_TOKENS, _QUICK_PROMPTS = 48, 24, 4

_EPILOG = """\
The pair gets short caches of its own in the reproducible setting, so that its scores depend as little as possible on
how many tokens are evaluated at once. Exit code: 0 if all replies are the same or differ by shown numeric ties only,
1 if one differs by a fault, 2 if something is in the way that you can mend. The result is kept with the pair."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser], models: Models) -> None:
    """Add the command to argparse's sub-commands."""
    parser = commands.add_parser(
        "parity",
        help="check that speculation does not change the words",
        description="Write a dozen prompts with and without speculation, greedily and with one seed, and compare.",
        epilog=_EPILOG,
    )
    parser.set_defaults(command=partial(_parity, models), fail=parser.error)
    add = parser.add_argument
    add("--target", default=STARTER, metavar="GGUF", help="a GGUF file, or starter (the default)")
    add("--draft", action="append", metavar="GGUF", help="a draft model, starter, or none; repeatable: one pair each")
    add(
        "--source",
        metavar="S",
        help="what drafts, a chain joined by + (default: prompt-lookup+draft-model; without a draft prompt-lookup)",
    )
    add("--length", type=whole(1), default=4, metavar="K", help="the fixed draft length beside auto (default: 4)")
    add("--tokens", type=whole(2), metavar="N", help=f"tokens of a reply (default: {_TOKENS})")
    add("--quick", action="store_true", help=f"{_QUICK_PROMPTS} prompts instead of twelve, shorter replies")
    add_load_arguments(add, cache=False)
    add("--json", action="store_true", help="print what was found as JSON")


@dataclass(frozen=True, slots=True)
class _Checked:
    target: Path
    draft: Path | None
    result: ParityResult


def _parity(models: Models, options: argparse.Namespace) -> int:
    from forespeak.pairing.pair_memory import PairFiles, parity_record
    from forespeak.pairing.self_test import SelfTest

    names: Sequence[str] = options.draft or [STARTER if options.target == STARTER else NONE]
    chains = {name: _sources(options.source, name != NONE, options.fail) for name in names}
    check: ParityCheck = SelfTest(PairFiles(folders().pairs))
    engine = models.engine()
    found: list[_Checked] = []
    try:
        with terminal.Interrupt() as interrupt, terminal.ProgressLine() as line:
            target = models.target(options.target, engine, line.show, interrupt.asked)
            for name in dict.fromkeys(names):
                draft = None if name == NONE else models.draft(name)
                result = _check(engine, check, target, draft, chains[name], options, line, interrupt.asked)
                if result is not None:
                    found.append(_Checked(target, draft, result))
                if interrupt.asked():
                    break
    finally:
        engine.close()
    if options.json:
        records = [
            {"target": str(each.target), "draft": None if each.draft is None else str(each.draft)}
            | parity_record(each.result)
            for each in found
        ]
        terminal.print_json({"pairs": records})
    elif found:
        sys.stdout.write("\n\n".join(map(report, found)) + "\n")
    else:
        terminal.say("Stopped before anything was checked.")
    if any(each.result.faults for each in found):
        return terminal.FAULT
    return terminal.INTERRUPTED if interrupt.asked() else 0


def _sources(text: str | None, with_model: bool, fail: Callable[[str], NoReturn]) -> tuple[Source, ...]:
    if text is None:
        return (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL) if with_model else (Source.PROMPT_LOOKUP,)
    try:
        chain = tuple(dict.fromkeys(Source(name) for name in text.split("+")))
    except ValueError:
        known = ", ".join(source.value for source in Source)
        fail(f"argument --source: {text!r} is not made of these, joined by +: {known}")
    if not with_model and any(source.uses_model for source in chain):
        fail("argument --source: there is no draft model; name one with --draft")
    return chain


def _check(
    engine: Engine,
    check: ParityCheck,
    target: Path,
    draft: Path | None,
    sources: tuple[Source, ...],
    options: argparse.Namespace,
    line: terminal.ProgressLine,
    cancelled: Callable[[], bool],
) -> ParityResult | None:
    """Load a pair and check it; None if it was cancelled before. Raises UserFacingError."""
    from forespeak.engines.pair_knowledge import ReproducibleEngine
    from forespeak.models.memory import SuggestionKind
    from forespeak.pairing.compatibility import cannot_draft
    from forespeak.pairing.load_plan import see_that_it_fits
    from forespeak.pairing.parity import context_needed

    tokens = options.tokens or (_QUICK_TOKENS if options.quick else _TOKENS)
    request = ParityRequest(sources, tokens, options.length, _QUICK_PROMPTS if options.quick else None)
    # The context of a chat is not needed here; the check makes its own.
    settings = replace(load_settings(options), context_length=context_needed(request), reproducible=True)
    load = LoadRequest(target, draft, settings)
    # Context and precision are the check's own.
    helps = {SuggestionKind.NO_DRAFT: "--draft none"}
    see_that_it_fits(load, anyway=options.load_anyway, ask=terminal.asker(), options=helps)
    loaded = engine.load(load, line.show, cancelled)
    if loaded is None:
        return None
    if draft is not None and loaded.draft is None:
        raise cannot_draft(target, draft, loaded.draft_problem or "")
    if not isinstance(engine, ReproducibleEngine):
        raise UserFacingError("This engine cannot be checked.", "Its scores cannot be read.", "Use another engine.")
    return check(engine, request, _Remaining(line.show), cancelled)


class _Remaining:
    """Adds the time left to progress, on a terminal: elsewhere each line stays."""

    def __init__(self, show: Callable[[Progress], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._show = show
        self._clock = clock
        self._since: tuple[float, float] | None = None

    def __call__(self, progress: Progress) -> None:
        now, left = self._clock(), ""
        if self._since is None and progress.fraction > 0.0:
            # What came before the first prompt was done tells little about those behind it.
            self._since = (now, progress.fraction)
        elif self._since is not None and progress.fraction > self._since[1] and sys.stderr.isatty():
            started, begun = self._since
            left = time_left((now - started) / (progress.fraction - begun) * (1.0 - progress.fraction))
        self._show(Progress(progress.fraction, progress.doing + left))


def report(checked: _Checked) -> str:
    """What was found for one pair, as a table and in words."""
    from forespeak.pairing.parity_words import explanation, headline, remark

    result = checked.result
    pair = model_stem(checked.target) + ("" if checked.draft is None else f" with {model_stem(checked.draft)}")
    lines = [f"{pair}, drafting by {', then '.join(source.label for source in result.sources)}"]
    rows: dict[str, dict[float, str]] = {}
    for case in result.cases:
        rows.setdefault(case.prompt, {})[case.temperature] = _outcome(case)
    temperatures = sorted({case.temperature for case in result.cases})
    table = [["", *("greedy" if each == 0.0 else f"sampled, T {each:g}" for each in temperatures)]]
    table += [[prompt, *(cells.get(each, "") for each in temperatures)] for prompt, cells in rows.items()]
    lines += ["", *_aligned(table), "", " ".join(part for part in (headline(result), remark(result)) if part)]
    accepted = sum(case.accepted for case in result.cases)
    lines.append(
        f"{result.tested:,} drafted tokens were tested, {accepted:,} of them accepted, in {result.seconds:.0f} s. "
        f"Evaluating several tokens at once moves this target's scores by up to {result.moved:.2g}."
    )
    shown = [
        f"{case.prompt}, {'greedy' if case.temperature == 0.0 else 'sampled'}: {explanation(difference)}"
        for case in result.cases
        for difference in case.differences
    ]
    return "\n".join([*lines, *([""] if shown else []), *shown])


def _outcome(case: ParityCase) -> str:
    if case.equal:
        return "same"
    faults = [each for each in case.differences if each.kind is DifferenceKind.FAULT]
    first = (faults or list(case.differences))[0]
    return f"{first.kind.value} at token {first.place + 1}"


def _aligned(table: Sequence[Sequence[Any]]) -> list[str]:
    widths = [max(len(str(row[column])) for row in table) for column in range(len(table[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
