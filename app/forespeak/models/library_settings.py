"""Which folders the library looks into, as the user chose them: one file for the window and the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.folders import Folders, create_folder, folders
from forespeak.whole_file import write_whole

_FILE = "library.json"


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """`own` None: the models folder is where it is by itself. `added` are read-only folders."""

    own: Path | None = None
    added: tuple[Path, ...] = ()


class LibrarySettingsFile:
    def __init__(self, config: Path) -> None:
        """`config` is the folder for settings."""
        self._path = config / _FILE

    def read(self) -> LibrarySettings:
        """What is damaged or foreign falls back to its default."""
        try:
            stored = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return LibrarySettings()
        if not isinstance(stored, dict):
            return LibrarySettings()
        own, added = stored.get("own"), stored.get("added")
        return LibrarySettings(
            _path(own),
            tuple(dict.fromkeys(path for each in added if (path := _path(each)) is not None))
            if isinstance(added, list)
            else (),
        )

    def write(self, settings: LibrarySettings) -> None:
        """Replace the file as a whole. Raises UserFacingError."""
        create_folder(self._path.parent, "settings")
        plain = {"own": None if settings.own is None else str(settings.own), "added": [str(p) for p in settings.added]}
        try:
            write_whole(self._path, json.dumps(plain, indent=2, ensure_ascii=False))
        except OSError as error:
            raise UserFacingError(
                "The library's folders could not be stored.",
                f"{self._path}: {error.strerror or error}.",
                "They hold until Forespeak ends. Check that you may write there.",
            ) from error


def with_chosen_models(places: Folders) -> Folders:
    """The same folders with the models folder that the user chose, if there is one."""
    own = LibrarySettingsFile(places.config).read().own
    return places if own is None else replace(places, models=own)


def users_folders() -> Folders:
    """The folders of this user, with the models where they are to be."""
    return with_chosen_models(folders())


def _path(value: object) -> Path | None:
    # A relative one would mean another folder each time.
    return Path(value) if isinstance(value, str) and value and Path(value).is_absolute() else None
