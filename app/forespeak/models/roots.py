"""The folders in which models are looked for: our own, and those of other programs, which are only read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from forespeak.models.starter import starter_draft_path


class RootKind(Enum):
    """Whose folder it is."""

    OWN = "own"
    STARTER = "starter"
    HUGGING_FACE = "hugging face"
    LM_STUDIO = "lm studio"
    LLAMA_CPP = "llama.cpp"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Root:
    """A folder with models in it or below; `label` names it for people. Nothing is written in a `read_only` one."""

    path: Path
    label: str
    read_only: bool
    kind: RootKind = RootKind.ADDED


def own_root(folder: Path) -> Root:
    return Root(folder, "Models folder", read_only=False, kind=RootKind.OWN)


def added_root(folder: Path) -> Root:
    """A folder that the user added. It is read only: other programs may work in it."""
    return Root(folder, folder.name or str(folder), read_only=True, kind=RootKind.ADDED)


def known_roots(
    added: Iterable[Path] = (), *, environment: Mapping[str, str] | None = None, home: Path | None = None
) -> tuple[Root, ...]:
    """The read-only roots: the starter's package, other programs' folders that exist, and the folders added."""
    environment = os.environ if environment is None else environment
    home = home or Path.home()
    roots = []
    draft = starter_draft_path()
    if draft is not None:
        roots.append(Root(draft.parent, "Comes with Forespeak", read_only=True, kind=RootKind.STARTER))
    others = [
        (hugging_face_cache(environment, home), "Hugging Face cache", RootKind.HUGGING_FACE),
        *((folder, "LM Studio", RootKind.LM_STUDIO) for folder in lm_studio_folders(home)),
        (llama_cpp_cache(environment, home), "llama.cpp", RootKind.LLAMA_CPP),
    ]
    roots += [Root(folder, label, read_only=True, kind=kind) for folder, label, kind in others if _is_folder(folder)]
    # An added folder is kept although it is not there now: its disk may come back.
    roots += [added_root(folder) for folder in added]
    unique: dict[Path, Root] = {}
    for root in roots:
        unique.setdefault(root.path.absolute(), root)
    return tuple(unique.values())


def hugging_face_cache(environment: Mapping[str, str], home: Path) -> Path:
    """Where Hugging Face's client keeps files: huggingface_hub/constants.py, which must not be imported for this."""
    for variable, below in (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
    ):
        value = environment.get(variable, "").strip()
        if value:
            return Path(_expanded(value, environment, home)) / below
    return home / ".cache" / "huggingface" / "hub"


def lm_studio_folders(home: Path) -> tuple[Path, ...]:
    """Now and before version 0.3.6."""
    return home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"


def llama_cpp_cache(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """llama.cpp, common/common.cpp: fs_get_cache_directory."""
    own = environment.get("LLAMA_CACHE", "").strip()
    if own:
        return Path(_expanded(own, environment, home))
    if platform == "win32":
        local = environment.get("LOCALAPPDATA", "").strip()
        return (Path(local) if local else home / "AppData" / "Local") / "llama.cpp"
    if platform == "darwin":
        return home / "Library" / "Caches" / "llama.cpp"
    general = environment.get("XDG_CACHE_HOME", "").strip()
    return (Path(general) if general else home / ".cache") / "llama.cpp"


def _expanded(value: str, environment: Mapping[str, str], home: Path) -> str:
    if value == "~" or value.startswith(("~/", "~\\")):
        value = str(home) + value[1:]
    for name, content in environment.items():
        value = value.replace(f"${{{name}}}", content)
    return value


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
