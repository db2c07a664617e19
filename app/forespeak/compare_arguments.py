"""What `forespeak compare` is asked for on the command line: lanes, prompts and settings, as a plan."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forespeak.bench_command import prompt_text
from forespeak.compare.lanes import OFF_NAME, Lane, Plan
from forespeak.compare.plan import Prompt
from forespeak.compare.plan_record import OWN_PROMPTS, plan_from
from forespeak.compare.prompts import CHINESE, ENGLISH, LONG, SHORT, SUITES, suite_prompts
from forespeak.engines.engine import Start
from forespeak.errors import UserFacingError
from forespeak.load_arguments import add_load_arguments, load_settings
from forespeak.models.formats import model_stem
from forespeak.sampling_arguments import whole
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source

STARTER, OFF, AUTO = "starter", "off", "auto"
DEFAULT_SUITES = ("coding", "qa", "summarization", "writing", "rewrite")

EPILOG = f"""\
A lane is off (the target alone, which is always measured), sources joined by + (prompt-lookup), a draft model's file
or name, or the name of a kept pair. Settings follow behind commas: --lane small.gguf,length=4
--lane off,temperature=0.8 --lane prompt-lookup+draft-model,draft=small.gguf,length=auto,name=both.
Suites are {", ".join(SUITES)}.
Ctrl+C keeps what is done; --resume goes on."""

_SETTING = re.compile(r",(?=(?:draft|length|temperature|name)=)")

DraftOf = Callable[[str], Path]
PairOf = Callable[[str], Lane | None]
"""The lane of a kept pair, by its name; None for a name that no pair of the target has."""


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """All that makes a plan."""
    models = parser.add_argument_group("what is compared").add_argument
    models("--target", default=STARTER, metavar="GGUF", help="a GGUF file, a name that models list shows, or starter")
    models("--lane", action="append", metavar="LANE", help="a way to answer, once for each (see below)")
    models("--suite", nargs="+", action="extend", choices=SUITES, metavar="S", help="kinds of work (see below)")
    models("--each", type=whole(1), metavar="N", help="at most so many prompts of a suite (default: all)")
    models("--language", choices=(ENGLISH, CHINESE), help="only the suites' prompts in this language")
    models("--answer", choices=(SHORT, LONG), help="only the suites' prompts that ask for such answers")
    models("--prompt", nargs="+", action="extend", metavar="TEXT", help="prompts of your own, or text files")

    settings = parser.add_argument_group("settings").add_argument
    settings("--repeats", type=whole(1), default=3, metavar="R", help="how often each prompt is answered (default: 3)")
    settings("--tokens", type=whole(2), default=128, metavar="N", help="the longest reply (default: 128)")
    settings("--budget", type=_minutes, metavar="MIN", help="end after so many minutes with what is done by then")
    settings("--seed", type=int, default=0, metavar="N", help="of the first repeat; later ones add 1")
    settings("--temperature", type=float, default=0.0, metavar="T", help="0, greedy, is the default")
    settings("--rule", choices=[rule.value for rule in Rule], default=Rule.COUPLED.value, help="default: coupled")
    add_load_arguments(settings)
    settings("--warm-up", action=argparse.BooleanOptionalAction, default=True, help="short runs first")
    begin = parser.add_mutually_exclusive_group().add_argument
    begin("--fresh", action="store_true", help="each reply is a pair's very first")
    begin("--keep-prompt", action="store_true", help="read a prompt once for all lanes: compares decoding only")


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes")
    return value


def plan_of(options: argparse.Namespace, target: Path, draft_of: DraftOf, pair_of: PairOf) -> Plan:
    """The plan that the options stand for. Raises UserFacingError."""
    try:
        plan = Plan(
            target,
            _lanes(options, draft_of, pair_of),
            prompts_of(options),
            repeats=options.repeats,
            tokens=options.tokens,
            budget_seconds=None if options.budget is None else options.budget * 60.0,
            sampling=SamplingSettings(temperature=options.temperature, seed=options.seed),
            rule=Rule(options.rule),
            start=Start.FRESH if options.fresh else Start.WARM if options.keep_prompt else Start.COLD,
            warm_up=options.warm_up,
            load_settings=load_settings(options),
        )
    except ValueError as error:
        raise UserFacingError("This cannot be compared.", f"{str(error)[:1].upper()}{str(error)[1:]}.", "") from error
    return plan


def prompts_of(options: argparse.Namespace) -> tuple[Prompt, ...]:
    """The user's own prompts, and those of the suites asked for; without either, one of each of a few suites."""
    own = tuple(
        Prompt(OWN_PROMPTS, f"prompt {number}", prompt_text(text), private=True)
        for number, text in enumerate(options.prompt or [], 1)
    )
    if own and not options.suite:
        return own
    suites = suite_prompts(
        options.suite or DEFAULT_SUITES,
        languages=[options.language] if options.language else (),
        answers=[options.answer] if options.answer else (),
        each=options.each or (None if options.suite else 1),
    )
    if not suites:
        raise UserFacingError(
            "There is no such prompt.",
            "These suites have none in this language and of this length.",
            "Leave out --language or --answer.",
        )
    return (*own, *suites)


def _lanes(options: argparse.Namespace, draft_of: DraftOf, pair_of: PairOf) -> tuple[Lane, ...]:
    texts: Sequence[str] = options.lane or [OFF, STARTER if options.target == STARTER else Source.PROMPT_LOOKUP.value]
    lanes: list[Lane] = []
    for text in texts:
        lane = lane_of(text, draft_of, pair_of)
        taken = {each.name for each in lanes}
        number = 2
        name = lane.name
        while lane.name in taken:
            lane, number = replace(lane, name=f"{name} #{number}"), number + 1
        lanes.append(lane)
    return tuple(lanes)


def lane_of(text: str, draft_of: DraftOf, pair_of: PairOf) -> Lane:
    """The lane that `--lane` describes. Raises UserFacingError."""
    what, *rest = _SETTING.split(text)
    settings = dict(each.split("=", 1) for each in rest)
    kept = pair_of(what)
    if what.casefold() == OFF:
        lane = Lane(OFF_NAME)
    elif kept is not None:
        lane = kept
    else:
        lane = _drafting(what, settings.pop("draft", None), draft_of)
    if "draft" in settings:
        raise _wrong(text, "its draft is named twice, or it has none")
    if "length" in settings:
        lane = replace(lane, draft_length=_length(text, settings["length"]), name=lane.name)
    if "temperature" in settings:
        lane = replace(lane, temperature=_temperature(text, settings["temperature"]))
    name = settings.get("name", "").strip() or (lane.name if kept is not None else _usual_name(lane))
    return replace(lane, name=name)


def _drafting(what: str, draft: str | None, draft_of: DraftOf) -> Lane:
    known = {source.value: source for source in Source}
    names = what.split("+")
    if all(name in known for name in names):
        sources = tuple(known[name] for name in names)
        if len(set(sources)) != len(sources):
            raise _wrong(what, "it names a source twice")
        if any(source.uses_model for source in sources[:-1]):
            raise _wrong(what, "nothing behind the draft model would ever be asked")
        if any(source.uses_model for source in sources) != (draft is not None):
            raise _wrong(what, "draft-model needs draft=FILE, and only it does")
        return Lane(what, sources, None if draft is None else draft_of(draft))
    return Lane(what, (Source.DRAFT_MODEL,), draft_of(what))


def _length(text: str, value: str) -> int | None:
    from forespeak.engines.drafting import MAX_DRAFT_LENGTH

    if value == AUTO:
        return None
    if not value.isdecimal() or not 1 <= int(value) <= MAX_DRAFT_LENGTH:
        raise _wrong(text, f"its length must be {AUTO} or a number from 1 to {MAX_DRAFT_LENGTH}")
    return int(value)


def _temperature(text: str, value: str) -> float:
    try:
        return SamplingSettings(temperature=float(value)).temperature
    except ValueError as error:
        raise _wrong(text, f"its temperature {value!r} is none") from error


def _usual_name(lane: Lane) -> str:
    """Such as `small, 4 tokens, temperature 0.8`."""
    if lane.is_off:
        parts = [OFF_NAME]
    else:
        chain = [source.label for source in lane.sources if not source.uses_model]
        parts = [" + ".join([*chain, *([model_stem(lane.draft)] if lane.draft else [])])]
        parts += [] if lane.draft_length is None else [f"{lane.draft_length} tokens"]
    return ", ".join([*parts, *([] if lane.temperature is None else [f"temperature {lane.temperature:g}"])])


def _wrong(text: str, reason: str) -> UserFacingError:
    return UserFacingError(f"The lane {text!r} makes no sense.", f"{reason[:1].upper()}{reason[1:]}.", "Correct it.")


# Plans in files


def read_record(path: Path) -> dict[str, Any]:
    """A plan's or a report's file, JSON or TOML. Raises UserFacingError."""
    try:
        text = path.read_text(encoding="utf-8")
        record = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except OSError as error:
        raise UserFacingError(
            f"“{path.name}” cannot be read.", f"{error.strerror or error}.", "Check the path."
        ) from error
    except ValueError as error:
        raise UserFacingError(f"“{path.name}” cannot be read.", f"{error}.", "It must be JSON, or TOML.") from error
    if not isinstance(record, dict):
        raise UserFacingError(f"“{path.name}” is no plan.", "", "Look at what --json writes under plan.")
    return record


def plan_file(path: Path, target_of: DraftOf) -> Plan:
    """The plan in a file; models are named relative to it. `target_of` finds `starter`. Raises UserFacingError."""
    record = read_record(path)
    folder = path.absolute().parent

    def path_of(name: str) -> Path:
        return target_of(name) if name == STARTER else folder / Path(name).expanduser()

    return plan_from(record.get("plan", record), path_of, suite_prompts)
