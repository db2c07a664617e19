"""Where things live on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from forespeak.errors import UserFacingError

HOME_VARIABLE = "FORESPEAK_HOME"
_NAME = "Forespeak"


@dataclass(frozen=True, slots=True)
class Folders:
    """Absolute paths, whether or not they exist yet. `dataclasses.replace(..., models=...)` moves the models."""

    data: Path
    models: Path
    config: Path
    cache: Path
    logs: Path

    @property
    def chats(self) -> Path:
        """The database of the chats, a file."""
        return self.data / "chats.db"

    @property
    def pairs(self) -> Path:
        """What is known of pairs: a folder of small files, made when the first one is written."""
        return self.data / "pairs"

    def create(self) -> None:
        """Make the folders that are missing. Raises UserFacingError."""
        for folder, purpose in (
            (self.data, "chats"),
            (self.models, "models"),
            (self.config, "settings"),
            (self.cache, "temporary files"),
            (self.logs, "logs"),
        ):
            create_folder(folder, purpose)


def folders() -> Folders:
    """The folders of this user, or those under FORESPEAK_HOME, which then holds everything (portable use, tests)."""
    home = os.environ.get(HOME_VARIABLE, "").strip()
    if home:
        root = Path(os.path.expandvars(home)).expanduser().absolute()
        return Folders(root / "data", root / "models", root / "config", root / "cache", root / "logs")
    return Folders(
        data=platformdirs.user_data_path(_NAME, appauthor=False),
        # Visible, unlike the others, because people look for their gigabytes; and not in the documents folder, which
        # many systems copy to a cloud.
        models=Path.home() / _NAME / "models",
        config=platformdirs.user_config_path(_NAME, appauthor=False),
        cache=platformdirs.user_cache_path(_NAME, appauthor=False),
        logs=platformdirs.user_log_path(_NAME, appauthor=False),
    )


def create_folder(folder: Path, purpose: str) -> None:
    """Make a folder and those above it. `purpose` says in a plural noun what it is for. Raises UserFacingError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserFacingError(
            f"The folder for {purpose} could not be made.",
            f"{folder}: {error.strerror or error}.",
            f"Check that you may write there, or set {HOME_VARIABLE} to another folder.",
        ) from error
