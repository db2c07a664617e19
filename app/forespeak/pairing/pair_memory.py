"""What is kept of a pair: its costs, what drafting has learned, and its parity check. One small file per pair.

Everything here is convenience: a file that is damaged, foreign or of a newer version is not read and written over, and
a disk that cannot be written to changes nothing but that costs are measured again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from forespeak import __version__
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.engines.parity_result import (
    DifferenceKind,
    FirstDifference,
    ParityCase,
    ParityResult,
    TokenScores,
)
from forespeak.models.on_disk import moved_path, size_and_time
from forespeak.speculation.trace import Source
from forespeak.whole_file import write_whole

FORMAT = 1
MOST_FILES = 200
_MOST_CONDITIONS = 8
"""Of one pair: threads, settings and context lengths that were used last."""
_MOST_BYTES = 1_000_000
_SOON_SECONDS = 3.0
_CONTEXT_BUCKETS = (2048, 8192, 32768)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LearnedPair:
    """What is kept of one pair under one set of conditions; both are JSON values, as `PairFiles.keep` writes them."""

    target: Path
    draft: Path | None
    conditions: Json
    values: Json


@dataclass(slots=True)
class PairFiles:
    """A folder of pairs: a `PairMemory`, and where parity results are kept. Can be sent to another process."""

    folder: Path
    clock: Callable[[], float] = time.monotonic
    _written: dict[Path, float] = field(default_factory=dict)

    # -- what drafting has learned

    def recall(self, conditions: PairConditions) -> Mapping[str, Any] | None:
        kept = self._read(self._path(conditions.target, conditions.draft))
        wanted = _described(conditions)
        for entry in kept.get("learned", []):
            if isinstance(entry, dict) and entry.get("conditions") == wanted and isinstance(entry.get("values"), dict):
                values: Json = entry["values"]
                return values
        return None

    def keep(self, conditions: PairConditions, learned: Mapping[str, Any], *, soon: bool = False) -> None:
        path = self._path(conditions.target, conditions.draft)
        last = self._written.get(path)
        if soon and last is not None and self.clock() - last < _SOON_SECONDS:
            return
        self._written[path] = self.clock()
        wanted = _described(conditions)
        kept = self._read(path)
        others = [
            entry for entry in kept.get("learned", []) if isinstance(entry, dict) and entry.get("conditions") != wanted
        ]
        entries = [{"conditions": wanted, "values": dict(learned)}, *others][:_MOST_CONDITIONS]
        self._write(path, conditions.target, conditions.draft, kept | {"learned": entries})

    def everything(self) -> Iterator[LearnedPair]:
        """What is kept of every pair whose files are still the very ones, last written first."""
        dated = []
        for path in self.folder.glob("*.json"):
            with contextlib.suppress(OSError):
                dated.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(dated, reverse=True):
            kept = self._read(path)
            pair = _pair_of(kept)
            if pair is None:
                continue
            target, draft = pair
            # The name is made of the files' identities: where it differs, one of them has changed since.
            if self._path(target, draft).name != path.name:
                continue
            for entry in kept.get("learned", []):
                if isinstance(entry, dict):
                    conditions, values = entry.get("conditions"), entry.get("values")
                    if isinstance(conditions, dict) and isinstance(values, dict):
                        yield LearnedPair(target, draft, conditions, values)

    # -- parity

    def parity(self, target: Path, draft: Path | None) -> ParityResult | None:
        """What the last check of these very files found."""
        return parity_from(self._read(self._path(target, draft)).get("parity"))

    def keep_parity(self, target: Path, draft: Path | None, result: ParityResult) -> None:
        path = self._path(target, draft)
        self._write(path, target, draft, self._read(path) | {"parity": parity_record(result)})

    # -- files

    def moved(self, old: Path, new: Path) -> None:
        """The models folder `old` is `new` now: what is known of its files is known of them there."""
        for path in list(self.folder.glob("*.json")):
            with contextlib.suppress(OSError):
                self._move(path, old, new)

    def _move(self, path: Path, old: Path, new: Path) -> None:
        kept = self._read(path)
        pair = _pair_of(kept)
        if pair is None:
            return
        target, draft = pair
        to_target, to_draft = moved_path(target, old, new), None if draft is None else moved_path(draft, old, new)
        if (to_target, to_draft) == pair:
            return
        # Only what was learned of these very files: a move keeps their sizes and times.
        before = [_identity(target, to_target), None if draft is None else _identity(draft, to_draft)]
        to = self._path(to_target, to_draft)
        if self._named(before).name != path.name or to.exists():
            return
        written = path.stat()
        path.replace(to)
        self._write(to, to_target, to_draft, kept)
        # Those that were not used for longest are forgotten first, and nothing was used now.
        os.utime(to, ns=(written.st_atime_ns, written.st_mtime_ns))

    def _path(self, target: Path, draft: Path | None) -> Path:
        return self._named([_identity(target), None if draft is None else _identity(draft)])

    def _named(self, identities: list[list[Any] | None]) -> Path:
        names = json.dumps(identities, sort_keys=True)
        return self.folder / f"{hashlib.sha256(names.encode()).hexdigest()[:24]}.json"

    def _read(self, path: Path) -> Json:
        """Empty for whatever is not ours to read."""
        try:
            if path.stat().st_size > _MOST_BYTES:
                return {}
            kept = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(kept, dict) or kept.get("format") != FORMAT or not isinstance(kept.get("learned", []), list):
            return {}
        return kept

    def _write(self, path: Path, target: Path, draft: Path | None, kept: Mapping[str, Any]) -> None:
        pair = {"target": str(target), "draft": None if draft is None else str(draft)}
        try:
            text = json.dumps(
                {**kept, "format": FORMAT, "version": __version__, "pair": pair}, indent=1, allow_nan=False
            )
        except (TypeError, ValueError):
            # Not JSON values: nothing to keep, and the next load measures again.
            return
        with contextlib.suppress(OSError):
            new = not path.exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            if new:
                self._prune()

    def _prune(self) -> None:
        """Forget the pairs that were not used for longest, and what an interrupted write has left."""
        found = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        stale = [part for part in self.folder.glob("*.part") if time.time() - part.stat().st_mtime > 3600]
        for path in [*found[MOST_FILES:], *stale]:
            path.unlink(missing_ok=True)


def _pair_of(kept: Json) -> tuple[Path, Path | None] | None:
    pair = kept.get("pair")
    if not isinstance(pair, dict) or not isinstance(pair.get("target"), str):
        return None
    return Path(pair["target"]), Path(pair["draft"]) if isinstance(pair.get("draft"), str) else None


def _identity(path: Path, now_at: Path | None = None) -> list[Any]:
    """A model by its place, size and time; a changed one is another model. `now_at`: it has been moved there."""
    try:
        return [str(path.absolute()), *size_and_time(now_at or path)]
    except OSError:
        return [str(path.absolute()), 0, 0]


def _described(conditions: PairConditions) -> Json:
    length = conditions.context_length
    bucket = next((most for most in _CONTEXT_BUCKETS if length <= most), _CONTEXT_BUCKETS[-1] * 2)
    return {
        "engine": conditions.engine,
        "devices": list(conditions.devices),
        "threads": conditions.threads,
        "gpu_layers": conditions.gpu_layers,
        "reproducible": conditions.reproducible,
        "context": bucket,
        "draft_devices": list(conditions.draft_devices),
        "draft_gpu_layers": conditions.draft_gpu_layers,
        "split": conditions.split.value,
        "cache_type": conditions.cache_type.value,
        "flash_attention": conditions.flash_attention,
    }


def parity_record(result: ParityResult) -> Json:
    """A result as JSON values."""
    return {
        "checked_at": result.checked_at,
        "engine": result.engine,
        "version": result.version,
        "sources": [source.value for source in result.sources],
        "ways": list(result.ways),
        "planned": result.planned,
        "equal": result.equal,
        "ties": result.ties,
        "faults": result.faults,
        "drafted_tokens_tested": result.tested,
        "scores_moved_by_batches": result.moved,
        "seconds": result.seconds,
        "cases": [
            {
                "prompt": case.prompt,
                "temperature": case.temperature,
                "tokens": case.tokens,
                "tested": case.tested,
                "accepted": case.accepted,
                "differences": [_difference_record(difference) for difference in case.differences],
            }
            for case in result.cases
        ],
    }


def _difference_record(difference: FirstDifference) -> Json:
    return {
        "way": difference.way,
        "place": difference.place,
        "plain": difference.plain_text,
        "drafted": difference.drafted_text,
        "alone": [difference.alone.plain, difference.alone.drafted],
        "batched": [difference.batched.plain, difference.batched.drafted],
        "distance": difference.alone.distance,
        "moved": difference.moved,
        "limit": difference.limit,
        "kind": difference.kind.value,
    }


def parity_from(kept: object) -> ParityResult | None:
    """What `parity_record` made, or None for anything else."""
    if not isinstance(kept, dict):
        return None
    try:
        return ParityResult(
            cases=tuple(
                ParityCase(
                    str(case["prompt"]),
                    float(case["temperature"]),
                    int(case["tokens"]),
                    int(case["tested"]),
                    int(case["accepted"]),
                    tuple(_difference_from(each) for each in case["differences"]),
                )
                for case in kept["cases"]
            ),
            planned=int(kept["planned"]),
            sources=tuple(Source(name) for name in kept["sources"]),
            moved=float(kept["scores_moved_by_batches"]),
            seconds=float(kept["seconds"]),
            checked_at=datetime.fromisoformat(kept["checked_at"]).isoformat(),
            engine=str(kept["engine"]),
            version=str(kept["version"]),
            ways=tuple(str(way) for way in kept["ways"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _difference_from(kept: Json) -> FirstDifference:
    return FirstDifference(
        way=str(kept["way"]),
        place=int(kept["place"]),
        plain_text=str(kept["plain"]),
        drafted_text=str(kept["drafted"]),
        alone=TokenScores(*(None if score is None else float(score) for score in kept["alone"])),
        batched=TokenScores(*(None if score is None else float(score) for score in kept["batched"])),
        moved=float(kept["moved"]),
        limit=float(kept["limit"]),
        kind=DifferenceKind(kept["kind"]),
    )
