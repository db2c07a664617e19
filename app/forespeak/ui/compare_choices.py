"""What a lane can be, looked up off the UI thread: kept pairs and known drafts at once, the library's after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from forespeak.errors import UserFacingError
from forespeak.models.formats import model_stem
from forespeak.models.library_item import LibraryItem
from forespeak.models.on_disk import size_and_time
from forespeak.models.shards import shard_paths
from forespeak.pairing.pairs import NamedPairs
from forespeak.speculation.trace import Source
from forespeak.ui.compare_lanes_edit import LaneOption
from forespeak.ui.compare_planning import lane_options
from forespeak.ui.latest import Latest
from forespeak.ui.pair_controller import Models
from forespeak.ui.preferences import Preferences
from forespeak.ui.session import Session

ScanLibrary = Callable[[Callable[[], bool]], Sequence[LibraryItem]]
"""(whether nobody waits any more) -> what is in the library. Reads the disk."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the answer depends on. `drafting`: as the chat drafts; `known`: models, and what the window calls them."""

    target: Path
    has_draft: bool
    drafting: tuple[object, ...]
    known: tuple[tuple[Path, str], ...]
    preferences: Preferences = field(compare=False)


class LaneChoices(QObject):
    found = Signal(object, object)
    """Path of the target, tuple of LaneOptions"""
    failed = Signal(object)
    """Exception"""
    picked = Signal(object)
    """LaneOption of a file that may draft"""

    def __init__(
        self, session: Session, models: Models, pairs: Path, library: ScanLibrary, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._models, self._library = session, models, library
        self._pairs = NamedPairs(pairs)
        self._looked_for: _Wanted | None = None
        self._complete_for: Path | None = None
        """The target for which the library was looked through"""
        self._latest = Latest("lane choices", self)

    def close(self) -> None:
        self._latest.close()

    def show_pair(self) -> None:
        """The chat's pair may be another one."""
        wanted = self._wanted()
        if wanted is not None and wanted != self._looked_for:
            self.look()

    def look(self) -> None:
        """Anew: pairs may have been kept meanwhile, and models added."""
        wanted = self._looked_for = self._wanted()
        if wanted is None:
            return

        def look_all() -> None:
            self._latest.run(
                lambda stop: self._options(wanted, self._drafts_of(wanted.target, stop.is_set)),
                all_found,
                self.failed.emit,
            )

        def all_found(options: tuple[LaneOption, ...]) -> None:
            self._complete_for = wanted.target
            self.found.emit(wanted.target, options)

        def some_found(options: tuple[LaneOption, ...]) -> None:
            self.found.emit(wanted.target, options)
            look_all()

        if wanted.target == self._complete_for:
            # Never fewer than there were: lanes of the library would lose what they are.
            look_all()
        else:
            self._latest.run(lambda _: self._options(wanted, ()), some_found, self.failed.emit)

    def pick(self, path: Path) -> None:
        """A file that somebody chose: `picked` if it may draft for the target, else `failed`."""
        target = self._session.preferences.target
        if target is None:
            return

        def look() -> LaneOption:
            fit = self._models.fit(target, path)
            name = self._models.name(path)
            if not fit.fits:
                raise UserFacingError(
                    self.tr("“{0}” cannot draft for this target.").format(path.name),
                    fit.full,
                    self.tr("Choose another file."),
                )
            return LaneOption(name, (Source.DRAFT_MODEL,), path, None, "drafts")

        self._session.file_worker.run(look, self.picked.emit, self.failed.emit)

    # -- inside

    def _wanted(self) -> _Wanted | None:
        preferences, pair = self._session.preferences, self._session.pair
        if preferences.target is None:
            return None
        starter = pair.starter
        paths = [preferences.draft, *preferences.recent, None if starter is None else starter.draft]
        known = {path: pair.name(path) for path in paths if path is not None}
        drafting = (preferences.drafting_if(pair.has_draft), preferences.draft, preferences.draft_length)
        return _Wanted(preferences.target, pair.has_draft, drafting, tuple(known.items()), preferences)

    def _options(self, wanted: _Wanted, library: Sequence[Path]) -> tuple[LaneOption, ...]:
        kept = [each for each in self._pairs.of_target(wanted.target) if each.is_usable]
        known = dict(wanted.known)
        paths = [*known, *(each.draft.path for each in kept if each.draft is not None), *library]
        drafts = [
            (path, name)
            for path in dict.fromkeys(paths)
            if (name := self._draft_name(wanted.target, path, known.get(path)))
        ]
        return lane_options(wanted.preferences, wanted.has_draft, kept, _told_apart(drafts))

    def _drafts_of(self, target: Path, cancelled: Callable[[], bool]) -> list[Path]:
        """Models of the library that are smaller than the target, and could read what it writes."""
        items = self._library(cancelled)
        size = next((item.size_bytes for item in items if item.path == target), None) or _size_on_disk(target)
        found = []
        for item in items:
            if cancelled():
                break
            if item.usable and item.path != target and (size is None or item.size_bytes < size):
                found.append(item.path)
        return found

    def _draft_name(self, target: Path, path: Path, known: str | None) -> str:
        """What people call a draft model that suits the target; nothing for any other file."""
        if path == target:
            return ""
        try:
            if not path.exists() or not self._models.fit(target, path).fits:
                return ""
            # What the window has no name for is called as its file.
            return self._models.name(path) if known is None or known == model_stem(path) else known
        except UserFacingError:
            return ""


def _size_on_disk(path: Path) -> int | None:
    """Of a model that no folder of the library holds, all its parts together."""
    try:
        return sum(size_and_time(part)[0] for part in ((path,) if path.is_dir() else shard_paths(path)))
    except OSError:
        return None


def _told_apart(drafts: Sequence[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Two files of the same name and quantisation are called by their files."""
    names = [name for _, name in drafts]
    return [(path, name if names.count(name) == 1 else f"{name} ({model_stem(path)})") for path, name in drafts]
