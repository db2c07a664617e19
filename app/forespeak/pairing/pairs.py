"""The pairs that people keep: a target and what drafts for it, under a name, with settings and what tests have shown.

One small file per pair, replaced as a whole; which one is a target's default stands in a file of its own. What the
engine learns of a pair is kept elsewhere, by the files' identity (`pair_memory`): that goes when a file changes, while
a named pair stays and says what has changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forespeak.engines.parity_result import ParityResult
from forespeak.errors import UserFacingError, disk_told
from forespeak.models.fingerprint import vocabulary_fingerprint
from forespeak.models.folders import Folders
from forespeak.models.formats import model_stem
from forespeak.models.gguf import GgufError
from forespeak.models.mlx_vocabulary import cached_mlx_fingerprint
from forespeak.models.on_disk import moved_path, size_and_time
from forespeak.models.vocabulary import cached_header
from forespeak.pairing.named_pair import PAIR_FORMAT, ModelMark, NamedPair, PairSettings, pair_from, pair_record
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.ranking import Measurement
from forespeak.speculation.trace import Source
from forespeak.whole_file import write_whole

FOLDER = "named-pairs"
"""Of the data folder."""
_DEFAULTS = "defaults.json"
_REMOVED = ".removed"
_MOST_BYTES = 1_000_000
_DAY = 86_400.0
_LONGEST_NAME = 200
_COARSEST_NS = 2_000_000_000
"""Some disks keep times to two seconds."""

Json = dict[str, Any]


class RemovedPair:
    """A pair that was removed and can come back until `finish`."""

    def __init__(self, path: Path, hidden: Path, restore_default: Callable[[], None]) -> None:
        self._path = path
        self._hidden = hidden
        self._restore_default = restore_default

    def undo(self) -> None:
        """Put it back. Raises UserFacingError if it cannot be."""
        with disk_told("The pair could not be put back."):
            self._hidden.replace(self._path)
        self._restore_default()

    def finish(self) -> None:
        """Remove it for good."""
        with contextlib.suppress(OSError):
            self._hidden.unlink(missing_ok=True)


def file_fingerprint(path: Path) -> str | None:
    """The fingerprint of a file's vocabulary; None if it has none or cannot be read."""
    try:
        return cached_mlx_fingerprint(path) if path.is_dir() else vocabulary_fingerprint(cached_header(path))
    except GgufError:
        return None


class NamedPairs:
    """The pairs in a folder, which is made when the first one is kept. Everything is read anew each time."""

    def __init__(self, folder: Path, fingerprint: Callable[[Path], str | None] = file_fingerprint) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        for path in folder.glob(f"*{_REMOVED}"):
            # Nobody came back for it.
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _DAY:
                    path.unlink()

    def all(self) -> tuple[NamedPair, ...]:
        """By name. Files that are damaged, foreign or of a newer version are left alone and not listed."""
        defaults = self._defaults()
        found = [pair for path in self._folder.glob("*.json") if (pair := self._read(path, defaults)) is not None]
        return tuple(sorted(found, key=lambda pair: (pair.name.casefold(), pair.created_at, pair.id)))

    def get(self, pair_id: str) -> NamedPair | None:
        return self._read(self._path(pair_id), self._defaults())

    def of_target(self, target: Path) -> tuple[NamedPair, ...]:
        """The default first, then by name."""
        wanted = target.absolute()
        return tuple(
            sorted((pair for pair in self.all() if pair.target.path == wanted), key=lambda pair: not pair.is_default)
        )

    def default_for(self, target: Path) -> NamedPair | None:
        """The pair that a new chat with this target begins with, if there is one that can be used."""
        return next((pair for pair in self.of_target(target) if pair.is_default and pair.is_usable), None)

    def measurement(
        self, target: Path, draft: Path | None, sources: Collection[Source] | None = None
    ) -> Measurement | None:
        """The newest measurement of a pair that still holds, under whatever name it was kept.

        `sources`: with these alone; None: with any.
        """
        wanted = None if draft is None else draft.absolute()
        found = [
            pair.current_measurement
            for pair in self.of_target(target)
            if (pair.draft.path if pair.draft else None) == wanted
            and (sources is None or set(pair.settings.sources) == set(sources))
        ]
        return max((each for each in found if each is not None), key=lambda each: each.measured_at, default=None)

    def keep(
        self,
        name: str,
        target: Path,
        draft: Path | None,
        settings: PairSettings,
        *,
        parity: ParityResult | None = None,
        measurement: Measurement | None = None,
        as_default: bool = False,
    ) -> NamedPair:
        """A new pair of these files as they are now. Raises UserFacingError: a file has gone, the disk is full."""
        pair = NamedPair(
            uuid.uuid4().hex,
            _tidy(name) or _usual_name(target, draft),
            self._mark(target),
            None if draft is None else self._mark(draft),
            settings,
            datetime.now(UTC).isoformat(timespec="seconds"),
            parity,
            measurement,
        )
        self._write(pair)
        if as_default:
            self.set_default(pair)
        return self._again(pair)

    def rename(self, pair: NamedPair, name: str) -> NamedPair:
        """Under another name; an empty one changes nothing. Raises UserFacingError."""
        tidy = _tidy(name)
        return self._change(pair, name=tidy) if tidy else self._change(pair)

    def set_settings(self, pair: NamedPair, settings: PairSettings) -> NamedPair:
        """With other settings: what was measured with the former ones is out of date. Raises UserFacingError."""
        return self._change(pair, settings=settings, is_stale=pair.is_stale or settings != pair.settings)

    def mark_stale(self, pair: NamedPair) -> NamedPair:
        """A new test is wanted; until it is done the old figures are shown as out of date. Raises UserFacingError."""
        return self._change(pair, is_stale=True)

    def tested(self, pair: NamedPair, measurement: Measurement, parity: ParityResult | None = None) -> NamedPair:
        """A new test of the files as they are now; without `parity` the former result stays. Raises UserFacingError."""
        target, draft = self._mark(pair.target.path), None if pair.draft is None else self._mark(pair.draft.path)
        unchanged = (target, draft) == (pair.target, pair.draft)
        return self._change(
            pair,
            target=target,
            draft=draft,
            measurement=measurement,
            # Parity of other files says nothing about these.
            parity=parity or (pair.parity if unchanged else None),
            is_stale=False,
        )

    def remove(self, pair: NamedPair) -> RemovedPair:
        """Hide it until `finish` or `undo`. Raises UserFacingError."""
        path = self._path(pair.id)
        hidden = path.with_suffix(_REMOVED)
        was_default = self._defaults().get(str(pair.target.path)) == pair.id
        with disk_told("The pair could not be removed."):
            path.replace(hidden)
            # The day until it is forgotten begins now.
            os.utime(hidden)

        def restore() -> None:
            # Its files may have been moved meanwhile.
            back = self.get(pair.id) or pair
            if was_default and str(back.target.path) not in self._defaults():
                self.set_default(back)

        if was_default:
            self.clear_default(pair.target.path)
        return RemovedPair(path, hidden, restore)

    def set_default(self, pair: NamedPair) -> None:
        """New chats with its target begin with this pair. Raises UserFacingError."""
        self._write_defaults({**self._defaults(), str(pair.target.path): pair.id})

    def clear_default(self, target: Path) -> None:
        """New chats with this target begin without one. Raises UserFacingError."""
        self._write_defaults({path: each for path, each in self._defaults().items() if path != str(target.absolute())})

    def moved(self, old: Path, new: Path) -> None:
        """The models folder `old` is `new` now: pairs follow their files, those too that can still come back.

        Raises UserFacingError when all that can be written has been.
        """
        problem: UserFacingError | None = None
        for path in (*self._folder.glob("*.json"), *self._folder.glob(f"*{_REMOVED}")):
            pair = None if path.name == _DEFAULTS else pair_from(path.stem, _json(path))
            if pair is None:
                continue
            draft = None if pair.draft is None else _moved_mark(pair.draft, old, new)
            changed = replace(pair, target=_moved_mark(pair.target, old, new), draft=draft)
            try:
                if changed != pair:
                    self._replace(path, pair_record(changed))
            except UserFacingError as error:
                problem = error
        defaults = self._defaults()
        followed = {str(moved_path(Path(path), old, new)): pair_id for path, pair_id in defaults.items()}
        if followed != defaults:
            self._write_defaults(followed)
        if problem is not None:
            raise problem

    # Files

    def _path(self, pair_id: str) -> Path:
        return self._folder / f"{pair_id}.json"

    def _change(self, pair: NamedPair, **changes: Any) -> NamedPair:  # noqa: ANN401 -- fields of NamedPair
        """What is on disk, changed: others may have changed other things of it since `pair` was read."""
        current = self.get(pair.id)
        if current is None:
            raise UserFacingError(f"The pair “{pair.name}” is not there any more.", "", "Keep it anew.")
        changed = replace(current, **changes)
        self._write(changed)
        return self._again(changed)

    def _again(self, pair: NamedPair) -> NamedPair:
        return self._with_default(pair, self._defaults())

    def _mark(self, path: Path) -> ModelMark:
        try:
            found = size_and_time(path)
        except OSError as error:
            raise UserFacingError(
                f"“{path.name}” cannot be read.",
                f"{path.parent}: {error.strerror or error}.",
                "Put the file back, or choose another one.",
            ) from error
        return ModelMark(path.absolute(), *found, self._fingerprint(path))

    def _judged(self, pair: NamedPair) -> NamedPair:
        """With what has changed since it was kept."""
        marks = [("target", pair.target)] + ([("draft model", pair.draft)] if pair.draft else [])
        problems, usable = [], True
        for role, mark in marks:
            words, can_load = self._change_of(role, mark)
            usable = usable and can_load
            if words:
                problems.append(words)
        return replace(pair, problem=" ".join(problems) or None, is_usable=usable)

    def _change_of(self, role: str, mark: ModelMark) -> tuple[str | None, bool]:
        """(what has become of a file, in a sentence; whether it can be loaded)."""
        try:
            found = size_and_time(mark.path)
        except OSError:
            return f"The {role} “{mark.path.name}” is not in {mark.path.parent} any more.", False
        if found == (mark.size_bytes, mark.modified_ns):
            return None, True
        now = self._fingerprint(mark.path)
        if now is None and mark.fingerprint is not None:
            return f"The {role} “{mark.path.name}” has changed, and holds no vocabulary that can be read.", False
        if mark.fingerprint is not None and now != mark.fingerprint:
            return f"The {role} “{mark.path.name}” has changed, and its vocabulary is another one now.", True
        return f"The {role} “{mark.path.name}” has changed since; its figures are those of the former file.", True

    def _read(self, path: Path, defaults: Mapping[str, str]) -> NamedPair | None:
        pair = pair_from(path.stem, _json(path)) if path.name != _DEFAULTS else None
        return None if pair is None else self._with_default(pair, defaults)

    def _with_default(self, pair: NamedPair, defaults: Mapping[str, str]) -> NamedPair:
        return self._judged(replace(pair, is_default=defaults.get(str(pair.target.path)) == pair.id))

    def _write(self, pair: NamedPair) -> None:
        self._replace(self._path(pair.id), pair_record(pair))

    def _defaults(self) -> dict[str, str]:
        kept = _json(self._folder / _DEFAULTS).get("defaults")
        if not isinstance(kept, dict):
            return {}
        return {path: pair_id for path, pair_id in kept.items() if isinstance(pair_id, str)}

    def _write_defaults(self, defaults: Mapping[str, str]) -> None:
        self._replace(self._folder / _DEFAULTS, {"format": PAIR_FORMAT, "defaults": dict(defaults)})

    def _replace(self, path: Path, values: Json) -> None:
        with disk_told("The pair could not be saved."):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(values, indent=1, allow_nan=False))


def follow_models(places: Folders, old: Path, new: Path) -> None:
    """The models folder `old` is `new` now: so is it for all that is kept of pairs. Raises UserFacingError."""
    PairFiles(places.pairs).moved(old, new)
    NamedPairs(places.data / FOLDER).moved(old, new)


def _moved_mark(mark: ModelMark, old: Path, new: Path) -> ModelMark:
    path = moved_path(mark.path, old, new)
    if path == mark.path:
        return mark
    try:
        size, modified = size_and_time(path)
    except OSError:
        size, modified = 0, 0
    # A disk that keeps times more coarsely has rounded this one.
    rounded = size == mark.size_bytes and abs(modified - mark.modified_ns) < _COARSEST_NS
    return replace(mark, path=path, modified_ns=modified if rounded else mark.modified_ns)


def _json(path: Path) -> Json:
    """Empty for whatever is not ours to read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return {}
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _tidy(name: str) -> str:
    return " ".join(name.split())[:_LONGEST_NAME]


def _usual_name(target: Path, draft: Path | None) -> str:
    return f"{model_stem(target)} + {model_stem(draft) if draft else 'looked-up text'}"
