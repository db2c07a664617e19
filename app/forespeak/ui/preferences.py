"""What the user chose, kept in one JSON file between runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

from forespeak.engines.engine import LoadRequest, LoadSettings, TextSourceSettings
from forespeak.speculation.json_values import sampling_record
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source
from forespeak.ui.draft_sources import in_order
from forespeak.ui.kept_load_settings import entries_of, load_settings_of
from forespeak.ui.sampling_record import sampling_from
from forespeak.ui.structured_output import StructuredOutput
from forespeak.whole_file import write_whole

RECENT_MODELS = 8
LONGEST_DRAFT = 32


class Appearance(Enum):
    """Which theme the window wears."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Preferences:
    """Everything that survives a restart, chats apart.

    `target` None: nothing was chosen yet. `sources` are what speculation is to use while it is switched on, `drafting`
    what it can use of them, `text_sources` the settings of those that look the text up; `speculate` is the switch.
    `draft_length` None: as many tokens as pay. `random_seed`: every reply gets a new seed and `sampling.seed` is not
    used. `max_tokens` None: until the context is full.
    `import_way` None: it is asked each time.
    """

    appearance: Appearance = Appearance.SYSTEM
    colour_blind: bool = False
    marks: str = "subtle"
    target: Path | None = None
    draft: Path | None = None
    recent: tuple[Path, ...] = ()
    speculate: bool = True
    # Looking the text up costs next to nothing, and where the text repeats it saves the draft model's time too.
    sources: tuple[Source, ...] = (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
    text_sources: TextSourceSettings = field(default_factory=TextSourceSettings)
    rule: Rule = Rule.COUPLED
    draft_length: int | None = None
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    random_seed: bool = True
    output: StructuredOutput = field(default_factory=StructuredOutput)
    max_tokens: int | None = None
    system_prompt: str = ""
    load_settings: LoadSettings = field(default_factory=LoadSettings)
    sidebar_open: bool = True
    panel_open: bool = True
    window_size: tuple[int, int] = (1280, 820)
    last_chat: int | None = None
    download_limit: int | None = None
    """The most bytes a second that all downloads take together; None is no limit."""
    page: str = "chat"
    import_way: str | None = None

    @property
    def drafting(self) -> tuple[Source, ...]:
        """What drafts while speculation is on, in the order in which it is asked."""
        return self.drafting_if(self.draft is not None)

    def drafting_if(self, has_model: bool) -> tuple[Source, ...]:
        """The same with and without a draft model that serves.

        Where nothing is left without one, prompt lookup stands in: it needs no download.
        """
        sources = in_order(self.sources)
        if has_model:
            return sources
        return tuple(source for source in sources if not source.uses_model) or (Source.PROMPT_LOOKUP,)

    def load_request(self, target: Path, draft: Path | None = None) -> LoadRequest:
        """How a pair is to be loaded."""
        return LoadRequest(target, draft, self.load_settings)

    def with_recent(self, path: Path) -> Preferences:
        """`path` becomes the newest of the recently used models."""
        return replace(self, recent=(path, *(other for other in self.recent if other != path))[:RECENT_MODELS])


class PreferencesFile:
    """Reads and writes Preferences. A damaged or foreign value falls back to its default, field by field."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Preferences:
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Preferences()
        if not isinstance(stored, dict):
            return Preferences()
        if "sources" not in stored and isinstance(stored.get("source"), str):
            # Of a time when there was one source only.
            stored["sources"] = [stored["source"]]
        known: dict[str, Any] = {"load_settings": load_settings_of(stored)}
        for name, parse in _PARSERS.items():
            if name in stored:
                try:
                    known[name] = parse(stored[name])
                except (ValueError, TypeError, AttributeError):
                    continue
        return Preferences(**known)

    def write(self, preferences: Preferences) -> None:
        """Replace the file as a whole, so that a crash never leaves half of one. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        values = {item.name: getattr(preferences, item.name) for item in fields(preferences)}
        plain = entries_of(values.pop("load_settings"))
        plain |= {name: _plain(value) for name, value in values.items()}
        write_whole(self._path, json.dumps(plain, indent=2, ensure_ascii=False))


def _plain(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case Path():
            return os.fspath(value)
        case tuple():
            return [_plain(item) for item in value]
        case TextSourceSettings():
            return asdict(value)
        case SamplingSettings():
            return sampling_record(value)
        case StructuredOutput():
            return value.plain()
        case _:
            return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(low: int, high: int = 2**63) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError
        if not low <= value <= high:
            raise ValueError
        return value

    return parse


def _optional(parse: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: None if value is None else parse(value)


def _path(value: object) -> Path:
    return Path(_text(value))


def _paths(value: object) -> tuple[Path, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_path(item) for item in value[:RECENT_MODELS])


def _import_way(value: object) -> str:
    if value not in {"copy", "move", "link"}:
        raise ValueError
    return str(value)


def _sources(value: object) -> tuple[Source, ...]:
    """Those that are known: a newer version may have others."""
    if not isinstance(value, list):
        raise TypeError
    names = {source.value for source in Source}
    sources = in_order(Source(item) for item in value if item in names)
    if not sources:
        raise ValueError
    return sources


def _text_sources(value: object) -> TextSourceSettings:
    """Each source by itself: one value out of range must not reset the other sources."""
    if not isinstance(value, dict):
        raise TypeError
    settings = TextSourceSettings()
    if isinstance(value.get("shared"), bool):
        settings = replace(settings, shared=value["shared"])
    for item in fields(TextSourceSettings):
        own, stored = getattr(settings, item.name), value.get(item.name)
        if not isinstance(stored, dict):
            continue
        known = {name: stored[name] for name in own.__dataclass_fields__ if name in stored}
        try:
            read = {name: _numbers(number) for name, number in known.items()}
            settings = replace(settings, **{item.name: replace(own, **read)})
        except (TypeError, ValueError):
            continue
    return settings


def _numbers(value: object) -> int | tuple[int, ...]:
    whole = _whole(0)
    return tuple(whole(item) for item in value) if isinstance(value, list) else whole(value)


def _size(value: object) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError
    width, height = (_whole(200, 20_000)(item) for item in value)
    return width, height


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "appearance": Appearance,
    "colour_blind": _flag,
    "marks": _text,
    "target": _optional(_path),
    "draft": _optional(_path),
    "recent": _paths,
    "speculate": _flag,
    "sources": _sources,
    "text_sources": _text_sources,
    "rule": Rule,
    "draft_length": _optional(_whole(1, LONGEST_DRAFT)),
    "sampling": sampling_from,
    "output": StructuredOutput.parse,
    "random_seed": _flag,
    "max_tokens": _optional(_whole(1)),
    "system_prompt": _text,
    "sidebar_open": _flag,
    "panel_open": _flag,
    "window_size": _size,
    "last_chat": _optional(_whole(1)),
    "download_limit": _optional(_whole(1)),
    "page": _text,
    "import_way": _optional(_import_way),
}
