"""Whether a model of the Hub is on this computer already: in the library by its repo, or as files of the same size."""

from __future__ import annotations

from collections.abc import Sequence

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.library import LibraryItem
from forespeak.ui.file_groups import LocalCopy


def local_item(group: HubFileGroup, items: Sequence[LibraryItem]) -> LibraryItem | None:
    """That of the same repo; else one whose files are as large, by name first. None if there is none."""
    sized = [item for item in items if item.problem is None and item.format is group.format and _as_large(item, group)]
    for item in sized:
        if is_same_repo(item, group):
            return item
    for item in sized:
        if _named_alike(item, group):
            return item
    # Any other is worth a comparison with what the Hub states, if it states enough.
    comparable = group.format is ModelFormat.GGUF and all(file.sha256 is not None for file in group.files)
    return sized[0] if sized and comparable else None


def local_copy(group: HubFileGroup, items: Sequence[LibraryItem]) -> LocalCopy | None:
    item = local_item(group, items)
    if item is None:
        return None
    return LocalCopy(item.path, place_words(item), is_same_repo(item, group))


def is_same_repo(item: LibraryItem, group: HubFileGroup) -> bool:
    if item.repo is None or item.repo.casefold() != group.repo.casefold():
        return False
    return group.format is ModelFormat.MLX or _named_alike(item, group)


def place_words(item: LibraryItem) -> str:
    """The root and the folder within it."""
    try:
        inside = item.path.parent.relative_to(item.root.path).as_posix()
    except ValueError:
        inside = "."
    return item.root.label if inside == "." else f"{item.root.label}, {inside}"


def _as_large(item: LibraryItem, group: HubFileGroup) -> bool:
    # What a folder holds beside the weights differs by who put it there.
    return group.format is ModelFormat.MLX or item.size_bytes == group.size_bytes


def _named_alike(item: LibraryItem, group: HubFileGroup) -> bool:
    names = [file.name for file in group.files]
    return group.format is ModelFormat.GGUF and [path.name for path in item.files] == names
