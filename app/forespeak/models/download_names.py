"""Where a file of a repo goes on this disk: its name comes from the network and may be hostile."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from forespeak.errors import UserFacingError

LONGEST_NAME = 240
"""Bytes of one name: most file systems take 255, and a download writes beside its target under longer names."""

_LONGEST_PATH_WINDOWS = 240
_REPO = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)?")
_DRIVE = re.compile(r"[A-Za-z]:")
# Windows has no such characters in names; on others they are a nuisance.
_AWKWARD = re.compile(r'[<>:"|?*]')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in (*"123456789", "¹", "²", "³")}
)


def targets(folder: Path, repo: str, paths: Iterable[str], windows: bool = sys.platform == "win32") -> tuple[Path, ...]:
    """The place of each of a repo's files: `folder`/owner/repo/path.

    Names that one of the three systems cannot store are made safe. Raises UserFacingError for names that lead out of
    the folder, cannot be stored at all, or would fall together.
    """
    names = tuple(paths)
    if _REPO.fullmatch(repo) is None or any(part in {".", ".."} for part in repo.split("/")):
        raise _refused(repo, "That is not the name of a repository.")
    base = folder.joinpath(*(_safe(part, repo) for part in repo.split("/")))
    found: dict[str, str] = {}
    result = []
    for name in names:
        parts = _parts(name)
        # macOS and Windows do not tell upper from lower case, and macOS not é from e + ́.
        key = unicodedata.normalize("NFC", "/".join(parts)).casefold()
        if key in found:
            raise _refused(name, f"It cannot be told from “{_shown(found[key])}” on every disk.")
        found[key] = name
        target = base.joinpath(*parts)
        if windows and len(str(target)) > _LONGEST_PATH_WINDOWS:
            raise _refused(
                name, "Its path would be longer than Windows takes.", "Choose a models folder with a shorter path."
            )
        result.append(target)
    return tuple(result)


def _parts(path: str) -> list[str]:
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        raise _refused(path, "It names a place of its own on the disk.")
    if "\\" in path:
        raise _refused(path, "It holds a backslash, which some systems take for a folder.")
    return [_safe(part, path) for part in path.split("/")]


def _safe(part: str, path: str) -> str:
    """One name of a path, the same on every system. Raises UserFacingError."""
    name = unicodedata.normalize("NFC", part)
    if name in {"", ".", ".."}:
        raise _refused(path, "It leads out of its folder, or nowhere.")
    if any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in name):
        raise _refused(path, "It holds characters that cannot be seen.")
    name = _AWKWARD.sub("_", name)
    stem = name.rstrip(". ")
    name = stem + "_" * (len(name) - len(stem))
    if name.split(".", maxsplit=1)[0].rstrip().casefold() in _DEVICES:
        name = f"_{name}"
    if len(name.encode()) > LONGEST_NAME:
        raise _refused(path, f"It is longer than the {LONGEST_NAME} bytes that fit on every disk.")
    return name


def _refused(path: str, why: str, remedy: str = "") -> UserFacingError:
    return UserFacingError(
        f"“{_shown(path)}” cannot be downloaded under its name.",
        why,
        remedy or "Tell the repository's owner, or choose another repository.",
    )


def _shown(path: str) -> str:
    """A hostile name, harmless to read: no control characters, not endless."""
    visible = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in path)
    return visible if len(visible) <= 80 else f"{visible[:40]}…{visible[-39:]}"
