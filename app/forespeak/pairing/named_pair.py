"""A pair under a name, and how it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from forespeak.engines.parity_result import ParityResult
from forespeak.pairing.pair_memory import parity_from, parity_record
from forespeak.pairing.ranking import Measurement, Range
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source

PAIR_FORMAT = 1

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelMark:
    """A model's file as it was when its pair was kept. `fingerprint` is its vocabulary's, None if it was not known."""

    path: Path
    size_bytes: int
    modified_ns: int
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class PairSettings:
    """What a chat takes over with the pair. `draft_length` None: as many tokens as pay."""

    sources: tuple[Source, ...] = (Source.DRAFT_MODEL,)
    draft_length: int | None = None
    rule: Rule = Rule.COUPLED
    context_length: int | None = None


@dataclass(frozen=True, slots=True)
class NamedPair:
    """`draft` None: only sources without a model. `is_stale`: a test is wanted before its figures count again.

    `problem` says in words what has changed or vanished since the pair was kept; `is_usable`: it can be loaded anyway.
    """

    id: str
    name: str
    target: ModelMark
    draft: ModelMark | None
    settings: PairSettings
    created_at: str
    parity: ParityResult | None = None
    measurement: Measurement | None = None
    is_stale: bool = False
    is_default: bool = False
    problem: str | None = None
    is_usable: bool = True

    @property
    def current_measurement(self) -> Measurement | None:
        """The measurement, unless a file has changed since or a new test is wanted."""
        return None if self.is_stale or self.problem else self.measurement


def pair_record(pair: NamedPair) -> Json:
    """All that is kept of a pair, as JSON values; its id is the file's name."""
    return {
        "format": PAIR_FORMAT,
        "name": pair.name,
        "target": _mark_record(pair.target),
        "draft": None if pair.draft is None else _mark_record(pair.draft),
        "settings": {
            "sources": [source.value for source in pair.settings.sources],
            "draft_length": pair.settings.draft_length,
            "rule": pair.settings.rule.value,
            "context_length": pair.settings.context_length,
        },
        "created_at": pair.created_at,
        "stale": pair.is_stale,
        "measurement": None if pair.measurement is None else measurement_record(pair.measurement),
        "parity": None if pair.parity is None else parity_record(pair.parity),
    }


def pair_from(pair_id: str, kept: Mapping[str, Any]) -> NamedPair | None:
    """What `pair_record` made, or None for anything else."""
    try:
        if kept["format"] != PAIR_FORMAT:
            return None
        settings = kept["settings"]
        return NamedPair(
            pair_id,
            str(kept["name"]),
            _mark_from(kept["target"]),
            None if kept["draft"] is None else _mark_from(kept["draft"]),
            PairSettings(
                tuple(Source(name) for name in settings["sources"]),
                None if settings["draft_length"] is None else int(settings["draft_length"]),
                Rule(settings["rule"]),
                None if settings["context_length"] is None else int(settings["context_length"]),
            ),
            datetime.fromisoformat(kept["created_at"]).isoformat(),
            parity_from(kept.get("parity")),
            measurement_from(kept.get("measurement")),
            is_stale=bool(kept["stale"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def measurement_record(measurement: Measurement) -> Json:
    """A measurement as JSON values."""
    return asdict(measurement) | {"by_kind": dict(measurement.by_kind)}


def measurement_from(kept: object) -> Measurement | None:
    """What `measurement_record` made, or None for anything else."""
    if not isinstance(kept, dict):
        return None
    try:
        return Measurement(
            plain=float(kept["plain"]),
            speculative=float(kept["speculative"]),
            speed_up=Range(*(float(kept["speed_up"][name]) for name in ("value", "low", "high"))),
            acceptance=None if kept["acceptance"] is None else float(kept["acceptance"]),
            tokens=int(kept["tokens"]),
            by_kind=tuple((str(kind), float(value)) for kind, value in kept["by_kind"].items()),
            measured_at=datetime.fromisoformat(kept["measured_at"]).isoformat(),
            engine=str(kept["engine"]),
            version=str(kept["version"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _mark_record(mark: ModelMark) -> Json:
    return {
        "path": str(mark.path),
        "size": mark.size_bytes,
        "modified_ns": mark.modified_ns,
        "vocabulary": mark.fingerprint,
    }


def _mark_from(kept: Mapping[str, Any]) -> ModelMark:
    fingerprint = kept["vocabulary"]
    return ModelMark(
        Path(str(kept["path"])),
        int(kept["size"]),
        int(kept["modified_ns"]),
        None if fingerprint is None else str(fingerprint),
    )
