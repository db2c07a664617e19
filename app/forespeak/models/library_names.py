"""Which model of the library people mean by a file of it or a name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forespeak.errors import UserFacingError
from forespeak.models.library_item import LibraryItem


def named_item(items: Sequence[LibraryItem], name: str) -> LibraryItem:
    """By a file of it, its name, or owner/name. Raises UserFacingError if none or several have that name."""
    path = Path(name).expanduser().absolute()
    for item in items:
        if path == item.path or path in item.files:
            return item
    wanted = name.casefold().removesuffix(".gguf")
    matching = [item for item in items if wanted in {item.name.casefold(), (item.repo or "").casefold()}]
    # Our own come first where another program has the same.
    matching = [item for item in matching if not item.root.read_only] or matching
    if not matching:
        raise UserFacingError(
            f"There is no model called “{name}” here.",
            "It is neither a file nor in the library.",
            "See what there is with: forespeak models list --all",
        )
    if len(matching) > 1:
        raise UserFacingError(
            f"There are {len(matching)} models called “{name}”.",
            " ".join(f"{item.path}" for item in matching),
            "Name one by its path.",
        )
    return matching[0]
