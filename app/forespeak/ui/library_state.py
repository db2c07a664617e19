"""What the Models page knows of the library, and what it asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from forespeak.models.library import ImportResult, ImportWay, LibraryItem
from forespeak.models.roots import Root
from forespeak.ui.library_model import FitWords

Progress = Callable[[int, int], None]
Cancelled = Callable[[], bool]


class RemovedModel(Protocol):
    """A model that was taken out of the library, until it is decided."""

    def undo(self) -> None:
        """Put it back. Raises UserFacingError."""
        ...

    def finish(self) -> None:
        """Delete it for good. Raises UserFacingError."""
        ...


class ModelLibrary(Protocol):
    """What is asked of `models.library.Library`. All of it reads or writes the disk, and raises UserFacingError."""

    def roots(self) -> tuple[Root, ...]:
        """The models folder first."""
        ...

    def scan(self, progress: Progress, cancelled: Cancelled) -> tuple[LibraryItem, ...]: ...

    def import_models(
        self, sources: Sequence[Path], way: ImportWay, progress: Progress, cancelled: Cancelled
    ) -> ImportResult: ...

    def remove(self, item: LibraryItem) -> RemovedModel: ...

    def move_to(self, folder: Path, progress: Progress, cancelled: Cancelled) -> bool:
        """Move the models folder with all that is in it; False if it was cancelled and stays where it was."""
        ...

    def recover(self) -> bool:
        """Put in order what a crash has left. True if the models folder is another one now."""
        ...

    def set_added(self, folders: Sequence[Path]) -> None:
        """The read-only folders that the user added, from the next scan on."""
        ...

    def free_bytes(self) -> int:
        """What the disk of the models folder has left; 0 if that cannot be told."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed`, on any thread, after files came or went. Returns what ends the watching."""
        ...


class CheckFiles(Protocol):
    """Reads all of a model's files; says in words what was found to be right. Raises UserFacingError."""

    def __call__(self, item: LibraryItem, progress: Progress, cancelled: Cancelled) -> str: ...


class TaskKind(Enum):
    IMPORT = "import"
    MOVE = "move"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class Task:
    """What is being done, and how far it is, in bytes. `total` 0: not known yet."""

    kind: TaskKind
    name: str
    done: int = 0
    total: int = 0
    cancelling: bool = False


@dataclass(frozen=True, slots=True)
class LibraryState:
    """`read`: whether a scan has ended. `scan` is (done, of how many) while one runs."""

    items: tuple[LibraryItem, ...] = ()
    fits: Mapping[Path, FitWords] = field(default_factory=dict)
    roots: tuple[Root, ...] = ()
    free_bytes: int | None = None
    read: bool = False
    scan: tuple[int, int] | None = None

    @property
    def own_bytes(self) -> int:
        """What the models folder takes: links take nothing."""
        return sum(item.size_bytes for item in self.items if not item.root.read_only and not item.linked)

    @property
    def own_count(self) -> int:
        return sum(not item.root.read_only for item in self.items)
