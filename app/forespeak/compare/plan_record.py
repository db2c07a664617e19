"""A plan as JSON values, and back: the file that `--plan` reads, the head of a journal, and a part of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.plan import Prompt
from forespeak.engines.engine import ChatMessage, LoadSettings, Role, Start, TextSourceSettings
from forespeak.engines.load_record import load_record, load_settings_from
from forespeak.errors import UserFacingError
from forespeak.speculation import settings as source_settings
from forespeak.speculation.json_values import Check, number, one_of, or_null, sampling_record, switch, text, whole
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source

Json = dict[str, Any]
OWN_PROMPTS = "own"
"""The category of prompts that come without one."""

_CHECKS: Mapping[str, Check] = {
    "repeats": whole(1),
    "tokens": whole(2),
    "budget_seconds": or_null(number),
    "warm_up": switch,
    "rule": one_of(Rule),
    "start": one_of(Start),
}
_LOAD_SETTINGS = tuple(each.name for each in fields(LoadSettings))
_OTHERS = ("target", "lanes", "prompts", "suites", "sampling", "text_sources")
_TEXT_SOURCES = {
    "prompt_lookup": source_settings.PromptLookupSettings,
    "ngram_simple": source_settings.NgramSimpleSettings,
    "ngram_map_k": source_settings.NgramMapSettings,
    "ngram_map_k4v": source_settings.NgramMapSettings,
    "ngram_mod": source_settings.NgramModSettings,
    "ngram_cache": source_settings.NgramCacheSettings,
}


def plan_record(plan: Plan, *, folders: bool = True, private: bool = True) -> Json:
    """All of a plan. `folders`: whole paths, else `model_names`; `private`: the words of private prompts, else null."""
    names = {path: str(path) for path in model_names(plan)} if folders else model_names(plan)

    def name_of(path: Path | None) -> str | None:
        return None if path is None else names[path]

    return {
        "target": name_of(plan.target),
        "lanes": [
            {
                "name": lane.name,
                "sources": [source.value for source in lane.sources],
                "draft": name_of(lane.draft),
                "draft_length": lane.draft_length,
                "temperature": lane.temperature,
                "pair_id": lane.pair_id,
            }
            for lane in plan.lanes
        ],
        "prompts": [_prompt_record(prompt, private or not prompt.private) for prompt in plan.prompts],
        "repeats": plan.repeats,
        "tokens": plan.tokens,
        "budget_seconds": plan.budget_seconds,
        "warm_up": plan.warm_up,
        "rule": plan.rule.value,
        "start": plan.start.value,
        **load_record(plan.load_settings),
        "sampling": sampling_record(plan.sampling),
        "text_sources": _listed(asdict(plan.text_sources)),
    }


def model_names(plan: Plan) -> dict[Path, str]:
    """The target and the drafts, each once, by what they are called where folders are not told.

    That is their files' names; the second of the same name is called `model.gguf (2)`.
    """
    paths = dict.fromkeys([plan.target, *(lane.draft for lane in plan.lanes if lane.draft is not None)])
    names: dict[Path, str] = {}
    for path in paths:
        again = sum(other.name == path.name for other in names)
        names[path] = f"{path.name} ({again + 1})" if again else path.name
    return names


def _prompt_record(prompt: Prompt, words: bool) -> Json:
    return {
        "category": prompt.category,
        "name": prompt.name,
        "text": prompt.text if words else None,
        "language": prompt.language,
        "answer": prompt.answer,
        "messages": [
            {"role": message.role.value, "content": message.content if words else None} for message in prompt.messages
        ],
        "private": prompt.private,
    }


def _listed(value: Any) -> Any:  # noqa: ANN401 -- JSON values
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


# And back


def plan_from(
    record: Mapping[str, Any],
    path_of: Callable[[str], Path] = Path,
    suite_of: Callable[[Sequence[str]], Sequence[Prompt]] | None = None,
) -> Plan:
    """The plan in `record`, which `plan_record` or a person made.

    What is left out is as in a new Plan. `path_of` finds the file of a name, `suite_of` the prompts of the suites
    that stand under `suites`. Raises UserFacingError for what is no plan, and whatever the two raise.
    """
    try:
        return _plan_from(record, path_of, suite_of)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"“{error.args[0]}” is missing" if isinstance(error, KeyError) else str(error)
        raise UserFacingError(
            "The plan of the comparison cannot be used.",
            f"{reason[:1].upper()}{reason[1:]}.",
            "Correct it, or make a new one.",
        ) from error


def _plan_from(
    record: Mapping[str, Any],
    path_of: Callable[[str], Path],
    suite_of: Callable[[Sequence[str]], Sequence[Prompt]] | None,
) -> Plan:
    _nothing_else(record, (*_CHECKS, *_LOAD_SETTINGS, *_OTHERS), "a plan")
    prompts = [_prompt_from(each, number) for number, each in enumerate(record.get("prompts", ()), 1)]
    suites = record.get("suites", ())
    if suites and suite_of is not None:
        prompts += suite_of(suites)
    values: Json = {name: check(record[name], f"“{name}”") for name, check in _CHECKS.items() if name in record}
    if "sampling" in record:
        values["sampling"] = sampling_from(record["sampling"])
    if "text_sources" in record:
        values["text_sources"] = _text_sources_from(record["text_sources"])
    return Plan(
        path_of(text(record["target"], "“target”")),
        tuple(_lane_from(each, path_of) for each in record["lanes"]),
        tuple(prompts),
        load_settings=load_settings_from(record),
        **values,
    )


def _lane_from(record: Mapping[str, Any], path_of: Callable[[str], Path]) -> Lane:
    _nothing_else(record, [each.name for each in fields(Lane)], "a lane")
    draft = record.get("draft")
    return Lane(
        name=text(record["name"], "a lane's name"),
        sources=tuple(one_of(Source)(name, "a source") for name in record.get("sources", ())),
        draft=None if draft is None else path_of(text(draft, "“draft”")),
        draft_length=or_null(whole(1))(record.get("draft_length"), "“draft_length”"),
        temperature=or_null(number)(record.get("temperature"), "“temperature”"),
        pair_id=record.get("pair_id"),
    )


def _prompt_from(record: Mapping[str, Any] | str, number: int) -> Prompt:
    if isinstance(record, str):
        return Prompt(OWN_PROMPTS, f"prompt {number}", text(record, "a prompt"), private=True)
    _nothing_else(record, [each.name for each in fields(Prompt)], "a prompt")
    if record["text"] is None:
        raise ValueError("the words of its prompts are private and not in it")
    return Prompt(
        category=str(record.get("category", OWN_PROMPTS)),
        name=str(record.get("name", f"prompt {number}")),
        text=text(record["text"], "a prompt"),
        language=str(record.get("language", "en")),
        answer=str(record.get("answer", "long")),
        messages=tuple(
            ChatMessage(one_of(Role)(message["role"], "a role"), text(message["content"], "a message"))
            for message in record.get("messages", ())
        ),
        private=bool(record.get("private", False)),
    )


def sampling_from(record: Mapping[str, Any]) -> SamplingSettings:
    """What `sampling_record` made. Raises ValueError or TypeError."""
    values = {key: _tupled(value) for key, value in record.items()}
    if "logit_bias" in values:
        values["logit_bias"] = tuple(
            (token, -math.inf if bias is None else bias) for token, bias in values["logit_bias"]
        )
    # A plan that a person writes is greedy unless it says otherwise.
    return SamplingSettings(**{"temperature": 0.0, **values})


def _text_sources_from(record: Mapping[str, Any]) -> TextSourceSettings:
    values: Json = {
        name: kind(**{key: _tupled(value) for key, value in record[name].items()})
        for name, kind in _TEXT_SOURCES.items()
        if name in record
    }
    return TextSourceSettings(**values, shared=bool(record.get("shared", False)))


def _tupled(value: Any) -> Any:  # noqa: ANN401 -- JSON values
    return tuple(_tupled(each) for each in value) if isinstance(value, list) else value


def _nothing_else(record: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """A slip of the pen is told, and not taken for a setting left out."""
    strangers = sorted(set(record) - set(known))
    if strangers:
        raise ValueError(f"{what} has no {strangers[0]!r}")
