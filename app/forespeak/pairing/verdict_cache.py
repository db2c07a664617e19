"""Verdicts on vocabularies, remembered by the vocabularies' content: a changed file has another fingerprint.

One small file per pair of vocabularies. A file that is damaged, foreign or of other rules is not read and written
over; a disk that cannot be written to costs nothing but comparing again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from forespeak import __version__
from forespeak.pairing.verdict import Verdict, VerdictKind, verdict_from, verdict_record
from forespeak.pairing.vocabularies import RULES
from forespeak.whole_file import write_whole

MOST_FILES = 2000
_MOST_BYTES = 100_000
_STALE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class VerdictCache:
    """A folder of verdicts, made when the first one is kept. Several processes may use it at once."""

    folder: Path

    def find(self, target: str, draft: str) -> Verdict | None:
        """The verdict on two vocabularies by their fingerprints, if today's rules have given one."""
        path = self._path(target, draft)
        try:
            if path.stat().st_size > _MOST_BYTES:
                return None
            kept = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(kept, dict) or [kept.get(name) for name in ("rules", "target", "draft")] != [
            _rules(),
            target,
            draft,
        ]:
            return None
        verdict = verdict_from(kept)
        return None if verdict is None or verdict.kind is VerdictKind.CANNOT else verdict

    def keep(self, target: str, draft: str, verdict: Verdict) -> None:
        """Write a verdict down: all of it or nothing."""
        path = self._path(target, draft)
        try:
            record = {**verdict_record(verdict), "rules": _rules(), "target": target, "draft": draft}
            text = json.dumps(record, ensure_ascii=True, allow_nan=False)
        except (TypeError, ValueError):
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            self._prune()

    def _path(self, target: str, draft: str) -> Path:
        return self.folder / f"{hashlib.sha256(f'{target} {draft}'.encode()).hexdigest()[:24]}.json"

    def _prune(self) -> None:
        """Forget the oldest beyond the limit, and what an interrupted write has left."""
        with os.scandir(self.folder) as entries:
            found = [(entry.stat().st_mtime, entry.path) for entry in entries]
        now = time.time()
        kept = sorted((each for each in found if each[1].endswith(".json")), reverse=True)
        stale = [each for each in found if each[1].endswith(".part") and now - each[0] > _STALE_SECONDS]
        for _, path in [*kept[MOST_FILES:], *stale]:
            Path(path).unlink(missing_ok=True)


def _rules() -> str:
    """Whatever may judge differently from an earlier version."""
    return f"{__version__} {RULES}"
