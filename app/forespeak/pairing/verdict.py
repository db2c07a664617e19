"""What is said about a target and a draft: a verdict with its reason, and its form as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class VerdictKind(Enum):
    """How two vocabularies relate."""

    SAME = "same vocabulary"
    SAME_PADDED = "same but padded"
    DIFFERS = "differs in some tokens"
    OTHER_TOKENIZER = "other tokenizer"
    CANNOT = "cannot be compared or used"

    @property
    def code(self) -> str:
        """Its name in JSON."""
        return self.name.lower()


class Obstacle(Enum):
    """Why two files cannot work together, whatever their vocabularies."""

    UNREADABLE = "unreadable"
    SHARD_MISSING = "a part is missing"
    LATER_SHARD = "not the first part"
    PROJECTOR = "projector"
    ADAPTER = "adapter"
    IMATRIX = "importance matrix"
    ENCODER = "writes no text"
    NOT_LEFT_TO_RIGHT = "does not write from left to right"
    DRAFT_HEAD = "belongs inside one target"
    FOREIGN_HEAD = "belongs inside another target"
    NO_VOCABULARY = "no vocabulary"
    VOCABULARY_ONLY = "no weights"
    NO_MODEL = "no model"
    NO_ROLLBACK = "the target's cache cannot be rolled back"
    OTHER_FORMAT = "formats differ"
    NO_ENGINE = "no engine for this format"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is one or a few sentences for people, `evidence` what they rest on (plain JSON values).

    `usable`: the draft may serve the target as its draft model now. `obstacle` is set where the files themselves are
    the reason why not; with VOCABULARY_ONLY and NO_ENGINE, `kind` still tells about the vocabularies.
    """

    kind: VerdictKind
    usable: bool
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)
    obstacle: Obstacle | None = None


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON values."""
    return {
        "verdict": verdict.kind.code,
        "usable": verdict.usable,
        "reason": verdict.reason,
        "evidence": verdict.evidence,
        "obstacle": None if verdict.obstacle is None else verdict.obstacle.name.lower(),
    }


def verdict_from(kept: object) -> Verdict | None:
    """What `verdict_record` made, or None for anything else."""
    if not isinstance(kept, dict):
        return None
    try:
        kind, usable, reason, evidence = (kept[name] for name in ("verdict", "usable", "reason", "evidence"))
        obstacle = None if kept["obstacle"] is None else Obstacle[str(kept["obstacle"]).upper()]
        if not (isinstance(usable, bool) and isinstance(reason, str) and isinstance(evidence, dict)):
            return None
        return Verdict(VerdictKind[str(kind).upper()], usable, reason, evidence, obstacle)
    except KeyError:
        return None
