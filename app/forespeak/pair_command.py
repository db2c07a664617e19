"""`forespeak pair`: what could draft for a target, with reasons, predictions, and on request a measured test."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forespeak import terminal
from forespeak.bench_command import Models
from forespeak.engines.engine import Engine, LoadRequest, Progress
from forespeak.errors import UserFacingError
from forespeak.load_arguments import add_load_arguments, load_settings
from forespeak.models.formats import model_stem
from forespeak.models.library_settings import users_folders
from forespeak.pairing.quick_prompts import KINDS_OF_WORK
from forespeak.sampling_arguments import whole

if TYPE_CHECKING:
    from forespeak.models.folders import Folders
    from forespeak.pairing.candidates import Candidate, Candidates
    from forespeak.pairing.hub_offers import HubOffers
    from forespeak.pairing.machine_speed import MachineSpeed
    from forespeak.pairing.offers import Offer
    from forespeak.pairing.quick_test import QuickResult, QuickTest
    from forespeak.pairing.ranking import Measurement

STARTER, NGRAM = "starter", "ngram"
MADE = ("Q4_0", "Q2_K")
"""As `pairing.making.MADE_FORMATS`, which is not imported for --help."""

_EPILOG = """\
Without candidates, the models on this computer and looking words up in the text are judged. Only headers are read: a
file without weights gets its verdict too. A prediction is shown with the range that should hold the truth four times
in five; --test replaces it by what is measured here, of the candidates that are named, or else of the best one.
--make writes the target's own weights in a coarser format into the models folder, and judges what came of it."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser], models: Models) -> None:
    """Add the command to argparse's sub-commands."""
    parser = commands.add_parser(
        "pair",
        help="which draft suits a target, with reasons and a measured answer",
        description="Judge what could draft for a target: whether it can, what it needs, and what it should bring.",
        epilog=_EPILOG,
    )
    parser.set_defaults(command=partial(_pair, models), fail=parser.error)
    add = parser.add_argument
    add("target", metavar="TARGET", help="a GGUF file, an MLX folder, or starter")
    add("candidates", nargs="*", metavar="CANDIDATE", help=f"models, {STARTER}, or {NGRAM}")
    add("--hub", action="store_true", help="also look for drafts on the Hub")
    add("--make", choices=MADE, metavar="FORMAT", help=f"first make a draft from the target: {' or '.join(MADE)}")
    add("--test", action="store_true", help="measure with three prompts, 20 seconds for each candidate")
    add("--kind", choices=KINDS_OF_WORK, default=KINDS_OF_WORK[0], help="your kind of work (default: code)")
    add("--seconds", type=whole(2), default=20, metavar="S", help="how long a test may take (default: 20)")
    add_load_arguments(add, reproducible=False)
    add("--json", action="store_true", help="print what was found as JSON")


class _Engines:
    """The engine, made when something needs one."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._engine: Engine | None = None

    def get(self) -> Engine:
        if self._engine is None:
            self._engine = self._make()
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line asks about. `named`: the models that it names; None: those of the library."""

    target: Path
    named: tuple[Path, ...] | None
    with_lookup: bool


def _pair(models: Models, options: argparse.Namespace) -> int:
    from forespeak.pairing.candidate_report import report_lines, report_record
    from forespeak.pairing.candidates import order_of, with_measurements
    from forespeak.pairing.offers import Place, offer_at

    engines = _Engines(models.engine)
    hub = None
    try:
        with terminal.Interrupt() as interrupt, terminal.ProgressLine() as line:
            asked = _asked(models, options, engines, line, interrupt.asked)
            target = offer_at(asked.target)
            if options.make is not None:
                made = _make(target, options.make, line, interrupt.asked)
                if made is None:
                    return terminal.INTERRUPTED
                asked = replace(asked, named=(*(asked.named or ()), made))
            offers = _offers(asked, target, interrupt.asked)
            if options.hub:
                hub = _from_hub(target, line, interrupt.asked)
                offers += hub.offers
            if interrupt.asked():
                return terminal.INTERRUPTED
            found = _found(asked, target, offers, hub, options)
            results: list[QuickResult] = []
            if options.test:
                chosen = [each for each in found.listed if each.excluded is None and _is_here(each, Place.HERE)]
                measured: list[tuple[Candidate, Measurement | None]] = []
                for candidate in chosen if asked.named is not None else chosen[:1]:
                    if interrupt.asked():
                        break
                    result = _test(_quick_test(asked.target, candidate, options), engines, options, line, interrupt)
                    results.append(result)
                    measured.append((candidate, result.measurement(_engine_name(engines.get()))))
                found = with_measurements(found, lambda each: next((new for of, new in measured if of is each), None))
                found = replace(found, listed=tuple(sorted(found.listed, key=order_of, reverse=True)))
    finally:
        engines.close()
    for problem in hub.problems if hub is not None else ():
        terminal.say(problem)
    if options.json:
        terminal.print_json(report_record(asked.target, target, found, results))
    else:
        sys.stdout.write("\n".join(report_lines(target, found, results)) + "\n")
    if interrupt.asked():
        return terminal.INTERRUPTED
    return 0 if found.usable else terminal.MENDABLE


# What is asked about


def _asked(
    models: Models,
    options: argparse.Namespace,
    engines: _Engines,
    line: terminal.ProgressLine,
    cancelled: Callable[[], bool],
) -> _Asked:
    """The files behind the names. Raises UserFacingError for a target that is not there."""
    if options.target == STARTER:
        target = models.target(STARTER, engines.get(), line.show, cancelled)
    else:
        target = Path(options.target).expanduser().absolute()
        if not target.exists():
            raise UserFacingError(
                f"There is no model at {target}.", "It may have been moved or deleted.", "Check the path."
            )
    names: list[str] = list(dict.fromkeys(options.candidates))
    if not names:
        return _Asked(target, None, with_lookup=True)
    paths = tuple(
        models.draft(name) if name == STARTER else Path(name).expanduser().absolute() for name in names if name != NGRAM
    )
    return _Asked(target, paths, NGRAM in names)


def _make(target: Offer, format_name: str, line: terminal.ProgressLine, cancelled: Callable[[], bool]) -> Path | None:
    """The draft made from the target, as it was found or is made now; None if cancelled. Raises UserFacingError."""
    from forespeak.compare.waiting import WaitingEngine
    from forespeak.engines.converting import ConvertingProcess
    from forespeak.engines.engine import NumberFormat
    from forespeak.models.vocabulary import cached_header
    from forespeak.pairing.compatibility import Judge
    from forespeak.pairing.making import NoDraftError, made_offers, make_draft

    places = users_folders()
    assert target.path is not None
    offers = made_offers(target, places.models)
    wanted = NumberFormat(format_name)
    offer = next((each for each in offers if each.making and each.making.number_format is wanted), None)
    offer = offer or next(iter(offers), None)
    if offer is None or offer.making is None:
        # Raises what is wrong with a file that cannot be read.
        cached_header(target.path)
        raise NoDraftError(target.name, "It holds no weights.")
    to = offer.making.destination
    if to.exists():
        terminal.say(f"{to.name} is there already.")
        return to
    if offer.problem is not None:
        raise NoDraftError(target.name, offer.problem)
    pair_check = Judge(places.cache / "verdicts").refusal
    engine = WaitingEngine(
        lambda listener: ConvertingProcess(listener, log_path=places.logs / "engine-make.log", pair_check=pair_check)
    )
    try:
        made = make_draft(offer.making, engine, line.show, cancelled)
    finally:
        engine.close()
    if made is not None:
        terminal.say(f"Made {made}.")
    return made


def _offers(asked: _Asked, target: Offer, cancelled: Callable[[], bool]) -> list[Offer]:
    """The models that are named, or else all of the library and what could be made from the target."""
    from forespeak.models.library import users_library
    from forespeak.pairing.making import made_offers
    from forespeak.pairing.offers import local_offer, offer_at

    if asked.named is not None:
        return [offer_at(path) for path in asked.named]
    library = users_library()
    found = [local_offer(item) for item in library.scan(cancelled=cancelled)]
    return [*found, *made_offers(target, library.own)]


def _from_hub(target: Offer, line: terminal.ProgressLine, cancelled: Callable[[], bool]) -> HubOffers:
    from forespeak.models.good_pairs import good_pairs
    from forespeak.models.hub import Hub
    from forespeak.models.hub_client import users_client
    from forespeak.pairing.hub_offers import hub_offers

    places = users_folders()
    hub = Hub(users_client(places.config))
    try:
        return hub_offers(
            hub,
            target,
            good_pairs(),
            places.cache / "headers",
            cancelled,
            lambda words: line.show(Progress(0.0, words)),
        )
    finally:
        hub.client.close()


def _found(
    asked: _Asked, target: Offer, offers: Sequence[Offer], hub: HubOffers | None, options: argparse.Namespace
) -> Candidates:
    from forespeak.pairing.candidates import Candidate, CandidateKind, find_candidates
    from forespeak.pairing.compatibility import Judge
    from forespeak.pairing.knowledge import local_knowledge
    from forespeak.pairing.load_plan import machine_now, memory_settings
    from forespeak.pairing.pair_memory import PairFiles
    from forespeak.pairing.pairs import FOLDER, NamedPairs
    from forespeak.pairing.usual_acceptance import KINDS
    from forespeak.speculation.trace import Source

    places = users_folders()
    machine = machine_now()
    request = LoadRequest(asked.target, settings=load_settings(options))
    judge = Judge(places.cache / "verdicts")
    knowledge = local_knowledge(
        asked.target,
        judge,
        NamedPairs(places.data / FOLDER),
        PairFiles(places.pairs),
        memory_settings(request, machine),
        machine,
        (lambda _: None) if hub is None else hub.member,
    )
    kinds = (options.kind,) if options.test else KINDS
    found = find_candidates(target, offers, _machine_speed(places, target), knowledge, kinds)
    listed = list(found.listed)
    if asked.named is not None:
        wanted = {CandidateKind.DRAFT_MODEL, CandidateKind.DRAFT_HEAD}
        if asked.with_lookup:
            wanted.add(CandidateKind.LOOKUP)
        listed = [each for each in listed if each.kind in wanted]
        if any(path.absolute() == asked.target.absolute() for path in asked.named):
            itself = "It is the target itself: each of its tokens would cost as much as one of the target's own."
            verdict = judge.verdict(asked.target, asked.target)
            sources = (Source.DRAFT_MODEL,)
            listed.append(Candidate(CandidateKind.DRAFT_MODEL, target.name, target, sources, verdict, excluded=itself))
    return replace(found, listed=tuple(listed))


def _machine_speed(places: Folders, target: Offer) -> MachineSpeed:
    from forespeak.pairing.machine_speed import machine_speed
    from forespeak.pairing.pair_memory import PairFiles

    return machine_speed(PairFiles(places.pairs).everything(), places.data, format_=target.format)


# The test


def _is_here(candidate: Candidate, here: object) -> bool:
    return candidate.offer is None or candidate.offer.place is here


def _quick_test(target: Path, candidate: Candidate, options: argparse.Namespace) -> QuickTest:
    from forespeak.pairing.quick_test import QuickTest

    draft = candidate.offer.path if candidate.offer is not None else None
    return QuickTest(
        target,
        draft,
        candidate.sources,
        options.kind,
        seconds=float(options.seconds),
        load_settings=load_settings(options),
    )


def _test(
    test: QuickTest,
    engines: _Engines,
    options: argparse.Namespace,
    line: terminal.ProgressLine,
    interrupt: terminal.Interrupt,
) -> QuickResult:
    """Raises UserFacingError if the pair cannot be loaded."""
    from forespeak.pairing.load_plan import see_that_it_fits
    from forespeak.pairing.quick_test import Done, Writing, run

    see_that_it_fits(test.load_request, anyway=options.load_anyway, ask=terminal.asker())
    name = "looked-up text" if test.draft is None else model_stem(test.draft)
    for event in run(test, engines.get(), interrupt.asked, lambda each: line.show(each.progress)):
        if isinstance(event, Writing):
            doing = f"Testing {name}: warm-up"
            if event.prompt is not None:
                way = "with drafts" if event.speculating else "plain"
                doing = f"Testing {name}: {event.prompt.name}, {way}"
            rate = event.tokens_per_second
            if rate is not None and sys.stderr.isatty():
                doing += f", {rate:.1f} tokens/s"
            line.show(Progress(event.fraction, doing))
        elif isinstance(event, Done):
            return event.result
    raise RuntimeError("a test ended without a result")


def _engine_name(engine: Engine) -> str:
    name = getattr(engine, "engine", "")
    return name if isinstance(name, str) else ""
