"""The command line's arguments for what drafts: a model, sources that look the text up, or a chain of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NoReturn

from forespeak.engines.engine import GenerationRequest, TextSourceSettings
from forespeak.speculation.trace import Source

STARTER, NGRAM, NONE = "starter", "ngram", "none"

_TEXT_SOURCES = {source.value: source for source in Source if not source.uses_model}
_SHARED, _SWITCH = "shared", {"on": True, "off": False}


@dataclass(frozen=True, slots=True)
class Drafts:
    """What is to draft: the sources in the order in which they are asked, and the draft model's name if it is one."""

    sources: tuple[Source, ...]
    model: str | None = None


def add_draft_argument(add: Callable[..., argparse.Action]) -> None:
    add(
        "--draft",
        action="append",
        metavar="GGUF",
        help="a GGUF file, starter, ngram (looks the next tokens up in the text; also "
        f"{', '.join(name for name in _TEXT_SOURCES if name.startswith(NGRAM))}) or none; repeated, a chain: the text "
        "is looked up first, a model comes last; by default starter for the starter model and ngram for others",
    )


def add_source_argument(add: Callable[..., argparse.Action]) -> None:
    add(
        "--source-setting",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="a setting of a source that looks the text up, such as ngram-simple.size_n=8; shared=on lets a new chat "
        "use what others have taught; repeatable",
    )


def drafts_of(options: argparse.Namespace) -> Drafts:
    """What --draft says, or stands for where it is not given. Ends the program if that makes no sense."""
    fail: Callable[[str], NoReturn] = options.fail
    names: list[str] = list(dict.fromkeys(options.draft or [STARTER if options.target == STARTER else NGRAM]))
    if NONE in names:
        if len(names) > 1:
            fail(f"argument --draft: {NONE} stands alone")
        return Drafts(())
    looked_up: set[Source] = set()
    models: list[str] = []
    for name in names:
        source = Source.PROMPT_LOOKUP if name == NGRAM else _TEXT_SOURCES.get(name)
        if source is not None:
            looked_up.add(source)
        elif name.startswith(NGRAM) and not Path(name).exists():
            fail(f"argument --draft: there is no source {name!r}; there are {', '.join([NGRAM, *_TEXT_SOURCES])}")
        else:
            models.append(name)
    if len(models) > 1:
        fail(f"argument --draft: one model at most can draft, and {' and '.join(models)} are {len(models)}")
    sources = tuple(source for source in Source if source in looked_up)
    return Drafts((*sources, Source.DRAFT_MODEL), models[0]) if models else Drafts(sources)


def with_text_sources(request: GenerationRequest, options: argparse.Namespace) -> GenerationRequest:
    """The request with what --source-setting says. Ends the program if that makes no sense."""
    fail: Callable[[str], NoReturn] = options.fail
    settings = TextSourceSettings()
    wanted: dict[str, dict[str, int | tuple[int, ...]]] = {}
    try:
        for text in options.source_setting:
            name, _, value = text.partition("=")
            if name == _SHARED:
                settings = replace(settings, shared=_switch(value))
                continue
            source, field, number = _setting(settings, name, value)
            wanted.setdefault(source, {})[field] = number
        for source, values in wanted.items():
            # All of a source at once: they may only be right together.
            kept = source.replace("-", "_")
            try:
                settings = replace(settings, **{kept: replace(getattr(settings, kept), **values)})
            except ValueError as error:
                raise ValueError(f"{source}: {error}") from error
    except ValueError as error:
        fail(f"argument --source-setting: {error}")
    return replace(request, text_sources=settings)


def _switch(value: str) -> bool:
    if value not in _SWITCH:
        raise ValueError(f"{_SHARED} is on or off, not {value!r}")
    return _SWITCH[value]


def _setting(settings: TextSourceSettings, name: str, value: str) -> tuple[str, str, int | tuple[int, ...]]:
    """The source, its setting and the value. Raises ValueError."""
    source, _, field = name.partition(".")
    if source not in _TEXT_SOURCES:
        raise ValueError(f"there is no source {source!r}; there are {', '.join(_TEXT_SOURCES)}")
    own = getattr(settings, source.replace("-", "_"))
    known = [item.name for item in fields(own)]
    field = field.replace("-", "_")
    if field not in known:
        raise ValueError(f"{source} has no setting {field!r}; it has {', '.join(known)}")
    several = isinstance(getattr(own, field), tuple)
    try:
        return source, field, tuple(map(int, value.split(","))) if several else int(value)
    except ValueError:
        kind = "whole numbers with commas between them" if several else "a whole number"
        raise ValueError(f"{source}.{field} is {kind}, not {value!r}") from None
