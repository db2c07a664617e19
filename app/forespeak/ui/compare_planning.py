"""From what was set up to a plan, what a lane can be, and how long it will take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from forespeak.compare.estimate import PlanCosts, plan_time
from forespeak.compare.lanes import Plan
from forespeak.compare.plan import Prompt
from forespeak.compare.store import planned_runs
from forespeak.engines.engine import ChatMessage, Role
from forespeak.errors import UserFacingError
from forespeak.models.formats import model_stem
from forespeak.pairing.named_pair import NamedPair
from forespeak.speculation.trace import Source
from forespeak.ui.compare_conditions import Conditions
from forespeak.ui.compare_lanes_edit import LaneOption
from forespeak.ui.compare_prompt_files import OWN
from forespeak.ui.compare_values import Forecast, PromptChoice, PromptKind, Setup
from forespeak.ui.draft_sources import NAMES, in_order
from forespeak.ui.preferences import Preferences

ReadPrompts = Callable[[Path], Sequence[Prompt]]


def _tr(words: str) -> str:
    return QCoreApplication.translate("ComparePlanning", words)


def plan_of(setup: Setup, target: Path, conditions: Conditions, suite: Sequence[Prompt], read: ReadPrompts) -> Plan:
    """Reads the file of prompts, if one was chosen. Raises UserFacingError."""
    prompts = prompts_of(setup.prompts, suite, read)
    if not prompts:
        raise UserFacingError("There is nothing to answer.", "No prompt was found.", "Choose other prompts.")
    return Plan(
        target=target,
        lanes=setup.lanes,
        prompts=tuple(prompts),
        repeats=setup.repeats,
        tokens=setup.tokens,
        budget_seconds=None if setup.minutes is None else 60.0 * setup.minutes,
        sampling=replace(conditions.sampling, temperature=setup.temperature),
        rule=conditions.rule,
        start=conditions.start,
        warm_up=conditions.warm_up,
        load_settings=conditions.load_settings,
        text_sources=conditions.text_sources,
    )


def prompts_of(choice: PromptChoice, suite: Sequence[Prompt], read: ReadPrompts) -> Sequence[Prompt]:
    match choice.kind:
        case PromptKind.CHAT:
            return (Prompt(OWN, _tr("from the chat"), choice.text, messages=choice.messages, private=True),)
        case PromptKind.TYPED:
            return (Prompt(OWN, _tr("typed"), choice.text, private=True),)
        case PromptKind.FILE:
            return () if choice.file is None else read(choice.file)
        case PromptKind.SUITES:
            return [
                prompt
                for category, count in choice.suites
                for prompt in [prompt for prompt in suite if prompt.category == category][:count]
            ]


def forecast_of(plan: Plan, rate: float | None, basis: str) -> Forecast:
    """`rate`: plain tokens per second of the target on this machine, None if it is not known."""
    runs = planned_runs(plan)
    if not rate:
        return Forecast(runs)
    time = plan_time(plan, PlanCosts(rate))
    return Forecast(runs, time.least, time.most, basis)


def history_until(system: str, messages: Iterable[tuple[Role, str]]) -> tuple[ChatMessage, ...]:
    """A chat up to the last thing its user wrote; nothing if there is none."""
    from forespeak.ui.chat_records import history_of

    kept = list(messages)
    while kept and kept[-1][0] is not Role.USER:
        kept.pop()
    return history_of(system, kept) if kept else ()


def lane_options(
    preferences: Preferences,
    has_draft: bool,
    pairs: Sequence[NamedPair],
    drafts: Sequence[tuple[Path, str]],
) -> tuple[LaneOption, ...]:
    """What a lane can be: as the chat drafts now, the kept pairs of the target, draft models, sources."""
    names = dict(drafts)
    draft = preferences.draft if has_draft else None
    sources = preferences.drafting_if(has_draft)
    options = [_option(sources, draft, preferences.draft_length, names, "chat")]
    for pair in pairs:
        path = None if pair.draft is None else pair.draft.path
        chosen = pair.settings.sources if path is not None else _without_model(pair.settings.sources)
        options.append(LaneOption(pair.name, chosen, path, pair.settings.draft_length, "pairs", pair.id))
    options += [_option((Source.DRAFT_MODEL,), path, None, names, "drafts") for path, _ in drafts]
    options += [
        LaneOption(NAMES[source], (source,), None, None, "sources") for source in Source if not source.uses_model
    ]
    seen: set[tuple[object, ...]] = set()
    kept = []
    for option in options:
        way = (option.sources, option.draft, option.draft_length, option.pair_id)
        if option.sources and way not in seen:
            seen.add(way)
            kept.append(option)
    return tuple(kept)


def _without_model(sources: Sequence[Source]) -> tuple[Source, ...]:
    return tuple(source for source in sources if not source.uses_model) or (Source.PROMPT_LOOKUP,)


def _option(
    sources: Sequence[Source], draft: Path | None, length: int | None, names: dict[Path, str], group: str
) -> LaneOption:
    ordered = in_order(sources)
    parts = [_part(source, draft, names, alone=len(ordered) == 1) for source in ordered]
    needs = any(source.uses_model for source in ordered)
    return LaneOption(" + ".join(parts), ordered, draft if needs else None, length, group)


def _part(source: Source, draft: Path | None, names: dict[Path, str], *, alone: bool) -> str:
    if source.uses_model and draft is not None:
        return names.get(draft, model_stem(draft))
    return _tr("Lookup") if source is Source.PROMPT_LOOKUP and not alone else NAMES[source]
